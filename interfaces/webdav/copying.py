"""COPY and MOVE.

1. A move is a rename: one step, which everybody sees done or not done, and which keeps the identity of what is moved. It stays in its
   branch; between branches one copies, and deletes.
2. What stands at the destination is replaced only with ``Overwrite: T``. A file replaces a file in one step; before anything else is put in
   the place of a collection, or a collection in the place of anything, what is there is removed (RFC 4918 section 9.9.3).
3. A copy takes content and properties, not locks. A collection is copied from the top down; what cannot be is named, the rest is there.
4. Nothing is copied or moved into itself, onto itself, or over something that it is in.
5. A link is copied as what it points to when it is named, and as a link inside a collection; it is moved as a link.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import Access, Attributes, Workspace
from interfaces.web.asgi import Reply
from interfaces.web.contents import HandleContent
from interfaces.web.names import Names
from interfaces.webdav.headers import Depth, read_depth, read_overwrite
from interfaces.webdav.locks import Reach
from interfaces.webdav.places import Place
from interfaces.webdav.properties import DEAD
from interfaces.webdav.terms import Terms
from interfaces.webdav.visit import Visit
from interfaces.webdav.writing import DIRECTORY_MODE, Removal, describe_failures, forget_locks

_COPY_DEPTHS = frozenset({Depth.ZERO, Depth.INFINITY})
_MOVE_DEPTHS = frozenset({Depth.INFINITY})


@dataclass(frozen=True, slots=True)
class Passage:
    """From one visit's place to another's. `arrival` is the visit of the destination: same request, same caller."""

    departure: Visit
    arrival: Visit
    overwrite: bool

    @property
    def within(self) -> bool:
        """Tell whether both ends are in one branch."""
        return self.departure.address.branch == self.arrival.address.branch


def copy(departure: Visit, arrival: Visit) -> Reply:
    """Copy what stands at one place to another. Blocks. Raises `Fault`."""
    headers = departure.request.headers
    passage = Passage(departure, arrival, read_overwrite(headers))
    depth = read_depth(headers, Depth.INFINITY, _COPY_DEPTHS)
    source = departure.place.existing()
    terms = _require(passage, source, moves=False)
    if not stat.S_ISDIR(source.st_mode):
        return _copy_file(passage, source, terms)
    existed = _clear(passage, terms)
    copying = _Copying(departure.place.workspace, arrival.place.workspace, within=passage.within)
    copying.copy(source, arrival.place.directory(), arrival.place.names, deep=depth is Depth.INFINITY)
    arrival.place.workspace.sync()
    if copying.failures:
        return describe_failures(arrival, copying.failures)
    return Reply(204 if existed else 201)


def move(departure: Visit, arrival: Visit) -> Reply:
    """Move what stands at one place to another of the same branch. Blocks. Raises `Fault`."""
    headers = departure.request.headers
    passage = Passage(departure, arrival, read_overwrite(headers))
    source = departure.place.existing()
    if stat.S_ISDIR(source.st_mode):
        read_depth(headers, Depth.INFINITY, _MOVE_DEPTHS)
    if not passage.within:
        raise Fault(Kind.NOT_PERMITTED, "nothing is moved from one branch to another", hint="copy it, then delete it")
    terms = _require(passage, source, moves=True)
    existed = arrival.place.attributes is not None
    if existed and (stat.S_ISDIR(source.st_mode) or arrival.place.is_collection):
        _clear(passage, terms)
    _rename(passage)
    departure.place.workspace.sync()
    forget_locks(departure, departure.place.names, itself=True)
    forget_locks(arrival, arrival.place.names, itself=False)
    return Reply(204 if existed else 201)


def _require(passage: Passage, source: Attributes, *, moves: bool) -> Terms:
    """Return the terms of the destination. Raises `Kind.PRECONDITION`, `Kind.INTO_ITSELF`, a 423 `Objection` when it cannot be."""
    here, there = passage.departure.place, passage.arrival.place
    if moves:
        here.workspace.require_writable(here.directory(), here.name)
    there.workspace.require_writable(there.directory(), there.name)
    if passage.within and (_is_in(there.names, here.names) or _is_in(here.names, there.names)):
        raise Fault(Kind.INTO_ITSELF, f"{here.title} and {there.title} are one in the other", hint="choose a destination beside the source")
    Terms(passage.departure).require(source, *([Reach(here.names, membership=True, below=True)] if moves else []))
    if there.attributes is not None and not passage.overwrite:
        raise _exists(there)
    reach = Reach(there.names, membership=there.attributes is None, below=True)
    terms = Terms(passage.arrival)
    terms.require_unlocked(passage.arrival.book.read(), reach)
    return terms


def _is_in(names: Names, other: Names) -> bool:
    return names[: len(other)] == other


def _clear(passage: Passage, terms: Terms) -> bool:
    """Remove what stands at the destination, and tell whether anything did. Raises the fault of what stays."""
    place = passage.arrival.place
    if place.attributes is None:
        return False
    if not place.is_collection:
        place.workspace.unlink(place.directory(), place.name)
        return True
    removal = Removal(passage.arrival, terms)
    removal.remove(place.directory(), place.names, place.attributes)
    if removal.failures:
        raise removal.failures[0][1]
    forget_locks(passage.arrival, place.names, itself=False)
    return True


def _rename(passage: Passage) -> None:
    here, there = passage.departure.place, passage.arrival.place
    try:
        there.workspace.rename(here.directory(), here.name, there.directory(), there.name, replace=passage.overwrite)
    except Fault as fault:
        if fault.kind is Kind.EXISTS and not passage.overwrite:
            raise _exists(there) from fault
        raise


def _copy_file(passage: Passage, source: Attributes, terms: Terms) -> Reply:
    there = passage.arrival.place
    existed = _clear(passage, terms) if there.is_collection else there.attributes is not None

    def still_so(current: Attributes | None) -> None:
        if current is not None and not passage.overwrite:
            raise _exists(there)
        terms.require_unlocked(passage.arrival.book.read(), Reach(there.names, membership=current is None))

    if passage.within:
        there.workspace.copy(source.node, there.directory(), there.name, condition=still_so)
        return Reply(204 if existed else 201)
    origin = passage.departure.place.workspace
    dead = _dead(origin, source.node)
    with closing(origin.open(source.node, Access())) as handle:
        mode = stat.S_IMODE(source.st_mode)
        content = HandleContent(handle)
        there.workspace.publish(there.directory(), there.name, mode, content, condition=still_so, attach=lambda _: dead)
    return Reply(204 if existed else 201)


def _exists(place: Place) -> Fault:
    return Fault(Kind.PRECONDITION, f"{place.title} exists", hint="send Overwrite: T to replace it")


def _dead(workspace: Workspace, node: int) -> Mapping[bytes, bytes | None]:
    return {DEAD: workspace.xattrs(node).get(DEAD)}


class _Copying:
    """Copies a collection from the top down, as far as that goes."""

    def __init__(self, origin: Workspace, target: Workspace, *, within: bool) -> None:
        self._origin = origin
        self._target = target
        self._within = within
        self.failures: list[tuple[Names, Fault]] = []

    def copy(self, source: Attributes, parent: int, names: Names, *, deep: bool) -> None:
        """Copy a directory to `names` in the directory `parent`, with (`deep`) everything in it; what failed is in `failures`."""
        waiting = deque([(source, parent, names)])
        while waiting:
            attributes, parent, names = waiting.popleft()
            try:
                made = self._copy_one(attributes, parent, names)
            except Fault as fault:
                self.failures.append((names, fault))
                continue
            if made is not None and deep:
                waiting.extend((member, made, (*names, name)) for name, member in self._origin.list(attributes.node))

    def _copy_one(self, attributes: Attributes, parent: int, names: Names) -> int | None:
        """Copy one node without what is in it; return the directory when it is one. Pipes and the like stay behind: nobody sees them."""
        name, mode = names[-1], stat.S_IMODE(attributes.st_mode)
        match stat.S_IFMT(attributes.st_mode):
            case stat.S_IFDIR:
                made = self._target.mkdir(parent, name, mode or DIRECTORY_MODE).node
                for xattr, value in _dead(self._origin, attributes.node).items():
                    if value is not None:
                        self._target.set_xattr(made, xattr, value)
                return made
            case stat.S_IFLNK:
                self._target.symlink(parent, name, self._origin.readlink(attributes.node))
            case stat.S_IFREG if self._within:
                self._target.copy(attributes.node, parent, name)
            case stat.S_IFREG:
                self._stream(attributes, parent, name, mode)
        return None

    def _stream(self, attributes: Attributes, parent: int, name: bytes, mode: int) -> None:
        dead = _dead(self._origin, attributes.node)
        with closing(self._origin.open(attributes.node, Access())) as handle:
            self._target.publish(parent, name, mode, HandleContent(handle), attach=lambda _: dead)

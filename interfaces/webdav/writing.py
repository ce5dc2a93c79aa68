"""PUT, MKCOL and DELETE.

1. A file is replaced whole and is on stable storage when the answer goes out. Conditions, beliefs and locks are asked in the moment of the
   change, so a stale ``If-Match`` never wins over another client, whichever worker that talks to.
2. A part of a file is not put (RFC 9110 section 14.5): taking it for the whole would destroy the file.
3. A body that is shorter than its client announced, in whatever header, leaves the file as it was.
4. Nothing is made above a place; a missing directory is 409.
5. A collection goes from the bottom up. What cannot be removed is named, with everything above it left standing and nothing said of that.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import AttributeChange, Attributes, Content, Workspace
from interfaces.web.asgi import Reply
from interfaces.web.conditions import tag_of
from interfaces.web.names import Names
from interfaces.web.problems import Refusal
from interfaces.webdav.faults import element_of, status_of
from interfaces.webdav.headers import read_expected_length
from interfaces.webdav.locks import Locks, Reach, without
from interfaces.webdav.multistatus import answer, failed
from interfaces.webdav.terms import Terms
from interfaces.webdav.visit import Visit

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
_GONE = frozenset({Kind.NOT_FOUND, Kind.STALE})


@dataclass(slots=True)
class Measured:
    """A content that has to have a length; it is too short or too long only when `read` has noticed."""

    content: Content
    expected: int | None
    received: int = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`; nothing at the end. Raises `Kind.INVALID` when that comes too early or too late."""
        piece = self.content.read(size)
        self.received += len(piece)
        if self.expected is not None and (self.received > self.expected or (not piece and self.received < self.expected)):
            raise Fault(
                Kind.INVALID,
                f"{self.received} of {self.expected} bytes arrived",
                hint="a proxy on the way may drop bodies that are sent in chunks",
            )
        return piece


class Upkeep:
    """The condition of one PUT, asked by the store in the moment of the change; remembers what stood there."""

    def __init__(self, terms: Terms, names: Names) -> None:
        """Ask the terms of the request about a file at `names`."""
        self._terms = terms
        self._names = names
        self.replaced = False

    def __call__(self, current: Attributes | None) -> None:
        """Return when the file may be put. Raises what the terms raise."""
        self.replaced = current is not None
        self._terms.require(current, Reach(self._names, membership=current is None))


def check_put(visit: Visit) -> None:
    """Return when a PUT has a chance; asked before a body that is worth refusing early. Blocks. Raises `Fault`."""
    _require_whole_file(visit)
    place = visit.place
    place.workspace.require_writable(place.directory(), place.name)
    Upkeep(Terms(visit), place.names)(place.attributes)


def put(visit: Visit, content: Content) -> Reply:
    """Put a file. Blocks. Raises `Fault`."""
    _require_whole_file(visit)
    place, headers = visit.place, visit.request.headers
    condition = Upkeep(Terms(visit), place.names)
    measured = Measured(content, read_expected_length(headers))
    attributes = place.workspace.publish(place.directory(), place.name, FILE_MODE, measured, condition=condition)
    fields = [("etag", tag_of(attributes))]
    if (seconds := headers.get("x-oc-mtime", "")).isdecimal() and len(seconds) < 12:
        place.workspace.set_attributes(attributes.node, AttributeChange(mtime_ns=int(seconds) * 1_000_000_000))
        fields.append(("x-oc-mtime", "accepted"))
    return Reply(204 if condition.replaced else 201, fields)


def _require_whole_file(visit: Visit) -> None:
    if "content-range" in visit.request.headers:
        raise Fault(Kind.INVALID, "a file is put whole", hint="leave out Content-Range")
    if visit.place.is_collection:
        raise Fault(Kind.IS_A_DIRECTORY, f"{visit.place.title} is a directory", hint="name a file in it")


def make_collection(visit: Visit) -> Reply:
    """Make a directory. Blocks. Raises `Fault`."""
    if visit.body:
        # RFC 4918 section 9.3: what a body would mean is not defined, and a server that does not know it says so.
        raise Refusal(415, Kind.UNSUPPORTED, "MKCOL takes no body", hint="make the collection, then fill it")
    place = visit.place
    if place.attributes is not None:
        raise Fault(Kind.EXISTS, f"{place.title} exists", hint="remove it first, or use it")
    parent = place.directory()
    place.workspace.require_writable(parent, place.name)
    Terms(visit).require(None, Reach(place.names, membership=True))
    place.workspace.mkdir(parent, place.name, DIRECTORY_MODE)
    place.workspace.sync()
    return Reply(201)


def delete(visit: Visit) -> Reply:
    """Remove a file, or a collection with all that is in it. Blocks. Raises `Fault`."""
    place = visit.place
    attributes = place.existing()
    parent, terms = place.directory(), Terms(visit)
    reach = Reach(place.names, membership=True)
    terms.require(attributes, reach)
    if stat.S_ISDIR(attributes.st_mode):
        removal = Removal(visit, terms)
        removal.remove(parent, place.names, attributes)
        failures = removal.failures
    else:
        place.workspace.unlink(parent, place.name, condition=lambda current: terms.require(current, reach))
        failures = []
    place.workspace.sync()
    return _deleted(visit, failures)


def forget_locks(visit: Visit, names: Names, *, itself: bool) -> None:
    """End the locks on what is gone."""
    visit.book.change(lambda locks: without(locks, names, itself=itself))


def describe_failures(visit: Visit, failures: list[tuple[Names, Fault]]) -> Reply:
    """Return the answer that names what could not be done."""
    method = visit.request.method
    return answer(failed(visit.address.href(names), status_of(fault, method), element_of(fault, method)) for names, fault in failures)


@dataclass(slots=True)
class _Level:
    """A directory that is being emptied."""

    parent: int
    names: Names
    node: int
    rest: Iterator[tuple[bytes, Attributes]]
    failed: bool = False


class Removal:
    """Removes a collection from the bottom up, as far as that goes."""

    def __init__(self, visit: Visit, terms: Terms) -> None:
        """Remove for `visit`, stopped by the locks that its terms have no token for."""
        self._workspace: Workspace = visit.place.workspace
        self._terms = terms
        self._locks: Locks = visit.book.read()
        self.failures: list[tuple[Names, Fault]] = []

    def remove(self, parent: int, names: Names, attributes: Attributes) -> None:
        """Remove the directory at `names`; what stays is in `failures`."""
        levels = [self._enter(parent, names, attributes)]
        while levels:
            level = levels[-1]
            entry = next(level.rest, None)
            if entry is None:
                self._leave(levels)
            elif stat.S_ISDIR(entry[1].st_mode):
                levels.append(self._enter(level.node, (*level.names, entry[0]), entry[1]))
            else:
                level.failed |= not self._attempt(level.node, (*level.names, entry[0]), directory=False)

    def _enter(self, parent: int, names: Names, attributes: Attributes) -> _Level:
        return _Level(parent, names, attributes.node, iter(self._workspace.list(attributes.node)))

    def _leave(self, levels: list[_Level]) -> None:
        level = levels.pop()
        gone = not level.failed and self._attempt(level.parent, level.names, directory=True)
        if levels:
            levels[-1].failed |= not gone

    def _attempt(self, parent: int, names: Names, *, directory: bool) -> bool:
        """Remove one name and tell whether it is gone."""
        remove = self._workspace.rmdir if directory else self._workspace.unlink
        try:
            self._terms.require_unlocked(self._locks, Reach(names, membership=True))
            remove(parent, names[-1])
        except Fault as fault:
            if fault.kind in _GONE:
                return True
            self.failures.append((names, fault))
            return False
        return True


def _deleted(visit: Visit, failures: list[tuple[Names, Fault]]) -> Reply:
    names = visit.place.names
    if not failures:
        forget_locks(visit, names, itself=True)
        return Reply(204)
    if len(failures) == 1 and failures[0][0] == names:
        raise failures[0][1]
    return describe_failures(visit, failures)

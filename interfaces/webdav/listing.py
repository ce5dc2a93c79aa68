"""PROPFIND: what a resource is, and what is in a collection.

1. Depth infinity is refused for a collection: its answer has no bound. A request without ``Depth`` means infinity, which is 0 for a file.
2. A listing is one call of the port; what it does not tell (dead properties, the target of a link, locks, room) is asked for only when
   somebody wants to know.
3. A long listing goes out in pieces of `BATCH` resources: its answer is never in memory whole.
4. ``Prefer: return=minimal`` and ``Brief: t`` leave out the properties that are not there.
5. A member that goes away while it is listed is not in the answer; that is no failure of the others.
"""

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes, Workspace
from interfaces.web.asgi import Reply, Request
from interfaces.web.names import Names, encode_segment
from interfaces.web.pool import Pool
from interfaces.webdav.bodies import Wanted, parse_propfind
from interfaces.webdav.faults import XML, Objection
from interfaces.webdav.headers import Depth, read_depth
from interfaces.webdav.lobby import Exhibit
from interfaces.webdav.markup import DAV, empty
from interfaces.webdav.multistatus import HEAD, TAIL, described
from interfaces.webdav.places import members
from interfaces.webdav.properties import EVERYWHERE, LABELS, LIVE, LOCKING, Subject, Surroundings, Tell, decode_dead, titles_of
from interfaces.webdav.terms import check_reading
from interfaces.webdav.visit import Visit

BATCH = 1000
_QUOTA = frozenset({f"{DAV}quota-available-bytes", f"{DAV}quota-used-bytes"})
_DISCOVERY = f"{DAV}lockdiscovery"
_GONE = frozenset({Kind.NOT_FOUND, Kind.STALE})


@dataclass(frozen=True, slots=True)
class Form:
    """How each resource is told: by functions for live properties in order, `dead` names, and which of it may be left out when absent."""

    live: tuple[tuple[str, Tell], ...]
    dead: tuple[str, ...] = ()
    everything: bool = False
    titles: bool = False
    minimal: bool = False

    @property
    def needs_labels(self) -> bool:
        """Tell whether the labels of each resource are wanted."""
        return self.titles or any(name in LABELS for name, _ in self.live)

    @property
    def needs_dead(self) -> bool:
        """Tell whether the dead properties of each resource are wanted."""
        return self.everything or self.titles or bool(self.dead)


def compile_form(wanted: Wanted, depth: Depth, *, minimal: bool) -> Form:
    """Return how to tell what is wanted. Pure."""
    names = wanted.names
    if wanted.everything:
        names = tuple(dict.fromkeys((*EVERYWHERE, *(LOCKING if depth is Depth.ZERO else ()), *names)))
    live = tuple((name, LIVE[name]) for name in names if name in LIVE)
    dead = tuple(name for name in names if name not in LIVE)
    return Form(live, dead, wanted.everything, wanted.titles, minimal or wanted.everything)


def tell(form: Form, subject: Subject, around: Surroundings) -> str:
    """Return the response of one resource. Pure."""
    if form.titles:
        return described(subject.href, {200: titles_of(subject)})
    found: list[str] = []
    missing: list[str] = []
    for name, telling in form.live:
        element = telling(subject, around)
        if element is None:
            missing.append(name)
        else:
            found.append(element)
    for name in subject.dead if form.everything else form.dead:
        if name in subject.dead:
            found.append(subject.dead[name])
        else:
            missing.append(name)
    return described(subject.href, {200: found, 404: [] if form.minimal else [empty(name) for name in missing]})


def read_form(request: Request, body: bytes, *, collection: bool) -> tuple[Form, Depth]:
    """Return what a PROPFIND asks for. Raises `Kind.INVALID`, and an `Objection` to depth infinity."""
    depth = read_depth(request.headers, Depth.INFINITY, frozenset(Depth))
    if depth is Depth.INFINITY and collection:
        raise Objection(
            403,
            Kind.UNSUPPORTED,
            "the whole tree is not listed at once",
            "<D:propfind-finite-depth/>",
            hint="ask with Depth: 1, level by level",
        )
    minimal = "return=minimal" in request.headers.get("prefer", "").lower() or request.headers.get("brief", "").lower() == "t"
    return compile_form(parse_propfind(body), depth, minimal=minimal), depth


def list_place(visit: Visit, pool: Pool) -> Reply:
    """Return the answer about a place of a branch. Blocks; what it returns may go on reading the workspace while it is sent."""
    attributes = visit.place.existing()
    check_reading(visit)
    collection = visit.place.is_collection
    form, depth = read_form(visit.request, visit.body, collection=collection)
    around = _surroundings(visit, form)
    href = visit.address.href(visit.asked, collection=collection)
    workspace = visit.place.workspace
    label = workspace.label(attributes.node) if form.needs_labels else {}
    itself = Subject(href, visit.place.name, visit.place.names, attributes, _dead(workspace, attributes, form), label)
    entries: Sequence[tuple[bytes, Attributes]] = ()
    if collection and depth is Depth.ONE:
        entries = workspace.list(attributes.node)
    return _answer(form, around, itself, _below(visit, form, href, entries), len(entries), pool)


def list_lobby(request: Request, body: bytes, href: str, exhibit: Exhibit, inside: Callable[[], Mapping[bytes, Exhibit]]) -> Reply:
    """Return the answer about a place of the lobby; `inside` gives what is in it."""
    form, depth = read_form(request, body, collection=exhibit.is_collection)
    name = href.rstrip("/").rpartition("/")[2].encode()
    subjects = [Subject(href, name, (), exhibit.attributes)]
    if exhibit.is_collection and depth is Depth.ONE:
        subjects += (_member(href, name, (), member.attributes, {}) for name, member in inside().items())
    return _reply("".join([HEAD, *(tell(form, subject, Surroundings()) for subject in subjects), TAIL]).encode())


def _surroundings(visit: Visit, form: Form) -> Surroundings:
    names = {name for name, _ in form.live}
    locks = visit.book.read() if _DISCOVERY in names else ()
    space = visit.place.workspace.space() if names & _QUOTA else None
    return Surroundings(locks, space, visit.book.now(), visit.address.base, visit.address.href)


def _below(visit: Visit, form: Form, href: str, entries: Sequence[tuple[bytes, Attributes]]) -> Iterator[Subject]:
    workspace, names = visit.place.workspace, visit.place.names
    for name, target in members(workspace, names, entries):
        try:
            dead = _dead(workspace, target, form)
            label = workspace.label(target.node) if form.needs_labels else {}
        except Fault as fault:
            if fault.kind in _GONE:
                continue
            raise
        yield replace(_member(href, name, names, target, dead), label=label)


def _member(href: str, name: bytes, above: Names, attributes: Attributes, dead: Mapping[str, str]) -> Subject:
    slash = "/" if stat.S_ISDIR(attributes.st_mode) else ""
    return Subject(f"{href}{encode_segment(name)}{slash}", name, (*above, name), attributes, dead)


def _dead(workspace: Workspace, attributes: Attributes, form: Form) -> Mapping[str, str]:
    return decode_dead(workspace.xattrs(attributes.node)) if form.needs_dead else {}


def _answer(form: Form, around: Surroundings, itself: Subject, below: Iterator[Subject], count: int, pool: Pool) -> Reply:
    told = tell(form, itself, around)
    if count <= BATCH:
        return _reply("".join([HEAD, told, *(tell(form, member, around) for member in below), TAIL]).encode())

    def next_piece() -> bytes:
        return "".join([tell(form, member, around) for member in islice(below, BATCH)]).encode()

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield (HEAD + told).encode()
        while piece := await pool.run(next_piece):
            yield piece
        yield TAIL.encode()

    return Reply(207, [XML, ("cache-control", "no-store")], pieces=pieces())


def _reply(body: bytes) -> Reply:
    return Reply(207, [XML, ("cache-control", "no-store")], body)

"""The WebDAV door (RFC 4918, classes 1, 2 and 3): one ASGI application over `Control`.

1. A request is answered in a thread of the pool from end to end, but for what is small and warm: who asks, GET of a short file, and
   the properties of one resource.
2. Who asks is known before a body is taken. ``OPTIONS`` alone is answered to strangers, the same for every path: desktops ask it before
   they ask their user for a password.
3. A branch is opened for each request and closed with it; between two requests this door keeps nothing.
4. What cannot be changed because nobody made it (the lobby) is refused alike, whether it is there or not.
"""

from __future__ import annotations

import stat
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from typing import TypeVar

from interfaces.faults import Kind
from interfaces.port import Caller, Content, Control
from interfaces.web.asgi import Receive, Reply, Request, Scope, Send
from interfaces.web.bodies import Upload, read_body
from interfaces.web.credentials import authenticate
from interfaces.web.exchange import Exchange
from interfaces.web.guard import LOOPBACK_NAMES
from interfaces.web.limits import Limits
from interfaces.web.names import Names, display_name, encode_path
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal
from interfaces.webdav.copying import copy, move
from interfaces.webdav.faults import render_fault
from interfaces.webdav.headers import read_destination, strip_prefix
from interfaces.webdav.listing import list_lobby, list_place
from interfaces.webdav.lobby import COLLECTION, find_exhibit, list_exhibits, read_only, split_branch
from interfaces.webdav.lockbook import Lockbook
from interfaces.webdav.locking import lock, unlock
from interfaces.webdav.markup import MAX_BYTES
from interfaces.webdav.patching import patch
from interfaces.webdav.places import Place, locate, members
from interfaces.webdav.reading import answer_exhibit, answer_file, index
from interfaces.webdav.terms import check_reading
from interfaces.webdav.visit import Address, Visit
from interfaces.webdav.writing import check_put, delete, make_collection, put

T = TypeVar("T")

PREFIX = "/dav"
METHODS = ("COPY", "DELETE", "GET", "HEAD", "LOCK", "MKCOL", "MOVE", "OPTIONS", "PROPFIND", "PROPPATCH", "PUT", "UNLOCK")
_ALLOW = ("allow", ", ".join(METHODS))
_CLASSES = (("dav", "1, 2, 3"), ("ms-author-via", "DAV"), _ALLOW)
_WITH_XML = frozenset({"PROPFIND", "PROPPATCH", "LOCK", "MKCOL"})
_AS_NAMED = frozenset({"DELETE", "MOVE"})


def _urn() -> str:
    return uuid.uuid4().urn


class WebdavDoor:
    """The ASGI application."""

    def __init__(
        self,
        control: Control,
        *,
        pool: Pool,
        limits: Limits | None = None,
        names: frozenset[str] = LOOPBACK_NAMES,
        clock: Callable[[], float] = time.time,
        fresh_token: Callable[[], str] = _urn,
    ) -> None:
        """Serve `control` to who asks for one of `names`; `clock` gives seconds since the epoch, `fresh_token` tokens for locks."""
        self._control = control
        self._limits = limits or Limits()
        self._pool = pool
        self._clock = clock
        self._fresh_token = fresh_token
        self._notes = control.notes("webdav")
        self._exchange = Exchange("webdav", pool, render_fault, names=names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._exchange.serve(scope, receive, send, self._answer)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Return what is entered before the first request and left after the last: nothing starts with this door."""
        yield

    def drain(self) -> None:
        """Do nothing: every answer of this door has an end of its own."""

    async def _answer(self, request: Request) -> Reply:
        if request.method == "OPTIONS":
            return Reply(200, [*_CLASSES])
        if request.method not in METHODS:
            raise Refusal(405, Kind.UNSUPPORTED, f"{request.method} is no method of WebDAV", headers=dict([_ALLOW]))
        names = strip_prefix(request.raw_path, PREFIX.encode())
        caller = await authenticate(self._control, request, "webdav", self._pool)
        if names is None:
            return await self._answer_outside(request)
        if request.method in {"GET", "HEAD"}:
            return await self._read(request, caller, names)
        if request.method == "PUT":
            return await self._take(request, caller, names)
        body = await read_body(request, MAX_BYTES, self._limits) if request.method in _WITH_XML else b""
        if request.method == "PROPFIND" and request.headers.get("depth") == "0" and split_branch(names) is not None:
            return self._act(request, caller, names, body)
        return await self._pool.run(self._act, request, caller, names, body)

    async def _answer_outside(self, request: Request) -> Reply:
        """Answer what lies outside: the root of the server, which Windows lists before it goes in, has this door in it and no more."""
        if request.method != "PROPFIND" or request.raw_path != b"/":
            raise Refusal(404, Kind.NOT_FOUND, "nothing is served here", hint=f"browse {PREFIX}/")
        body = await read_body(request, MAX_BYTES, self._limits)
        return list_lobby(request, body, "/", COLLECTION, lambda: {PREFIX[1:].encode(): COLLECTION})

    # -- reading ----------------------------------------------------------------------------------------------------

    async def _read(self, request: Request, caller: Caller, names: Names) -> Reply:
        branch = split_branch(names)
        if branch is None:
            return await self._pool.run(self._show_exhibit, request, caller, names)
        if "if" in request.headers:
            await self._pool.run(self._visit, request, caller, names, b"", check_reading)
        with ExitStack() as resources:
            workspace = resources.enter_context(closing(self._control.workspace(caller, branch[0])))
            place = locate(workspace, branch[1])
            attributes = place.existing()
            if place.is_collection:
                return await self._pool.run(_index, place, attributes.node, _title(names))
            return await answer_file(workspace, attributes, place.name, request, self._pool, resources)

    def _show_exhibit(self, request: Request, caller: Caller, names: Names) -> Reply:
        exhibit = find_exhibit(self._control, caller, names)
        if not exhibit.is_collection:
            return answer_exhibit(exhibit, names[-1], request)
        exhibits = list_exhibits(self._control, caller, names)
        return index(_title(names), ((name, each.is_collection) for name, each in exhibits.items()))

    # -- changing ---------------------------------------------------------------------------------------------------

    async def _take(self, request: Request, caller: Caller, names: Names) -> Reply:
        upload = Upload(request, self._limits)
        if self._is_worth_asking(request.headers):
            await self._pool.run(self._visit, request, caller, names, b"", check_put)
        return await upload.into(self._pool, self._put, request, caller, names, upload)

    def _is_worth_asking(self, headers: Mapping[str, str]) -> bool:
        """Tell whether to ask before the body is taken: because the client waits for that, or because much would travel for nothing."""
        length = headers.get("content-length", "")
        return "expect" in headers or not length.isdecimal() or int(length[:20]) > self._limits.upload_buffer

    def _put(self, request: Request, caller: Caller, names: Names, content: Content) -> Reply:
        return self._visit(request, caller, names, b"", lambda visit: put(visit, content))

    def _act(self, request: Request, caller: Caller, names: Names, body: bytes) -> Reply:
        if request.method == "PROPFIND" and split_branch(names) is None:
            return self._list_lobby(request, caller, names, body)
        return self._visit(request, caller, names, body, self._method(request.method))

    def _method(self, name: str) -> Callable[[Visit], Reply]:
        match name:
            case "PROPFIND":
                return lambda visit: list_place(visit, self._pool)
            case "PROPPATCH":
                return patch
            case "MKCOL":
                return make_collection
            case "DELETE":
                return delete
            case "LOCK":
                return lambda visit: lock(visit, self._fresh_token)
            case "UNLOCK":
                return unlock
            case "COPY":
                return lambda visit: self._pass(visit, copy)
            case _:
                return lambda visit: self._pass(visit, move)

    def _list_lobby(self, request: Request, caller: Caller, names: Names, body: bytes) -> Reply:
        exhibit = find_exhibit(self._control, caller, names)
        href = f"{PREFIX}/{encode_path(names)}"
        if exhibit.is_collection and not href.endswith("/"):
            href += "/"
        return list_lobby(request, body, href, exhibit, lambda: list_exhibits(self._control, caller, names))

    def _visit(self, request: Request, caller: Caller, names: Names, body: bytes, method: Callable[[Visit], T]) -> T:
        """Return what a method says of the place that a request names; the branch is open meanwhile."""
        branch, inside = self._split(names)
        with closing(self._control.workspace(caller, branch)) as workspace:
            place = locate(workspace, inside, follow=request.method not in _AS_NAMED)
            book = Lockbook(self._notes, branch, self._clock)
            return method(Visit(request, caller, Address(PREFIX, branch), inside, place, book, body))

    def _pass(self, departure: Visit, method: Callable[[Visit, Visit], Reply]) -> Reply:
        """Return what COPY or MOVE say, with the destination opened beside the source."""
        names = read_destination(departure.request.headers, PREFIX.encode())
        return self._visit(departure.request, departure.caller, names, b"", lambda arrival: method(departure, arrival))

    def _split(self, names: Names) -> tuple[str, Names]:
        branch = split_branch(names)
        if branch is None:
            raise read_only(names)
        return branch


def _index(place: Place, node: int, title: str) -> Reply:
    entries = members(place.workspace, place.names, place.workspace.list(node))
    return index(title, ((name, stat.S_ISDIR(entry.st_mode)) for name, entry in entries))


def _title(names: Names) -> str:
    return f"{PREFIX}/{display_name(b'/'.join(names))}"

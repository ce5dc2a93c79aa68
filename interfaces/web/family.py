"""The family: one ASGI application that hands each request to the door it is for.

1. The door is chosen from the request line and from whether the request is signed as Amazon's clients sign, by nothing else. A request
   that no other door claims belongs to S3, whose buckets are the first name of a path, but for what only WebDAV can mean: Windows asks
   at the root of a server first.
2. A path is looked at as it came: ``%2f`` opens no other door.
3. Doors start before the first request and end after the last; `drain` asks those with answers that never end to end them.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from interfaces.web.asgi import Receive, Scope, Send

_SIGNED_HEADER = b"AWS4-HMAC-SHA256"
_SIGNED_QUERY = (b"X-Amz-Algorithm=", b"X-Amz-Signature=")
_SIGNED_BEFORE = (b"Signature=", b"AWSAccessKeyId=")
_WEBDAV = frozenset({"COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND", "PROPPATCH", "UNLOCK"})
_HTTP = frozenset({b"v1", b"healthz", b"readyz", b"openapi.json", b".well-known"})


class Member(Protocol):
    """A door of the family."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Return what is entered before the first request and left after the last."""

    def drain(self) -> None:
        """Let answers that have no end of their own end soon, and begin none."""


@dataclass(frozen=True, slots=True)
class Members:
    """The doors; None where one is not served. What belongs to a door that is not served goes to `http`, which says so."""

    http: Member
    s3: Member | None = None
    webdav: Member | None = None
    git: Member | None = None
    mcp: Member | None = None

    def served(self) -> list[Member]:
        """Return the doors that are served."""
        return [member for member in (self.http, self.s3, self.webdav, self.git, self.mcp) if member is not None]


class Family:
    """The ASGI application of all doors."""

    def __init__(self, members: Members) -> None:
        """Serve `members`."""
        self._members = members
        self._by_name: dict[bytes, Member] = dict.fromkeys(_HTTP, members.http)
        for name, member in ((b"dav", members.webdav), (b"git", members.git), (b"mcp", members.mcp)):
            self._by_name[name] = member or members.http
        self._rest = members.s3 or members.http

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or (lifespan) start and end with the server."""
        if scope["type"] == "http":
            await self.member_for(scope)(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    def member_for(self, scope: Scope) -> Member:
        """Return the door of a request."""
        if self._members.s3 is not None and is_signed(scope):
            return self._members.s3
        first = scope["raw_path"][1:].partition(b"/")[0]
        found = self._by_name.get(first)
        if found is None:
            found = self._members.webdav if self._members.webdav is not None and is_webdav(scope) else self._rest
        return found

    def drain(self) -> None:
        """Let answers that have no end of their own end soon, and begin none."""
        for member in self._members.served():
            member.drain()

    async def _live(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            for member in self._members.served():
                await stack.enter_async_context(member.lifespan())
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


def is_webdav(scope: Scope) -> bool:
    """Tell whether only WebDAV can be meant: by the method, or by a question to the root that no page in a browser asks."""
    if scope["method"] in _WEBDAV:
        return True
    return scope["method"] == "OPTIONS" and scope["raw_path"] == b"/" and all(name != b"origin" for name, _ in scope["headers"])


def is_signed(scope: Scope) -> bool:
    """Tell whether a request is signed as Amazon's clients sign: in a header, or in its query."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bool(value.startswith((_SIGNED_HEADER, b"AWS ")))
    query: bytes = scope["query_string"]
    return b"=" in query and (any(mark in query for mark in _SIGNED_QUERY) or all(mark in query for mark in _SIGNED_BEFORE))

"""The git door: smart HTTP and Git LFS as one ASGI application.

1. Every request is authenticated, opens a view, and closes it when its answer was sent; between two requests this door keeps nothing.
2. Failures of a conversation in git's protocol are told in it; failures before it began are HTTP, with one line that git prints.
3. A body may be compressed; what it inflates to is bounded (`streams`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from functools import partial

from interfaces.faults import Fault, Kind
from interfaces.git.fetching import Fetching
from interfaces.git.lfs import (
    MEDIA_TYPE,
    Lockbook,
    answer_batch,
    read_batch,
    read_file,
    render_attributes,
    send_large,
)
from interfaces.git.pktline import split_packets
from interfaces.git.ports import LargeFile, Repositories, View
from interfaces.git.pushing import Pushing, PushLimits
from interfaces.git.replies import announce, offer, sentence
from interfaces.git.requests import is_version_2, read_protocol
from interfaces.git.routes import Address, Asked, read_address
from interfaces.git.streams import Inflating, Stream
from interfaces.port import Caller, Control, Document
from interfaces.web.asgi import Receive, Reply, Request, Scope, Send
from interfaces.web.bodies import Arrival, Upload, read_body
from interfaces.web.conditions import Validators, select_ranges
from interfaces.web.credentials import authenticate
from interfaces.web.exchange import Exchange
from interfaces.web.guard import LOOPBACK_NAMES
from interfaces.web.limits import Limits, parse_document
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal, headers_of, status_of

MOST_REQUEST = 64 << 20
"""Bytes of a fetch's request, inflated: a million commits that a client may have."""

_FRESH = (("cache-control", "no-cache, max-age=0, must-revalidate"), ("expires", "Fri, 01 Jan 1980 00:00:00 GMT"), ("pragma", "no-cache"))
_CHALLENGE = ("www-authenticate", 'Basic realm="agent-nas"')
_ENDED = frozenset({Kind.UNAUTHENTICATED, Kind.EXPIRED, Kind.REVOKED})


class GitDoor:
    """The ASGI application."""

    def __init__(
        self,
        control: Control,
        repositories: Repositories,
        *,
        pool: Pool,
        limits: Limits | None = None,
        names: frozenset[str] | None = LOOPBACK_NAMES,
        push_limits: PushLimits | None = None,
    ) -> None:
        """Serve `repositories` to whom `control` knows, asked for under host `names` (None: any)."""
        self._control = control
        self._repositories = repositories
        self._pool = pool
        self._limits = limits or Limits()
        self._fetching = Fetching(pool)
        self._pushing = Pushing(pool, push_limits or PushLimits())
        self._locks = Lockbook(control.notes("git"))
        self._exchange = Exchange("git", pool, render_fault, names=names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._exchange.serve(scope, receive, send, self._answer)

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Return nothing to enter: this door keeps nothing."""
        return nullcontext()

    def drain(self) -> None:
        """Do nothing: every answer ends by itself."""

    async def _answer(self, request: Request) -> Reply:
        caller = await authenticate(self._control, request, "git", self._pool)
        address = read_address(request.raw_path)
        view = await self._pool.run(self._repositories.open, caller, address.branch)
        visit = _Visit(request, caller, address, view, self._pool)
        with ExitStack() as unanswered:
            unanswered.callback(visit.release)
            reply = await self._route(visit)
            unanswered.pop_all()
        return reply

    async def _route(self, visit: _Visit) -> Reply:
        match visit.address.asked, visit.request.method:
            case Asked.REFERENCES, "GET":
                return await self._references(visit)
            case Asked.FETCH, "POST":
                return await self._fetch(visit)
            case Asked.PUSH, "POST":
                return await self._push(visit)
            case Asked.ATTRIBUTES, "GET":
                return visit.whole("text/plain; charset=utf-8", render_attributes(await self._pool.run(visit.view.large_paths)))
            case Asked.LARGE, _:
                return await self._large(visit)
        raise Refusal(405, Kind.UNSUPPORTED, f"{visit.request.method} means nothing here", headers={"allow": "GET, POST"})

    # -- git ----------------------------------------------------------------------------------------------------------

    async def _references(self, visit: _Visit) -> Reply:
        service = visit.request.parameters.get("service", "")
        if service == "git-receive-pack":
            body = announce(service) + offer(visit.view.refs)
        elif service == "git-upload-pack":
            head = b"" if is_version_2(visit.protocol) else announce(service)
            body = head + await self._fetching.announce(visit.view, visit.protocol)
        else:
            raise Fault(Kind.DENIED, "this store speaks git's smart protocol only", hint="use git 1.6.6 or later")
        return visit.whole(f"application/x-{service}-advertisement", body)

    async def _fetch(self, visit: _Visit) -> Reply:
        body = await self._stream(visit.request).read_all(MOST_REQUEST)
        reviewed = await self._fetching.review(visit.view, list(split_packets(body)))
        media_type = "application/x-git-upload-pack-result"
        if reviewed.refused:
            return visit.whole(media_type, reviewed.refused)
        return visit.pieces(media_type, self._fetching.answer(visit.view, reviewed.request, visit.protocol))

    async def _push(self, visit: _Visit) -> Reply:
        push = await self._pushing.arrive(visit.view, self._stream(visit.request))
        media_type = "application/x-git-receive-pack-result"
        if push is None:
            return visit.whole(media_type, b"")
        return visit.pieces(media_type, self._pushing.conclude(visit.view, push))

    def _stream(self, request: Request) -> Stream:
        arrival = Arrival(request, self._limits.file_bytes, self._limits)
        encoding = request.headers.get("content-encoding", "identity").lower()
        if encoding in ("gzip", "x-gzip"):
            return Stream(Inflating(arrival.next).next)
        if encoding != "identity":
            raise Refusal(415, Kind.UNSUPPORTED, f"bodies encoded as {encoding} are not understood", hint="send gzip, or none")
        return Stream(arrival.next)

    # -- large files --------------------------------------------------------------------------------------------------

    async def _large(self, visit: _Visit) -> Reply:
        match visit.request.method, visit.address.rest:
            case "POST", ("objects", "batch"):
                batch = read_batch(await self._document(visit))
                credential = visit.request.headers["authorization"]
                return visit.document(await self._pool.run(answer_batch, visit.view, batch, visit.base, credential))
            case "GET", ("objects", sha256, size):
                return await self._download(visit, read_file(sha256, _number(size)))
            case "PUT", ("objects", sha256, size):
                return await self._upload(visit, read_file(sha256, _number(size)))
            case "POST", ("verify",):
                return await self._verify(visit)
            case _, ("locks", *rest):
                return await self._lock(visit, rest)
        raise Fault(Kind.NOT_FOUND, "nothing is here", hint="use Git LFS 2 or later")

    async def _download(self, visit: _Visit, file: LargeFile) -> Reply:
        content = await self._pool.run(visit.view.open_large, file)
        visit.closing.append(content.close)
        ranges = select_ranges(visit.request.headers, Validators(f'"{file.sha256}"'), file.size)
        start, end = ranges[0] if len(ranges) == 1 else (0, file.size)
        headers = [("content-length", str(end - start)), ("accept-ranges", "bytes"), ("etag", f'"{file.sha256}"')]
        if len(ranges) == 1:
            headers.append(("content-range", f"bytes {start}-{end - 1}/{file.size}"))
        pieces = send_large(visit.view, content, start, end, self._pool)
        return visit.pieces("application/octet-stream", pieces, status=206 if len(ranges) == 1 else 200, headers=headers)

    async def _upload(self, visit: _Visit, file: LargeFile) -> Reply:
        upload = Upload(visit.request, self._limits)
        await upload.into(self._pool, visit.view.put_large, file, upload)
        return visit.document({})

    async def _verify(self, visit: _Visit) -> Reply:
        document = await self._document(visit)
        if not await self._pool.run(visit.view.has_large, read_file(document.get("oid"), document.get("size"))):
            raise Fault(Kind.NOT_FOUND, "the large file did not arrive", hint="send it again")
        return visit.document({})

    async def _lock(self, visit: _Visit, rest: list[str]) -> Reply:
        view, caller, run = visit.view, visit.caller, self._pool.run
        match visit.request.method, rest:
            case "GET", []:
                asked = visit.request.parameters
                page = partial(self._locks.page, view, path=asked.get("path"), key=asked.get("id"), cursor=asked.get("cursor", ""))
                return visit.document(await run(page))
            case "POST", []:
                return await self._take_lock(visit, str((await self._document(visit)).get("path", "")))
            case "POST", ["verify"]:
                cursor = str((await self._document(visit)).get("cursor", ""))
                return visit.document(await run(self._locks.verify, view, caller, cursor))
            case "POST", [key, "unlock"]:
                force = bool((await self._document(visit)).get("force"))
                return visit.document({"lock": await run(partial(self._locks.release, key, view, caller, force=force))})
        raise Fault(Kind.NOT_FOUND, "nothing is here", hint="use Git LFS 2 or later")

    async def _take_lock(self, visit: _Visit, path: str) -> Reply:
        if not path or not await self._pool.run(visit.view.sees, path.encode("utf-8", "surrogateescape")):
            raise Fault(Kind.NOT_FOUND, f"{path}: no such path", hint="name a path of the tree")
        taken, lock = await self._pool.run(self._locks.take, path, visit.caller, datetime.now(UTC).isoformat(timespec="seconds"))
        if taken:
            return visit.document({"lock": lock}, status=201)
        return visit.document({"lock": lock, "message": f"{lock['owner']['name']} holds it already"}, status=409)

    async def _document(self, visit: _Visit) -> Document:
        return parse_document(await read_body(visit.request, self._limits.document_bytes, self._limits), self._limits)


class _Visit:
    """One request on its way to its answer, with what has to be closed after it."""

    def __init__(self, request: Request, caller: Caller, address: Address, view: View, pool: Pool) -> None:
        self.pool = pool
        self.request = request
        self.caller = caller
        self.address = address
        self.view = view
        self.closing: list[Callable[[], None]] = [view.close]

    @property
    def protocol(self) -> str:
        """Return the protocol the client asks for, as git's environment has it."""
        return read_protocol(self.request.headers.get("git-protocol", ""))

    @property
    def base(self) -> str:
        """Return the URL that large files and locks are below, as the client reached it."""
        path = self.request.raw_path.decode("ascii").partition("/info/lfs/")[0]
        return f"{self.request.scheme}://{self.request.headers['host']}{path}/info/lfs"

    def whole(self, media_type: str, body: bytes, status: int = 200) -> Reply:
        """Return an answer that is complete."""
        return Reply(status, (("content-type", media_type), *_FRESH), body, release=self.release)

    def document(self, document: Document, status: int = 200) -> Reply:
        """Return a document in the words of Git LFS."""
        return self.whole(MEDIA_TYPE, json.dumps(document).encode(), status)

    def pieces(
        self,
        media_type: str,
        pieces: AsyncIterator[bytes],
        *,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Return an answer that is made while it is sent."""
        return Reply(status, (("content-type", media_type), *_FRESH, *headers), pieces=pieces, release=self.release)

    def release(self) -> None:
        """Have everything released, off the event loop."""
        self.pool.detach(self.close)

    def close(self) -> None:
        """Release everything."""
        for close in reversed(self.closing):
            close()


def render_fault(fault: Fault, request: Request) -> Reply:
    """Return a fault as git prints it (plain text), or as Git LFS reads it."""
    own = [(name, value) for name, value in headers_of(fault).items() if name != "www-authenticate"]
    if fault.kind in _ENDED:
        own.append(_CHALLENGE)
    if b"/info/lfs/" in request.raw_path:
        body = json.dumps({"message": sentence(fault), "request_id": request.request_id}).encode()
        challenge = [("lfs-authenticate", _CHALLENGE[1])] if fault.kind in _ENDED else []
        return Reply(status_of(fault), (("content-type", MEDIA_TYPE), *own, *challenge), body)
    return Reply(status_of(fault), (("content-type", "text/plain; charset=utf-8"), *own), f"{sentence(fault)}\n".encode())


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 20 else None

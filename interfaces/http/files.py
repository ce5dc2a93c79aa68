"""The endpoint ``/v1/branches/{branch}/files/{path}``: the files of a branch over HTTP.

1. A branch is one percent-encoded segment; the path is percent-encoded names, of any bytes.
2. A workspace lives for one request: the door keeps nothing between two of them.
3. Authority is looked up before a body is read, so that a stranger cannot make the door store anything.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from interfaces.faults import Fault, Kind
from interfaces.http.bodies import read_document, spool
from interfaces.http.reads import Found, answer_found, find
from interfaces.http.responses import answer_document
from interfaces.http.writes import CONTENT_OPERATIONS, Changed, Locks, Target, change
from interfaces.port import Control, Workspace
from interfaces.web.limits import Limits
from interfaces.web.names import Names, decode_text, split_path
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal

METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")


@dataclass(frozen=True, slots=True)
class Place:
    """A path of a branch."""

    branch: str
    names: Names


def is_files_path(raw_path: bytes) -> bool:
    """Tell whether a request goes to the files of a branch."""
    segments = raw_path.split(b"/", 5)
    return len(segments) >= 5 and segments[:3] == [b"", b"v1", b"branches"] and segments[4] == b"files"


def read_place(raw_path: bytes) -> Place:
    """Return the place a request names. Raises `Kind.INVALID`."""
    _, _, _, branch, _, *rest = raw_path.split(b"/", 5)
    return Place(decode_text(branch), split_path(rest[0] if rest else b""))


class Files:
    """The endpoint, for every branch and path."""

    def __init__(self, control: Control, limits: Limits, pool: Pool, folder: Path | None) -> None:
        """Serve the workspaces of `control`; uploads rest in `folder` while they arrive."""
        self._control = control
        self._limits = limits
        self._pool = pool
        self._folder = folder
        self._locks = Locks()

    async def answer(self, request: Request, secret: str) -> Response:
        """Return the answer to a request. Raises `Fault`."""
        if request.method not in METHODS:
            raise Refusal(405, Kind.UNSUPPORTED, f"{request.method} means nothing for a file", headers={"allow": ", ".join(METHODS)})
        place = read_place(request.scope["raw_path"])
        if request.method in {"GET", "HEAD"}:
            found = await self._pool.run(self._find, request, place, secret)
            return answer_found(request, found, self._pool)
        await self._pool.run(self._control.authenticate, secret)
        return await self._change(request, place, secret)

    async def _change(self, request: Request, place: Place, secret: str) -> Response:
        query = request.query_params
        if request.method == "PUT" or query.get("op") in CONTENT_OPERATIONS:
            if "content-range" in request.headers:
                # Taking a part for the whole would destroy the file (RFC 9110 section 14.4).
                raise Fault(Kind.INVALID, "a file is put whole", hint="leave out Content-Range, or POST ?op=append")
            with await spool(request, self._limits, self._pool, self._folder) as content:
                target = Target(place.names, request.method, request.headers, query, content=content)
                status, document = await self._pool.run(self._apply, secret, place, target)
        else:
            body = await read_document(request, self._limits)
            target = Target(place.names, request.method, request.headers, query, document=body)
            status, document = await self._pool.run(self._apply, secret, place, target)
        if document is None:
            return Response(b"", status)
        return answer_document(document, status, {"etag": document["etag"]})

    def _find(self, request: Request, place: Place, secret: str) -> Found:
        return find(self._open(place, secret), place.names, request)

    def _apply(self, secret: str, place: Place, target: Target) -> Changed:
        with self._locks.of(place.branch, place.names), closing(self._open(place, secret)) as workspace:
            return change(workspace, target)

    def _open(self, place: Place, secret: str) -> Workspace:
        return self._control.workspace(self._control.authenticate(secret), place.branch)

"""The endpoint ``/v1/branches/{branch}/files/{path}``: the files of a branch over HTTP.

1. A branch is one percent-encoded segment; the path is percent-encoded names, of any bytes. ``?at=`` reads the tree of a commit.
2. A workspace is opened for one request and closed with it: the door keeps nothing between two of them.
3. A caller is known before a body is read, so that a stranger cannot make the door take one.
4. What is small and warm (attributes, a short file) is answered on the event loop; listings, long files, searches and every change
   go to the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.http.bodies import read_document
from interfaces.http.reads import Asked, describe, find_content, list_directory, resolve, search_directory
from interfaces.http.responses import answer_document, answer_read
from interfaces.http.writes import CONTENT_OPERATIONS, Changed, Target, change
from interfaces.port import Caller, Control, Document, Workspace
from interfaces.web.asgi import Reply, Request
from interfaces.web.bodies import Upload
from interfaces.web.limits import Limits
from interfaces.web.names import Names, decode_text, split_path
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal

METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")

_PREFIX = b"/v1/branches/"


@dataclass(frozen=True, slots=True)
class Place:
    """A path of a branch."""

    branch: str
    names: Names


def is_files_path(raw_path: bytes) -> bool:
    """Tell whether a request goes to the files of a branch."""
    if not raw_path.startswith(_PREFIX):
        return False
    segments = raw_path.split(b"/", 5)
    return len(segments) >= 5 and segments[4] == b"files"


def read_place(raw_path: bytes) -> Place:
    """Return the place a request names. Raises `Kind.INVALID`."""
    _, _, _, branch, _, *rest = raw_path.split(b"/", 5)
    return Place(decode_text(branch), split_path(rest[0] if rest else b""))


class Files:
    """The endpoint, for every branch and path."""

    def __init__(self, control: Control, limits: Limits, pool: Pool, clock: Callable[[], float]) -> None:
        """Serve the workspaces of `control`; `clock` gives seconds that never go back."""
        self._control = control
        self._limits = limits
        self._pool = pool
        self._clock = clock

    async def answer(self, request: Request, caller: Caller) -> Reply:
        """Return the answer to a request. Raises `Fault`, `Disconnected`."""
        if request.method not in METHODS:
            raise Refusal(405, Kind.UNSUPPORTED, f"{request.method} means nothing for a file", headers={"allow": ", ".join(METHODS)})
        place = read_place(request.raw_path)
        if request.method in {"GET", "HEAD"}:
            return await self._read(request, place, caller)
        return await self._change(request, place, caller)

    async def _read(self, request: Request, place: Place, caller: Caller) -> Reply:
        workspace = self._open(request, place, caller)
        asked = request.parameters
        if not asked.keys() & {"list", "search", "stat"}:
            return await find_content(workspace, place.names, request, self._pool)
        with closing(workspace):
            document = await self._pool.run(self._describe, workspace, place.names, asked)
            return answer_read(request, document)

    def _describe(self, workspace: Workspace, names: Names, asked: Asked) -> Document:
        if "stat" in asked:
            return describe(workspace, names, resolve(workspace, names))
        if "search" in asked:
            return search_directory(workspace, names, asked, self._clock)
        return list_directory(workspace, names, asked)

    async def _change(self, request: Request, place: Place, caller: Caller) -> Reply:
        with closing(self._open(request, place, caller)) as workspace:
            status, document = await self._apply(request, place, workspace)
        if document is None:
            return Reply(status)
        return answer_document(document, status, ("etag", document["etag"]))

    async def _apply(self, request: Request, place: Place, workspace: Workspace) -> Changed:
        query = request.parameters
        if request.method == "PUT" or query.get("op") in CONTENT_OPERATIONS:
            if "content-range" in request.headers:
                # Taking a part for the whole would destroy the file (RFC 9110 section 14.4).
                raise Fault(Kind.INVALID, "a file is put whole", hint="leave out Content-Range, or POST ?op=append")
            upload = Upload(request, self._limits)
            target = Target(place.names, request.method, request.headers, query, content=upload)
            return await upload.into(self._pool, change, workspace, target)
        document = await read_document(request, self._limits)
        target = Target(place.names, request.method, request.headers, query, document=document)
        return await self._pool.run(change, workspace, target)

    def _open(self, request: Request, place: Place, caller: Caller) -> Workspace:
        return self._control.workspace(caller, place.branch, request.parameters.get("at", ""))

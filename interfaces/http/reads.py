"""Reading files and directories of a branch: ``GET`` and ``HEAD`` below ``/v1/branches/{branch}/files``.

1. Conditions are judged before a file is opened: an answer without content costs no read and no budget.
2. A short file is read in the same turn of the pool that found it; a long one streams in pieces of 256 KiB, never held whole.
3. A file that shrinks while it streams breaks the connection: a client never takes half a file for a file.
4. Content never runs in a browser on this origin: it is always ``application/octet-stream``, never sniffed, never rendered.
5. A symlink is a node like any other. It is not followed: where it points is told by ``?stat``.
"""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from interfaces.faults import Fault, Kind
from interfaces.http.listing import PAGE, describe_directory, describe_node
from interfaces.http.responses import Stream, answer_read
from interfaces.port import ROOT, Access, Attributes, Document, Handle, Workspace
from interfaces.web.conditions import Validators, Verdict, judge, render_date, select_ranges, validators_of
from interfaces.web.names import Names, display_name, encode_segment
from interfaces.web.pool import Pool

PIECE = 256 << 10
_SAFE_CONTENT = {
    "content-type": "application/octet-stream",
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, no-cache",
    "accept-ranges": "bytes",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes `start` to `end` of an open file, and what has to be closed after reading them."""

    handle: Handle
    start: int
    end: int
    resources: ExitStack


@dataclass(frozen=True, slots=True)
class Found:
    """What a read found: status, headers, and the content as bytes, as part of a file, or (a document) as JSON."""

    status: int
    headers: Mapping[str, str]
    content: bytes | Part | Document


def resolve(workspace: Workspace, names: Names) -> Attributes:
    """Return what a path stands for, following no symlink."""
    attributes = workspace.attributes(ROOT)
    for name in names:
        attributes = workspace.lookup(attributes.node, name)
    return attributes


def find(workspace: Workspace, names: Names, request: Request) -> Found:
    """Return what a read asks for. Blocks; takes over `workspace` and closes it, at the latest with the `Part` it returns."""
    with ExitStack() as resources:
        resources.enter_context(closing(workspace))
        query = request.query_params
        attributes = resolve(workspace, names)
        if "stat" in query:
            return Found(200, {}, describe(workspace, names, attributes))
        if "list" in query:
            return Found(
                200, {}, describe_directory(workspace.list(attributes.node), query.get("cursor", ""), read_limit(query.get("limit")))
            )
        _require_file(names, attributes)
        return _find_content(workspace, attributes, request, resources)


def describe(workspace: Workspace, names: Names, attributes: Attributes) -> Document:
    """Return one node as a document, a symlink with its target."""
    document = describe_node(names[-1] if names else b"", attributes)
    if stat.S_ISLNK(attributes.st_mode):
        document["target"] = encode_segment(workspace.readlink(attributes.node))
    return document


def read_limit(text: str | None) -> int:
    """Return the size of a page. Raises `Kind.INVALID`."""
    if text is None:
        return PAGE
    if not text.isdecimal() or len(text) > 9:
        raise Fault(Kind.INVALID, f"limit is a whole number, not {text!r}")
    return int(text)


def answer_found(request: Request, found: Found, pool: Pool) -> Response:
    """Return the response for what was found."""
    if isinstance(found.content, dict):
        return answer_read(request, found.content)
    if isinstance(found.content, bytes):
        return _with_length(Response(found.content, found.status, found.headers), found.headers)
    part = found.content
    return Stream(_pieces(part, pool), partial(pool.detach, part.resources.close), found.status, found.headers)


def _require_file(names: Names, attributes: Attributes) -> None:
    if stat.S_ISREG(attributes.st_mode):
        return
    name = display_name(b"/".join(names)) or "the root"
    if stat.S_ISDIR(attributes.st_mode):
        raise Fault(Kind.IS_A_DIRECTORY, f"{name} is a directory", hint="add ?list to see what is in it")
    raise Fault(Kind.NOT_PERMITTED, f"{name} has no content to read", hint="add ?stat to see what it is")


def _find_content(workspace: Workspace, attributes: Attributes, request: Request, resources: ExitStack) -> Found:
    current = validators_of(attributes)
    headers = {**_SAFE_CONTENT, **_validator_headers(current)}
    match judge(request.method, request.headers, current):
        case Verdict.NOT_MODIFIED:
            return Found(304, _validator_headers(current), b"")
        case Verdict.FAILED:
            raise Fault(Kind.PRECONDITION, "the file is not in the state the request names", hint="read it again without the condition")
        case Verdict.PROCEED:
            pass
    ranges = select_ranges(request.headers, current, attributes.size) if request.method == "GET" else []
    selected = ranges[0] if len(ranges) == 1 else None
    start, end = selected or (0, attributes.size)
    headers["content-length"] = str(end - start)
    if selected:
        headers["content-range"] = f"bytes {start}-{end - 1}/{attributes.size}"
    status = 206 if selected else 200
    if request.method == "HEAD":
        return Found(status, headers, b"")
    handle = resources.enter_context(closing(workspace.open(attributes.node, Access())))
    if end - start <= PIECE:
        return Found(status, headers, _read_exactly(handle, start, end - start))
    return Found(status, headers, Part(handle, start, end, resources.pop_all()))


def _validator_headers(current: Validators) -> dict[str, str]:
    modified = (
        {} if current.modified is None or not 0 <= current.modified <= _LAST_DATE else {"last-modified": render_date(current.modified)}
    )
    return {"etag": current.etag, **modified}


_LAST_DATE = 253_402_300_799


def _with_length(response: Response, headers: Mapping[str, str]) -> Response:
    """Keep the length that a HEAD answer announces without carrying it."""
    if "content-length" in headers:
        response.headers["content-length"] = headers["content-length"]
    return response


async def _pieces(part: Part, pool: Pool) -> AsyncIterator[bytes]:
    offset = part.start
    while offset < part.end:
        piece = await pool.run(_read_exactly, part.handle, offset, min(PIECE, part.end - offset))
        yield piece
        offset += len(piece)


def _read_exactly(handle: Handle, offset: int, size: int) -> bytes:
    content = handle.read(offset, size)
    if len(content) != size:
        raise Fault(Kind.CONFLICT, "the file shrank while it was read", hint="read it again")
    return content

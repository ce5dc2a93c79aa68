"""Reading files and directories of a branch: ``GET`` and ``HEAD`` below ``/v1/branches/{branch}/files``.

1. Conditions are judged before a file is opened: an answer without content costs no read and no budget.
2. A short file is read in the turn that found it; a long one streams in pieces, never held whole.
3. A file that shrinks while it streams breaks the connection: a client never takes half a file for a file.
4. Content never runs in a browser on this origin: it is always ``application/octet-stream``, never sniffed, never rendered.
5. What somebody labelled is told with its label (``NAS-Origin``, ``NAS-Sensitivity``), also to who asks for a part of it.
6. A symlink is a node like any other. It is not followed: where it points is told by ``?stat``.
"""

from __future__ import annotations

import secrets
import stat
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial

from interfaces.faults import Fault, Kind
from interfaces.finding import Bounds, Query, labels_of_matches, search
from interfaces.http.listing import PAGE, describe_directory, describe_node, describe_outcome
from interfaces.port import ROOT, Access, Attributes, Document, Handle, Workspace
from interfaces.web.asgi import Extent, Reply, Request
from interfaces.web.conditions import Range, Validators, Verdict, judge, render_date, select_ranges, validators_of
from interfaces.web.contents import PIECE, SHORT, extents, read_part
from interfaces.web.names import Names, display_name, encode_segment
from interfaces.web.pool import Pool

Asked = Mapping[str, str]
"""The query of a request."""

_MEDIA = "application/octet-stream"
_SAFE_CONTENT = (
    ("content-security-policy", "sandbox; default-src 'none'"),
    ("cache-control", "private, no-cache"),
    ("accept-ranges", "bytes"),
)
_MATCHES = 100
_LAST_DATE = 253_402_300_799


def resolve(workspace: Workspace, names: Names) -> Attributes:
    """Return what a path stands for, following no symlink."""
    if not names:
        return workspace.attributes(ROOT)
    *above, name = names
    node = ROOT
    for step in above:
        node = workspace.lookup(node, step).node
    return workspace.lookup(node, name)


def describe(workspace: Workspace, names: Names, attributes: Attributes) -> Document:
    """Return one node as a document, a symlink with its target."""
    document = describe_node(names[-1] if names else b"", attributes, workspace.label(attributes.node))
    if stat.S_ISLNK(attributes.st_mode):
        document["target"] = encode_segment(workspace.readlink(attributes.node))
    return document


def list_directory(workspace: Workspace, names: Names, asked: Asked) -> Document:
    """Return a page of a directory. Raises `Kind.INVALID`."""
    limit = read_number(asked, "limit", PAGE)
    node = resolve(workspace, names).node
    return describe_directory(workspace.list(node), asked.get("cursor", ""), limit, partial(workspace.labels, node))


def search_directory(workspace: Workspace, names: Names, asked: Asked, clock: Callable[[], float]) -> Document:
    """Return what a search below a directory finds. Raises `Kind.INVALID`, `Kind.NOT_FOUND`, `Kind.BUDGET`."""
    wanted = Query(
        text=asked["search"],
        glob=asked.get("glob", "**"),
        below=b"/".join(names),
        ignore_case=asked.get("ignore_case") == "1",
        limit=read_number(asked, "limit", _MATCHES),
    )
    outcome = search(workspace, wanted, Bounds(), clock, cursor=asked.get("cursor", ""))
    return describe_outcome(outcome, labels_of_matches(workspace, outcome))


def read_number(asked: Asked, name: str, default: int) -> int:
    """Return a whole number of the query. Raises `Kind.INVALID`."""
    text = asked.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise Fault(Kind.INVALID, f"{name} is a whole number, not {text!r}")
    return int(text)


async def find_content(workspace: Workspace, names: Names, request: Request, pool: Pool) -> Reply:
    """Return the content of a file, or the parts of it that are asked for; takes over `workspace`. Raises `Fault`."""
    with ExitStack() as resources:
        resources.callback(workspace.close)
        attributes = resolve(workspace, names)
        _require_file(names, attributes)
        current = validators_of(attributes)
        match judge(request.method, request.headers, current):
            case Verdict.NOT_MODIFIED:
                return Reply(304, _validator_headers(current))
            case Verdict.FAILED:
                raise Fault(Kind.PRECONDITION, "the file is not in the state the request names", hint="read it again without the condition")
            case Verdict.PROCEED:
                pass
        size = attributes.size
        ranges = select_ranges(request.headers, current, size) if request.method == "GET" else []
        headers = (*_validator_headers(current), *_SAFE_CONTENT, *_label_headers(workspace.label(attributes.node)))
        if request.method == "HEAD":
            return Reply(200, (*headers, ("content-type", _MEDIA), ("content-length", str(size))))
        opening = partial(workspace.open, attributes.node, Access())
        handle = resources.enter_context(closing(opening() if size <= SHORT else await pool.run(opening)))
        if len(ranges) > 1:
            return _reply_parts(handle, ranges, size, headers, pool, resources, request)
        return await _reply_part(handle, ranges[0] if ranges else None, size, headers, pool, resources, request)


async def _reply_part(
    handle: Handle, asked: Range | None, size: int, headers: tuple[tuple[str, str], ...], pool: Pool, resources: ExitStack, request: Request
) -> Reply:
    start, end = asked or (0, size)
    status = 206 if asked else 200
    headers = (*headers, ("content-type", _MEDIA), ("content-length", str(end - start)))
    if asked:
        headers = (*headers, ("content-range", f"bytes {start}-{end - 1}/{size}"))
    if end - start <= PIECE:
        return Reply(status, headers, await read_part(handle, start, end, pool))
    release = partial(pool.detach, resources.pop_all().close)
    return Reply(status, headers, pieces=extents(handle, start, end, pool, request), release=release)


def _reply_parts(
    handle: Handle, ranges: list[Range], size: int, headers: tuple[tuple[str, str], ...], pool: Pool, resources: ExitStack, request: Request
) -> Reply:
    """Return several parts as ``multipart/byteranges`` (RFC 9110 section 14.6)."""
    boundary = secrets.token_hex(16)
    heads = [
        f"\r\n--{boundary}\r\ncontent-type: {_MEDIA}\r\ncontent-range: bytes {start}-{end - 1}/{size}\r\n\r\n".encode()
        for start, end in ranges
    ]
    tail = f"\r\n--{boundary}--\r\n".encode()
    length = sum(map(len, heads)) + sum(end - start for start, end in ranges) + len(tail)
    headers = (*headers, ("content-type", f"multipart/byteranges; boundary={boundary}"), ("content-length", str(length)))
    release = partial(pool.detach, resources.pop_all().close)
    return Reply(206, headers, pieces=_parts(handle, ranges, heads, tail, pool, request), release=release)


async def _parts(
    handle: Handle, ranges: list[Range], heads: list[bytes], tail: bytes, pool: Pool, request: Request
) -> AsyncGenerator[bytes | Extent, None]:
    for (start, end), head in zip(ranges, heads, strict=True):
        yield head
        async for piece in extents(handle, start, end, pool, request):
            yield piece
    yield tail


def _require_file(names: Names, attributes: Attributes) -> None:
    if stat.S_ISREG(attributes.st_mode):
        return
    name = display_name(b"/".join(names)) or "the root"
    if stat.S_ISDIR(attributes.st_mode):
        raise Fault(Kind.IS_A_DIRECTORY, f"{name} is a directory", hint="add ?list to see what is in it")
    raise Fault(Kind.NOT_PERMITTED, f"{name} has no content to read", hint="add ?stat to see what it is")


def _label_headers(label: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"nas-{part}", word) for part, word in label.items())


def _validator_headers(current: Validators) -> tuple[tuple[str, str], ...]:
    if current.modified is None or not 0 <= current.modified <= _LAST_DATE:
        return (("etag", current.etag),)
    return ("etag", current.etag), ("last-modified", render_date(current.modified))

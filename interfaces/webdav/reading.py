"""GET and HEAD: files with conditions and ranges, and a page of links for a collection.

1. Conditions are judged before a file is opened: an answer without content costs no read and no budget.
2. A short file is read on the event loop, in the same turn that found it: a turn of the pool costs more. A long one is opened in the pool
   and streams, never held whole.
3. Several ranges at once are answered with the whole, which the standard allows and every client accepts.
4. Content never runs in a browser on this origin: whatever its type says, it is sandboxed, without scripts, and never sniffed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, closing
from functools import partial
from html import escape

from interfaces.faults import Fault, Kind
from interfaces.port import Access, Attributes, Workspace
from interfaces.web.asgi import Reply, Request
from interfaces.web.conditions import Range, Validators, Verdict, judge, render_date, select_ranges, validators_of
from interfaces.web.contents import SHORT, extents, read_part
from interfaces.web.names import display_name, encode_segment
from interfaces.web.pool import Pool
from interfaces.webdav.lobby import Exhibit
from interfaces.webdav.properties import content_type

_SANDBOX = ("content-security-policy", "sandbox; default-src 'none'")
_PRIVATE = ("cache-control", "private, no-cache")
_LAST_SECOND = 253_402_300_799


async def answer_file(
    workspace: Workspace, attributes: Attributes, name: bytes, request: Request, pool: Pool, resources: ExitStack
) -> Reply:
    """Return the answer about a file; what has to stay open while it is sent is taken out of `resources`. Raises `Fault`."""
    told = _judge(attributes, name, request)
    if isinstance(told, Reply):
        return told
    headers, status, (start, end) = told
    opening = partial(workspace.open, attributes.node, Access())
    handle = resources.enter_context(closing(opening() if attributes.size <= SHORT else await pool.run(opening)))
    if end - start <= SHORT:
        return Reply(status, headers, await read_part(handle, start, end, pool))
    return Reply(status, headers, pieces=extents(handle, start, end, pool, request), release=resources.pop_all().close)


def answer_exhibit(exhibit: Exhibit, name: bytes, request: Request) -> Reply:
    """Return the answer about a file in the lobby."""
    told = _judge(exhibit.attributes, name, request)
    if isinstance(told, Reply):
        return told
    headers, status, (start, end) = told
    return Reply(status, headers, exhibit.text[start:end])


def index(title: str, members: Iterable[tuple[bytes, bool]]) -> Reply:
    """Return a page of links for a browser; each member comes with whether it is a collection."""
    links = "".join(
        f'<li><a href="./{encode_segment(name)}{"/" * is_collection}">{escape(display_name(name))}{"/" * is_collection}</a></li>\n'
        for name, is_collection in members
    )
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><h1>{escape(title)}</h1>'
    page = f"{head}<ul>\n{links}</ul></html>\n"
    return Reply(200, [("content-type", "text/html; charset=utf-8"), _SANDBOX, ("cache-control", "no-store")], page.encode())


def _judge(attributes: Attributes, name: bytes, request: Request) -> Reply | tuple[list[tuple[str, str]], int, Range]:
    """Return the whole reply when it has no content, else headers, status and the part of the file that is its content."""
    current = validators_of(attributes)
    match judge(request.method, request.headers, current):
        case Verdict.NOT_MODIFIED:
            return Reply(304, [*_validator_fields(current), _PRIVATE])
        case Verdict.FAILED:
            raise Fault(Kind.PRECONDITION, "the file is not in the state the request names", hint="read it again without the condition")
        case Verdict.PROCEED:
            pass
    size = attributes.size
    ranges = select_ranges(request.headers, current, size) if request.method == "GET" else []
    start, end = ranges[0] if len(ranges) == 1 else (0, size)
    headers = [
        ("content-type", content_type(name)),
        ("content-length", str(end - start)),
        *_validator_fields(current),
        ("accept-ranges", "bytes"),
        _PRIVATE,
        _SANDBOX,
    ]
    status = 200
    if len(ranges) == 1:
        status = 206
        headers.append(("content-range", f"bytes {start}-{end - 1}/{size}"))
    return Reply(status, headers) if request.method == "HEAD" else (headers, status, (start, end))


def _validator_fields(current: Validators) -> list[tuple[str, str]]:
    fields = [("etag", current.etag)]
    if current.modified is not None and 0 <= current.modified <= _LAST_SECOND:
        fields.append(("last-modified", render_date(current.modified)))
    return fields

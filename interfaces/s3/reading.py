"""Reading an object: ``GET``, ``HEAD`` and its attributes.

1. Metadata and conditions come first; a refused read opens nothing and costs no budget.
2. A short object is read on the event loop, in the same turn that found it; a long one streams, one piece in memory.
3. ``response-...`` parameters change what the answer says of the content, for this one request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import formatdate
from functools import lru_cache, partial

from interfaces.faults import Fault, Kind
from interfaces.port import Access, Handle, Workspace
from interfaces.s3.call import Call
from interfaces.s3.conditions import judge_read
from interfaces.s3.faults import S3Fault
from interfaces.s3.markup import document, group, tag
from interfaces.s3.ranges import Span, read_part_number, read_part_range, read_range
from interfaces.s3.sealing import CustomerKey, KeyStream, read_key, render_key, require_key, turn_pieces
from interfaces.s3.seeing import Seen, open_object, opened_object
from interfaces.s3.sidecars import Sidecar, render_checksum, render_sidecar
from interfaces.web.asgi import Reply
from interfaces.web.contents import SHORT, extents, pieces, read_exactly

ATTRIBUTES = ("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize")
_OVERRIDES: Mapping[str, str] = {
    f"response-{name}": name
    for name in ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires")
}
_LAST_DATE = 253_402_300_799

Headers = list[tuple[str, str]]


async def get_object(call: Call) -> Reply:
    """Answer ``GET`` of an object."""
    version = call.version
    if version is None:
        workspace, seen = open_object(call, call.bucket, call.key, None)
    else:
        workspace, seen = await call.door.pool.run(open_object, call, call.bucket, call.key, version)
    try:
        reply, span, key = _answer_head(call, seen)
        if seen.node is None or span.end == span.start:
            workspace.close()
            return reply
        handle = _open(workspace, seen.node)
    except BaseException:
        workspace.close()
        raise
    stream = _stream(seen, key, span.start) if key else None
    if span.end - span.start > SHORT:
        return _long(call, reply, span, stream, handle, partial(_close, handle, workspace))
    try:
        body = read_exactly(handle, span.start, span.end - span.start)
        return replace(reply, body=stream.turn(body) if stream else body)
    finally:
        _close(handle, workspace)


async def head_object(call: Call) -> Reply:
    """Answer ``HEAD`` of an object."""
    if call.version is not None:
        return await call.door.pool.run(_head_object, call)
    return _head_object(call)


def get_attributes(call: Call) -> Reply:
    """Answer ``GET ?attributes``."""
    wanted = [name.strip() for name in call.headers.get("x-amz-object-attributes", "").split(",") if name.strip()]
    if not wanted or any(name not in ATTRIBUTES for name in wanted):
        raise S3Fault("InvalidArgument", "Invalid attribute name specified.", elements={"ArgumentName": "x-amz-object-attributes"})
    with opened_object(call) as (_, seen):
        judge_read(call.headers, seen.state)
        _demand_key(call, seen)
        told = [_RENDERED[name](call, seen) for name in ATTRIBUTES if name in wanted]
        headers = [("content-type", "application/xml"), ("last-modified", render_date(seen.state.modified)), *render_version(seen.version)]
        return Reply(200, headers, document("GetObjectAttributesResponse", *told))


def render_version(version: str) -> Headers:
    """Return the header that tells a version; nothing where none are kept."""
    return [("x-amz-version-id", version)] if version else []


@lru_cache(maxsize=4096)
def render_date(seconds: int) -> str:
    """Return an HTTP date; times that have none are told as the first or last that has one."""
    return formatdate(min(max(seconds, 0), _LAST_DATE), usegmt=True)


def _head_object(call: Call) -> Reply:
    with opened_object(call) as (_, seen):
        return _answer_head(call, seen)[0]


def _answer_head(call: Call, seen: Seen) -> tuple[Reply, Span, CustomerKey | None]:
    """Return the answer without its content, which bytes of the object that is, and the key that opens them. Judges conditions."""
    judge_read(call.headers, seen.state)
    status, headers, span = _describe(call, seen)
    key = _demand_key(call, seen)
    return Reply(status, [*headers, *render_key(key), ("content-length", str(span.end - span.start))]), span, key


def _long(call: Call, reply: Reply, span: Span, stream: KeyStream | None, handle: Handle, close: Callable[[], None]) -> Reply:
    """Return the answer with content that is too long to be read at once; the kernel sends what no key has to open."""
    pool = call.door.pool
    release = partial(pool.detach, close)
    if stream is None:
        return replace(reply, pieces=extents(handle, span.start, span.end, pool, call.request), release=release)
    return replace(reply, pieces=turn_pieces(pieces(handle, span.start, span.end, pool), stream), release=release)


def _demand_key(call: Call, seen: Seen) -> CustomerKey | None:
    """Return the key that opens an object, None for one that is not sealed. Raises ``InvalidRequest``."""
    key = read_key(call.headers)
    require_key(seen.sidecar.seal, key)
    return key


def _stream(seen: Seen, key: CustomerKey, start: int) -> KeyStream:
    return KeyStream(key, seen.sidecar.seal.spans if seen.sidecar.seal else (), start)


def _describe(call: Call, seen: Seen) -> tuple[int, Headers, Span]:
    """Return the status, the headers but for the length, and which bytes are asked for."""
    status, span = _select(call, seen)
    headers = render_sidecar(_overridden(call, seen.sidecar))
    headers.append(("last-modified", render_date(seen.state.modified)))
    headers.append(("accept-ranges", "bytes"))
    headers.extend(render_version(seen.version))
    if status == 206:
        headers.append(("content-range", span.header))
    if seen.all_tags:
        headers.append(("x-amz-tagging-count", str(len(seen.all_tags))))
    if "partNumber" in call.parameters and seen.sidecar.parts:
        headers.append(("x-amz-mp-parts-count", str(len(seen.sidecar.parts))))
    if call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED" and "range" not in call.headers:
        headers.extend(_checksum_headers(call, seen.sidecar))
    return status, headers, span


def _select(call: Call, seen: Seen) -> tuple[int, Span]:
    if (text := call.parameters.get("partNumber")) is not None:
        if "range" in call.headers:
            raise S3Fault("InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
        return 206, read_part_range(read_part_number(text), seen.sidecar.parts, seen.size)
    span = read_range(call.headers.get("range"), seen.size)
    return (206, span) if span else (200, Span(0, seen.size, seen.size))


def _checksum_headers(call: Call, sidecar: Sidecar) -> Headers:
    """Return the checksum of the object, or of the one part that is asked for."""
    if "partNumber" not in call.parameters or not sidecar.parts or sidecar.checksum is None:
        return render_checksum(sidecar)
    number = int(call.parameters["partNumber"])
    text = next((part.checksum for part in sidecar.parts if part.number == number), "")
    return [(sidecar.checksum.algorithm.header, text), ("x-amz-checksum-type", sidecar.checksum.kind)] if text else []


def _overridden(call: Call, sidecar: Sidecar) -> Sidecar:
    """Return the sidecar with the headers that the query asks to be told instead; only a signed request may ask, and all are."""
    chosen = {_OVERRIDES[name]: value for name, value in call.parameters.items() if name in _OVERRIDES}
    if any(ord(character) < 32 or ord(character) > 255 for value in chosen.values() for character in value):
        raise S3Fault("InvalidArgument", "A response header cannot hold that value.")
    return replace(sidecar, headers={**sidecar.headers, **chosen}) if chosen else sidecar


def _open(workspace: Workspace, node: int) -> Handle:
    """Open what was seen a moment ago; what went meanwhile is not there. Raises ``NoSuchKey``."""
    try:
        return workspace.open(node, Access())
    except Fault as fault:
        if fault.kind is Kind.STALE:
            raise S3Fault("NoSuchKey") from fault
        raise


def _close(handle: Handle, workspace: Workspace) -> None:
    handle.close()
    workspace.close()


def _render_checksum(_call: Call, seen: Seen) -> str:
    checksum = seen.sidecar.checksum
    if checksum is None:
        return ""
    return group("Checksum", tag(checksum.algorithm.element, checksum.text), tag("ChecksumType", checksum.kind))


def _render_parts(call: Call, seen: Seen) -> str:
    """Return one page of the parts of an object that was uploaded in parts."""
    parts = seen.sidecar.parts
    if not parts:
        return ""
    after = _number(call, "x-amz-part-number-marker", 0)
    limit = min(_number(call, "x-amz-max-parts", 1000), 1000)
    rest = [part for part in parts if part.number > after]
    shown = rest[:limit]
    element = seen.sidecar.checksum.algorithm.element if seen.sidecar.checksum else ""
    last = shown[-1].number if shown else after
    return group(
        "ObjectParts",
        tag("IsTruncated", len(rest) > len(shown)),
        tag("MaxParts", limit),
        tag("NextPartNumberMarker", last),
        tag("PartNumberMarker", after),
        *(
            group(
                "Part",
                tag(element, part.checksum) if element and part.checksum else "",
                tag("PartNumber", part.number),
                tag("Size", part.size),
            )
            for part in shown
        ),
        tag("PartsCount", len(parts)),
    )


def _number(call: Call, header: str, default: int) -> int:
    text = call.headers.get(header)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 9:
        raise S3Fault("InvalidArgument", f"{header} must be a whole number", elements={"ArgumentName": header, "ArgumentValue": text})
    return int(text)


_RENDERED: Mapping[str, Callable[[Call, Seen], str]] = {
    "ETag": lambda _call, seen: tag("ETag", seen.sidecar.etag),
    "Checksum": _render_checksum,
    "ObjectParts": _render_parts,
    "StorageClass": lambda _call, _seen: tag("StorageClass", "STANDARD"),
    "ObjectSize": lambda _call, seen: tag("ObjectSize", seen.size),
}

"""Copying objects, and parts of objects into uploads.

1. A copy inside a branch is the kernel's as long as nothing about its bytes has to be computed; otherwise they are read once.
2. Metadata and tags are the source's, or with the directive ``REPLACE`` the request's.
3. Conditions on the source and on the target are both judged; the copy is read under the caller's rights on the source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from interfaces.port import Access, Attach, Attributes, Condition, Content, Workspace
from interfaces.s3.call import Call
from interfaces.s3.checksums import Algorithm, Checksum, parse_algorithm, start
from interfaces.s3.conditions import judge_source
from interfaces.s3.faults import S3Fault
from interfaces.s3.keys import check_key
from interfaces.s3.listing import render_time
from interfaces.s3.markup import document, tag
from interfaces.s3.multipart import demand_upload_key, find_upload, keep_part
from interfaces.s3.ranges import read_part_number, read_source_range
from interfaces.s3.reading import Headers, render_version
from interfaces.s3.routing import read_source
from interfaces.s3.sealing import SOURCE_KEY_HEADERS, CustomerKey, read_key, render_key, require_key, tag_content, turn_content
from interfaces.s3.seeing import Seen, opened_source
from interfaces.s3.sidecars import Sidecar, Summary, read_sidecar
from interfaces.s3.storing import FILE_MODE, Draft, Stored, store_directory, store_object
from interfaces.s3.tree import Place
from interfaces.s3.uploads import UploadedPart
from interfaces.s3.writing import MAX_SINGLE, read_tags, refuse_unsupported, seal_single
from interfaces.web.asgi import Reply
from interfaces.web.contents import HandleContent


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that the source of a copy is opened with and its target sealed; None where it is not sealed."""

    source: CustomerKey | None = None
    target: CustomerKey | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The bytes of a source that are copied, and the key that opens them (None: they are not sealed)."""

    start: int
    end: int
    key: CustomerKey | None


class HashedContent:
    """A content whose MD5, and checksum when one is wanted, are computed as it is read."""

    def __init__(self, content: Content, algorithm: Algorithm | None) -> None:
        """Read `content`."""
        self._content = content
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._algorithm = algorithm
        self._sum = start(algorithm) if algorithm else None

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`; nothing at the end."""
        data = self._content.read(size)
        self._md5.update(data)
        if self._sum:
            self._sum.update(data)
        return data

    @property
    def md5(self) -> bytes:
        """Return the MD5 of what was read."""
        return self._md5.digest()

    @property
    def checksum(self) -> Checksum | None:
        """Return the checksum of what was read, None when none was wanted."""
        return Checksum(self._algorithm, self._sum.digest()) if self._algorithm and self._sum else None


def copy_object(call: Call) -> Reply:
    """Answer ``PUT`` with ``x-amz-copy-source``."""
    check_key(call.key)
    refuse_unsupported(call.headers)
    bucket, key, version = read_source(call.headers["x-amz-copy-source"])
    replaces = _directive(call, "x-amz-metadata-directive") == "REPLACE"
    keys = Keys(read_key(call.headers, SOURCE_KEY_HEADERS), read_key(call.headers))
    if (bucket, key, version) == (call.bucket, call.key, None) and not replaces and keys.source == keys.target:
        raise S3Fault(
            "InvalidRequest",
            "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, "
            "storage class, website redirect location or encryption attributes.",
        )
    with opened_source(call, bucket, key, version) as (past, seen), call.opened() as workspace:
        judge_source(call.headers, seen.state)
        require_key(seen.sidecar.seal, keys.source)
        if seen.size > MAX_SINGLE:
            raise S3Fault(
                "InvalidRequest", f"The specified copy source is larger than the maximum allowable size for a copy source: {MAX_SINGLE}"
            )
        sidecar = read_sidecar(call.headers) if replaces else replace(seen.sidecar, version="", seal=None)
        tags = read_tags(call.headers) if _directive(call, "x-amz-tagging-directive") == "REPLACE" else seen.tags
        stored = _store_copy(call, past, seen, workspace, Draft(lambda: sidecar, tags), keys)
    headers = _headers(seen, stored.version) + render_key(keys.target)
    return Reply(200, headers, _render("CopyObjectResult", stored.sidecar, stored.attributes.mtime_ns))


def copy_part(call: Call) -> Reply:
    """Answer ``PUT ?partNumber&uploadId`` with ``x-amz-copy-source``."""
    number = read_part_number(call.parameters.get("partNumber", ""))
    bucket, key, version = read_source(call.headers["x-amz-copy-source"])
    begun = find_upload(call)
    keys = Keys(read_key(call.headers, SOURCE_KEY_HEADERS), demand_upload_key(call, begun))
    with opened_source(call, bucket, key, version) as (past, seen), call.opened() as workspace:
        judge_source(call.headers, seen.state)
        require_key(seen.sidecar.seal, keys.source)
        span = read_source_range(call.headers.get("x-amz-copy-source-range"), seen.size)
        seal = seal_single(keys.target, span.end - span.start, call.door.entropy) if keys.target else None
        with _reading(past, seen, begun.algorithm, Window(span.start, span.end, keys.source)) as content:
            staged = workspace.stage(turn_content(content, keys.target, seal.spans if seal else ()))
            checksum = content.checksum.text if content.checksum else ""
        now, nonce = int(call.door.clock() * 1e9), seal.spans[0].nonce.hex() if seal else ""
        etag = tag_content(content.md5, keys.target)
        part = keep_part(call, workspace, begun, UploadedPart(number, staged.id, staged.size, etag, checksum, now, nonce))
    summary = Summary(begun.algorithm, part.checksum) if begun.algorithm and part.checksum else None
    headers = _headers(seen, "") + render_key(keys.target)
    return Reply(200, headers, _render("CopyPartResult", Sidecar(part.md5, checksum=summary), now))


def _store_copy(call: Call, past: Workspace, seen: Seen, workspace: Workspace, wanted: Draft, keys: Keys) -> Stored:
    sidecar, tags = wanted.sidecar(), wanted.tags
    if seen.node is None and call.key.endswith(b"/"):
        return store_directory(call, workspace, replace(sidecar, etag=seen.sidecar.etag), tags)
    name = call.headers.get("x-amz-checksum-algorithm")
    algorithm = parse_algorithm(name) if name else seen.sidecar.checksum.algorithm if seen.sidecar.checksum else None
    if past is workspace and seen.node is not None and keys == Keys() and _is_kernels(seen.sidecar, algorithm):
        same = replace(sidecar, etag=seen.sidecar.etag, checksum=seen.sidecar.checksum, parts=())
        return store_object(call, workspace, Draft(lambda: same, tags), _copy_node(workspace, seen.node))
    seal = seal_single(keys.target, seen.size, call.door.entropy) if keys.target else None
    with _reading(past, seen, algorithm, Window(0, seen.size, keys.source)) as content:
        draft = Draft(lambda: _computed(replace(sidecar, seal=seal), content, keys.target), tags)
        sealed = turn_content(content, keys.target, seal.spans if seal else ())
        return store_object(call, workspace, draft, lambda place, condition, attach: _publish(workspace, place, sealed, condition, attach))


def _is_kernels(sidecar: Sidecar, algorithm: Algorithm | None) -> bool:
    """Tell whether tag and checksum of a source are those of its copy, so that no byte has to be looked at."""
    summary = sidecar.checksum
    return "-" not in sidecar.etag and (
        algorithm is None or (summary is not None and summary.algorithm is algorithm and not summary.composite)
    )


def _computed(sidecar: Sidecar, content: HashedContent, key: CustomerKey | None) -> Sidecar:
    checksum = content.checksum
    return replace(
        sidecar, etag=tag_content(content.md5, key), checksum=Summary(checksum.algorithm, checksum.text) if checksum else None, parts=()
    )


def _copy_node(workspace: Workspace, node: int) -> Callable[[Place, Condition | None, Attach], Attributes]:
    return lambda place, condition, attach: workspace.copy(node, place.parent, place.name, condition=condition, attach=attach)


def _publish(workspace: Workspace, place: Place, content: Content, condition: Condition | None, attach: Attach) -> Attributes:
    return workspace.publish(place.parent, place.name, FILE_MODE, content, condition=condition, attach=attach)


@contextmanager
def _reading(workspace: Workspace, seen: Seen, algorithm: Algorithm | None, window: Window) -> Iterator[HashedContent]:
    if seen.node is None:
        yield HashedContent(_Nothing(), algorithm)
        return
    with closing(workspace.open(seen.node, Access())) as handle:
        spans = seen.sidecar.seal.spans if seen.sidecar.seal else ()
        content = turn_content(HandleContent(handle, window.start, window.end), window.key, spans, window.start)
        yield HashedContent(content, algorithm)


class _Nothing:
    """The content of a directory."""

    def read(self, _size: int, /) -> bytes:
        return b""


def _directive(call: Call, header: str) -> str:
    value = call.headers.get(header, "COPY").upper()
    if value not in {"COPY", "REPLACE"}:
        raise S3Fault("InvalidArgument", f"Unknown {header}", elements={"ArgumentName": header, "ArgumentValue": value})
    return value


def _headers(seen: Seen, version: str) -> Headers:
    source = [("x-amz-copy-source-version-id", seen.version)] if seen.version else []
    return [("content-type", "application/xml"), *source, *render_version(version)]


def _render(root: str, sidecar: Sidecar, modified_ns: int) -> bytes:
    summary = sidecar.checksum
    told = (tag(summary.algorithm.element, summary.text), tag("ChecksumType", summary.kind)) if summary else ()
    return document(root, tag("LastModified", render_time(modified_ns)), f"<ETag>&quot;{sidecar.etag}&quot;</ETag>", *told)

"""Uploads in parts that are under way: what is kept of them, and listing them.

1. An upload is a note, each part a note of its own, its bytes staged in the branch: any worker, also after a restart, goes on with it.
2. Staged bytes go after a week, so an upload that old is none any more; whoever comes across it tidies it up.
3. An upload belongs to the lease that began it. A principal sees all uploads of a bucket it may write.
4. What a finished upload became is remembered as long, so that completing it again says the same.
5. A part that is sent again replaces the former one; of two that arrive at once the later to finish counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from interfaces.port import Document, Workspace
from interfaces.s3.call import Call, owner_of
from interfaces.s3.checksums import Algorithm
from interfaces.s3.documents import Tags
from interfaces.s3.faults import S3Fault
from interfaces.s3.listing import read_ask, read_limit, render_owner, render_time
from interfaces.s3.markup import document, group, tag
from interfaces.s3.sidecars import Sidecar, decode_sidecar, sidecar_fields
from interfaces.web.asgi import Reply

LIFETIME = 7 * 86_400
"""Seconds that an upload has."""

_XML = [("content-type", "application/xml")]
_TRIES = 64
_SWEPT = 8
"""How many finished uploads are looked at, whenever one is added, whether they may be forgotten."""


@dataclass(frozen=True, slots=True)
class UploadedPart:
    """One part: the id of its staged bytes, its size, its tag (the MD5, or what a key makes of it), its checksum as text, when it came.

    `modified` is in nanoseconds, `nonce` (hex) that of its sealed bytes.
    """

    number: int
    staged: str
    size: int
    md5: str
    checksum: str
    modified: int
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """An upload: its id (which sorts by age), what its object will be, whose it is and how its checksum is to be made (None: not)."""

    id: str
    key: bytes
    sidecar: Sidecar
    tags: Tags
    created: int
    principal: str
    lease: str
    algorithm: Algorithm | None = None
    composite: bool = False


class Uploads:
    """The uploads of one branch. Any thread may call."""

    def __init__(self, call: Call, workspace: Workspace) -> None:
        """Keep them among the notes of the door."""
        self._call = call
        self._notes = call.door.notes
        self._workspace = workspace
        self._prefix = f"upload/{workspace.branch}/"
        self._parts = f"part/{workspace.branch}/"
        self._done = f"done/{workspace.branch}/"

    def begin(self, upload: Begun) -> None:
        """Keep an upload."""
        self._notes.put(self._prefix + upload.id, _encode(upload), 0)

    def find(self, id: str, key: bytes) -> Begun:
        """Return an upload. Raises ``NoSuchUpload``."""
        body = self._notes.find(self._prefix + id)[1] if id.isalnum() else {}
        found = _decode(id, body) if body else None
        if found is None or found.key != key or not self._is_open(found):
            raise S3Fault("NoSuchUpload", elements={"UploadId": id})
        return found

    def all(self) -> list[Begun]:
        """Return the uploads the caller may see, by key and then by age."""
        ids = [key[len(self._prefix) :] for key in self._notes.keys(self._prefix)]
        found = [_decode(id, body) for id in ids if (body := self._notes.find(self._prefix + id)[1])]
        return sorted((each for each in found if self._is_open(each)), key=lambda each: (each.key, each.id))

    def parts(self, id: str) -> list[UploadedPart]:
        """Return the parts of an upload, by number."""
        keys = self._notes.keys(f"{self._parts}{id}/")
        return [UploadedPart(**body) for key in keys if (body := self._notes.find(key)[1])]

    def add(self, id: str, part: UploadedPart) -> None:
        """Keep a part, and let go the bytes of the one it replaces."""
        key = f"{self._parts}{id}/{part.number:05d}"
        for _ in range(_TRIES):
            version, former = self._notes.find(key)
            if self._notes.put(key, _encode_part(part), version):
                if former:
                    self._workspace.unstage(former["staged"])
                return
        self._workspace.unstage(part.staged)
        raise S3Fault("SlowDown")

    def end(self, id: str) -> None:
        """Forget an upload and let its bytes go; repeats do nothing."""
        self._remove(self._prefix + id)
        for key in self._notes.keys(f"{self._parts}{id}/"):
            body = self._notes.find(key)[1]
            if body:
                self._workspace.unstage(body["staged"])
            self._remove(key)

    def finish(self, id: str, key: bytes, sidecar: Sidecar, version: str) -> None:
        """End an upload that became an object, and remember as what: a client that missed the answer asks again."""
        self._notes.put(self._done + id, {"key": key.decode(), "sidecar": sidecar_fields(sidecar), "version": version}, 0)
        self.end(id)
        oldest = f"{int((self._call.door.clock() - LIFETIME) * 1e9):016x}"
        for done in self._notes.keys(self._done)[:_SWEPT]:
            if done[len(self._done) :] < oldest:
                self._remove(done)

    def find_finished(self, id: str, key: bytes) -> tuple[Sidecar, str] | None:
        """Return what a finished upload became and as which version, None when it is unknown."""
        body = self._notes.find(self._done + id)[1] if id.isalnum() else {}
        return (decode_sidecar(body["sidecar"]), body["version"]) if body and body["key"].encode() == key else None

    def _remove(self, key: str) -> None:
        for _ in range(_TRIES):
            version = self._notes.find(key)[0]
            if not version or self._notes.remove(key, version):
                return

    def _is_open(self, upload: Begun) -> bool:
        if self._call.door.clock() >= upload.created / 1e9 + LIFETIME:
            self.end(upload.id)
            return False
        return not self._call.caller.lease or self._call.caller.lease == upload.lease


def list_uploads(call: Call) -> Reply:
    """Answer ``GET ?uploads``."""
    ask = read_ask(call.parameters, after="key-marker")
    limit = read_limit(call.parameters, "max-uploads", 1000)
    after = (ask.wanted.after, call.parameters.get("upload-id-marker", ""))
    with call.opened() as workspace:
        owner = owner_of(workspace)
        found = [each for each in Uploads(call, workspace).all() if each.key.startswith(ask.wanted.prefix) and _is_behind(each, *after)]
    shown = found[:limit]
    more = (
        (tag("NextKeyMarker", ask.text(shown[-1].key)), tag("NextUploadIdMarker", shown[-1].id))
        if len(found) > len(shown) and shown
        else ()
    )
    body = document(
        "ListMultipartUploadsResult",
        tag("Bucket", call.bucket),
        tag("KeyMarker", ask.text(ask.wanted.after)),
        tag("UploadIdMarker", after[1]),
        *more,
        tag("MaxUploads", limit),
        tag("IsTruncated", bool(more)),
        tag("Prefix", ask.text(ask.wanted.prefix)) if ask.wanted.prefix else "",
        tag("EncodingType", "url") if ask.encoded else "",
        *(_render_upload(each, ask.text(each.key), owner) for each in shown),
    )
    return Reply(200, _XML, body)


def list_parts(call: Call) -> Reply:
    """Answer ``GET ?uploadId``."""
    limit = read_limit(call.parameters, "max-parts", 1000)
    after = read_limit(call.parameters, "part-number-marker", 10_000) if call.parameters.get("part-number-marker") else 0
    with call.opened() as workspace:
        uploads = Uploads(call, workspace)
        upload = uploads.find(call.parameters["uploadId"], call.key)
        parts = [part for part in uploads.parts(upload.id) if part.number > after]
        owner = owner_of(workspace)
    shown = parts[:limit]
    body = document(
        "ListPartsResult",
        tag("Bucket", call.bucket),
        tag("Key", call.text_key),
        tag("UploadId", upload.id),
        tag("PartNumberMarker", after),
        tag("NextPartNumberMarker", shown[-1].number if shown else 0),
        tag("MaxParts", limit),
        tag("IsTruncated", len(parts) > len(shown)),
        render_owner(upload.principal, "Initiator"),
        render_owner(owner),
        tag("StorageClass", "STANDARD"),
        _render_algorithm(upload),
        *(_render_part(part, upload.algorithm) for part in shown),
    )
    return Reply(200, _XML, body)


def _is_behind(upload: Begun, key: bytes, id: str) -> bool:
    return upload.key > key or (bool(id) and upload.key == key and upload.id > id)


def _render_upload(upload: Begun, key: str, owner: str) -> str:
    return group(
        "Upload",
        tag("Key", key),
        tag("UploadId", upload.id),
        render_owner(upload.principal, "Initiator"),
        render_owner(owner),
        tag("StorageClass", "STANDARD"),
        tag("Initiated", render_time(upload.created)),
        _render_algorithm(upload),
    )


def _render_algorithm(upload: Begun) -> str:
    if upload.algorithm is None:
        return ""
    return tag("ChecksumAlgorithm", upload.algorithm.value) + tag("ChecksumType", "COMPOSITE" if upload.composite else "FULL_OBJECT")


def _render_part(part: UploadedPart, algorithm: Algorithm | None) -> str:
    return group(
        "Part",
        tag("PartNumber", part.number),
        tag("LastModified", render_time(part.modified)),
        f"<ETag>&quot;{part.md5}&quot;</ETag>",
        tag("Size", part.size),
        tag(algorithm.element, part.checksum) if algorithm and part.checksum else "",
    )


def _encode(upload: Begun) -> Document:
    return {
        "key": upload.key.decode(),
        "sidecar": sidecar_fields(replace(upload.sidecar, etag="-")),
        "tags": [list(pair) for pair in upload.tags],
        "created": upload.created,
        "principal": upload.principal,
        "lease": upload.lease,
        "algorithm": upload.algorithm.value if upload.algorithm else "",
        "composite": upload.composite,
    }


def _decode(id: str, body: Mapping[str, Any]) -> Begun:
    return Begun(
        id,
        body["key"].encode(),
        decode_sidecar(body["sidecar"]),
        tuple((name, value) for name, value in body["tags"]),
        body["created"],
        body["principal"],
        body["lease"],
        Algorithm(body["algorithm"]) if body["algorithm"] else None,
        body["composite"],
    )


def _encode_part(part: UploadedPart) -> Document:
    return {
        "number": part.number,
        "staged": part.staged,
        "size": part.size,
        "md5": part.md5,
        "checksum": part.checksum,
        "modified": part.modified,
        "nonce": part.nonce,
    }

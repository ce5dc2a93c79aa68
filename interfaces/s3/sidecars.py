"""What S3 knows of an object besides its bytes, kept in two extended attributes of the file. Pure.

1. A sidecar names the content it was made for (`Attributes.content`). Once another door changed the bytes it counts for nothing: tag,
   headers, metadata, checksums and tags of an object are those of its content, or none.
2. The entity tag is the MD5 of a single put, ``<md5 of md5s>-<parts>`` of a multipart upload. A file that another door wrote has a tag made
   of its content's identity, with a dash, so that no client takes it for an MD5; it is stable until the content changes.
3. Unknown fields of a sidecar are left alone: a later release may write more.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from interfaces.port import Attributes
from interfaces.s3.checksums import Algorithm, Checksum
from interfaces.s3.documents import Tags
from interfaces.s3.faults import S3Fault
from interfaces.s3.sealing import Seal, decode_seal, seal_fields

SIDECAR = b"user.s3.object"
TAGS = b"user.s3.tags"
LABEL_TAGS = "nas:"
"""What the names of tags start with that tell a label: they are shown, and never kept."""

MAX_METADATA = 2048
"""Bytes of the names and values of user metadata together."""

DEFAULT_TYPE = "binary/octet-stream"
KEPT_HEADERS = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
)
_META = "x-amz-meta-"
_SHORT = 2048


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an object that was uploaded in parts: its number, its size in bytes, its checksum as text when it has one."""

    number: int
    size: int
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The checksum of an object: algorithm, value as it travels, and whether it is of the whole or of its parts' checksums."""

    algorithm: Algorithm
    text: str
    composite: bool = False

    @property
    def kind(self) -> str:
        """Return the checksum type in Amazon's words."""
        return "COMPOSITE" if self.composite else "FULL_OBJECT"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One object as S3 tells it. `headers` and `metadata` are what its writer sent; `parts` is empty for a single put.

    `seal` is there when the bytes of the file are sealed under a key of the client's.
    """

    etag: str
    headers: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    checksum: Summary | None = None
    parts: tuple[Part, ...] = ()
    version: str = ""
    seal: Seal | None = None

    def encode(self, content: bytes) -> bytes:
        """Return the sidecar as the attribute of the file that has `content`."""
        return json.dumps({"c": content.decode("latin-1"), **sidecar_fields(self)}, separators=(",", ":")).encode()


def sidecar_of(attributes: Attributes, xattrs: Mapping[bytes, bytes]) -> Sidecar:
    """Return the sidecar of a file; one that another door wrote has only a tag."""
    raw = xattrs.get(SIDECAR)
    if raw is not None:
        content, sidecar = _decode_short(raw) if len(raw) <= _SHORT else _decode(raw)
        if content == attributes.content:
            return sidecar
    return Sidecar(foreign_tag(attributes.content))


def etag_of(attributes: Attributes, xattrs: Mapping[bytes, bytes]) -> str:
    """Return the entity tag of a file, without quotes."""
    return sidecar_of(attributes, xattrs).etag


def sidecar_fields(sidecar: Sidecar) -> dict[str, object]:
    """Return a sidecar as a JSON object; what says nothing is left out."""
    checksum = sidecar.checksum
    fields = {
        "e": sidecar.etag,
        "h": dict(sidecar.headers),
        "m": dict(sidecar.metadata),
        "k": [checksum.algorithm.value, checksum.text, checksum.composite] if checksum else None,
        "p": [[part.number, part.size, part.checksum] for part in sidecar.parts],
        "v": sidecar.version,
        "s": seal_fields(sidecar.seal) if sidecar.seal else None,
    }
    return {name: value for name, value in fields.items() if value}


def _decode(raw: bytes) -> tuple[bytes, Sidecar]:
    """Return the content a sidecar was made for, and the sidecar."""
    fields = json.loads(raw)
    return fields.get("c", "").encode("latin-1"), decode_sidecar(fields)


_decode_short = lru_cache(maxsize=4096)(_decode)
"""Records of objects that are read again and again; what is read is never changed. Long ones (of many parts) would take too much memory."""


def decode_sidecar(fields: Mapping[str, object]) -> Sidecar:
    """Return the sidecar that `sidecar_fields` told."""
    known = dict(fields)
    checksum = known.get("k")
    parts = known.get("p") or []
    headers, metadata = known.get("h") or {}, known.get("m") or {}
    assert isinstance(headers, dict)
    assert isinstance(metadata, dict)
    assert isinstance(parts, list)
    return Sidecar(
        str(known["e"]),
        headers,
        metadata,
        Summary(Algorithm(checksum[0]), checksum[1], checksum[2]) if isinstance(checksum, list) else None,
        tuple(Part(*part) for part in parts),
        str(known.get("v", "")),
        decode_seal(seal) if isinstance(seal := known.get("s"), list) else None,
    )


def foreign_tag(content: bytes) -> str:
    """Return the tag of a content that S3 did not write."""
    return hashlib.sha256(content).hexdigest()[:32] + "-0"


def encode_tags(tags: Tags, content: bytes) -> bytes | None:
    """Return tags as the attribute of the file that has `content`; None when there are none."""
    return json.dumps({"c": content.decode("latin-1"), "t": tags}, separators=(",", ":")).encode() if tags else None


def tags_of(attributes: Attributes, xattrs: Mapping[bytes, bytes]) -> Tags:
    """Return the tags of a file, as clients set them; through whatever door they came, none of them tells a label."""
    raw = xattrs.get(TAGS)
    if raw is None:
        return ()
    fields = json.loads(raw)
    if fields["c"] != attributes.content.decode("latin-1"):
        return ()
    return tuple((name, value) for name, value in fields["t"] if not is_label_tag(name))


def label_tags(label: Mapping[str, str]) -> Tags:
    """Return a label as the tags that tell it."""
    return tuple((LABEL_TAGS + part, word) for part, word in label.items())


def without_labels(tags: Tags, labels: Tags) -> Tags:
    """Return the tags of a client without those that say again what the `labels` of the object are. Raises ``InvalidTag`` for any other."""
    told = dict(labels)
    for name, value in tags:
        if is_label_tag(name) and told.get(name) != value:
            raise S3Fault("InvalidTag", f"{name} cannot be set by a tag: nas label mark raises a label, nas label endorse lowers one")
    return tuple((name, value) for name, value in tags if not is_label_tag(name))


def is_label_tag(name: str) -> bool:
    """Tell whether a tag is one that only the appliance gives."""
    return name.lower().startswith(LABEL_TAGS)


def read_sidecar(headers: Mapping[str, str]) -> Sidecar:
    """Return the headers and metadata a writer sends, with no tag yet. Raises ``MetadataTooLarge``."""
    metadata = {name[len(_META) :]: _decode_text(value) for name, value in headers.items() if name.startswith(_META)}
    size = sum(len(name) + len(value) for name, value in metadata.items())
    if size > MAX_METADATA:
        raise S3Fault("MetadataTooLarge", elements={"Size": str(size), "MaxSizeAllowed": str(MAX_METADATA)})
    kept = {name: headers[name] for name in KEPT_HEADERS if headers.get(name)}
    if "content-encoding" in kept:
        kept["content-encoding"] = _without_chunking(kept["content-encoding"])
    return Sidecar("", {name: value for name, value in kept.items() if value}, metadata)


def with_checksum(sidecar: Sidecar, checksum: Checksum | None) -> Sidecar:
    """Return the sidecar of an object written at once, with its checksum."""
    return replace(sidecar, checksum=Summary(checksum.algorithm, checksum.text)) if checksum else sidecar


def render_sidecar(sidecar: Sidecar) -> list[tuple[str, str]]:
    """Return the headers that tell a sidecar, but for its checksum."""
    headers = [("etag", f'"{sidecar.etag}"'), ("content-type", sidecar.headers.get("content-type", DEFAULT_TYPE))]
    headers.extend((name, value) for name, value in sidecar.headers.items() if name != "content-type")
    headers.extend((_META + name, _encode_text(value)) for name, value in sidecar.metadata.items())
    return headers


def render_checksum(sidecar: Sidecar) -> list[tuple[str, str]]:
    """Return the headers that tell the checksum of a sidecar."""
    if sidecar.checksum is None:
        return []
    return [(sidecar.checksum.algorithm.header, sidecar.checksum.text), ("x-amz-checksum-type", sidecar.checksum.kind)]


def _decode_text(value: str) -> str:
    """Return a header value as text: clients send UTF-8 where they send more than ASCII."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _encode_text(value: str) -> str:
    """Return text as a header value: as it is where a header can say it, else as RFC 2047 has it, as S3 does."""
    if value.isascii():
        return value
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return f"=?UTF-8?B?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="
    return value


def _without_chunking(encoding: str) -> str:
    """Return a content encoding without ``aws-chunked``, which is how the body travelled and not what it is."""
    return ", ".join(each for each in (part.strip() for part in encoding.split(",")) if each != "aws-chunked")

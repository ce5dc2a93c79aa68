"""The XML documents clients send, as values. Pure.

1. A document says exactly what its schema says or it is ``MalformedXML``; what is unknown in it is left alone, as Amazon does.
2. Counts are bounded before anything is done: 1,000 keys to delete, 10,000 parts, 10 tags of an object, 50 of a bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import parse_qsl
from xml.etree.ElementTree import Element

from interfaces.s3.checksums import Algorithm, Checksum, parse_checksum
from interfaces.s3.faults import S3Fault
from interfaces.s3.markup import parse, require_text, text_of

MAX_DELETIONS = 1000
MAX_PARTS = 10_000
MAX_OBJECT_TAGS = 10
MAX_BUCKET_TAGS = 50

PUBLIC_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
"""The parts of a public access block."""

PUBLIC_ACLS = frozenset({"public-read", "public-read-write", "authenticated-read"})
"""The canned ACLs that would open an object or a bucket to others."""

OWNERSHIP = "BucketOwnerEnforced"
"""Whose objects are: always the owner's of their bucket."""

Tags = tuple[tuple[str, str], ...]
"""Pairs of key and value, keys unique, in the order sent."""

_TAG_KEY = 128
_TAG_VALUE = 256


@dataclass(frozen=True, slots=True)
class Doomed:
    """One object to delete: a version of it (empty: the current one), while tag, time and size are these, as sent (empty: any)."""

    key: str
    version: str = ""
    etag: str = ""
    modified: str = ""
    size: str = ""


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a multi-object delete asks for; a quiet one reports failures only."""

    objects: tuple[Doomed, ...]
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class CompletedPart:
    """One part a completion names: its number, the tag it was given (without quotes) and, when told, its checksum."""

    number: int
    etag: str
    checksum: Checksum | None = None


def parse_deletion(body: bytes) -> Deletion:
    """Return what a ``Delete`` document asks for."""
    root = parse(body, "Delete")
    elements = root.findall("Object")
    if not 0 < len(elements) <= MAX_DELETIONS:
        raise S3Fault("MalformedXML")
    return Deletion(tuple(_doomed(element) for element in elements), _is_true(text_of(root, "Quiet")))


def parse_completion(body: bytes) -> tuple[CompletedPart, ...]:
    """Return the parts a ``CompleteMultipartUpload`` document names. Raises ``InvalidPartOrder``."""
    root = parse(body, "CompleteMultipartUpload")
    parts = tuple(_completed(element) for element in root.findall("Part"))
    if not 0 < len(parts) <= MAX_PARTS:
        raise S3Fault("MalformedXML")
    if any(left.number >= right.number for left, right in pairwise(parts)):
        raise S3Fault("InvalidPartOrder")
    return parts


def parse_tagging(body: bytes, limit: int = MAX_OBJECT_TAGS) -> Tags:
    """Return the tags of a ``Tagging`` document, at most `limit`. Raises ``InvalidTag``."""
    found = parse(body, "Tagging").findall("TagSet")
    if len(found) != 1:
        raise S3Fault("MalformedXML")
    return check_tags([(require_text(tag, "Key"), require_text(tag, "Value")) for tag in found[0].findall("Tag")], limit)


def parse_tag_header(value: str) -> Tags:
    """Return the tags of an ``x-amz-tagging`` header, ordered by key; a key alone has an empty value.

    Raises ``InvalidArgument``, ``InvalidTag``.
    """
    try:
        pairs = sorted(parse_qsl(value, keep_blank_values=True, errors="strict", max_num_fields=MAX_OBJECT_TAGS + 1))
    except ValueError as error:
        raise S3Fault(
            "InvalidArgument", "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters"
        ) from error
    return check_tags(pairs, MAX_OBJECT_TAGS)


def check_tags(pairs: Sequence[tuple[str, str]], limit: int) -> Tags:
    """Return tags that are within Amazon's bounds. Raises ``InvalidTag``."""
    if len(pairs) > limit:
        raise S3Fault("InvalidTag", f"Object tags cannot be greater than {limit}")
    if len({key for key, _ in pairs}) != len(pairs):
        raise S3Fault("InvalidTag", "Cannot provide multiple Tags with the same key")
    for key, value in pairs:
        if not 0 < len(key) <= _TAG_KEY:
            raise S3Fault("InvalidTag", "The TagKey you have provided is invalid")
        if len(value) > _TAG_VALUE:
            raise S3Fault("InvalidTag", "The TagValue you have provided is invalid")
    return tuple(pairs)


def parse_versioning(body: bytes) -> str:
    """Return ``Enabled`` or ``Suspended``. Raises ``NotImplemented`` where deleting is to need a second factor."""
    root = parse(body, "VersioningConfiguration")
    if text_of(root, "MfaDelete") == "Enabled":
        raise S3Fault("NotImplemented", "MFA delete is not implemented; a lease without the delete action protects better")
    status = text_of(root, "Status")
    if status not in {"Enabled", "Suspended"}:
        raise S3Fault("IllegalVersioningConfigurationException")
    return status


def parse_public_block(body: bytes) -> dict[str, bool]:
    """Return what a ``PublicAccessBlockConfiguration`` blocks; what it does not name is not blocked."""
    root = parse(body, "PublicAccessBlockConfiguration")
    return {name: _is_true(text_of(root, name)) for name in PUBLIC_BLOCKS}


def parse_ownership(body: bytes) -> str:
    """Return the ownership that an ``OwnershipControls`` document asks for. Raises as `check_ownership`."""
    rules = parse(body, "OwnershipControls").findall("Rule")
    if len(rules) != 1:
        raise S3Fault("MalformedXML")
    return check_ownership(require_text(rules[0], "ObjectOwnership"))


def check_ownership(ownership: str) -> str:
    """Return the one ownership there is. Raises ``NotImplemented`` for another."""
    if ownership != OWNERSHIP:
        raise S3Fault("NotImplemented", f"Objects belong to the owner of their bucket ({OWNERSHIP}); {ownership} is not implemented.")
    return ownership


def parse_location(body: bytes) -> str:
    """Return the region a ``CreateBucketConfiguration`` asks for; empty when it, or the whole document, says nothing."""
    if not body.strip():
        return ""
    return text_of(parse(body, "CreateBucketConfiguration"), "LocationConstraint") or ""


def _doomed(element: Element) -> Doomed:
    key = require_text(element, "Key")
    if not key:
        raise S3Fault("MalformedXML")
    told = [text_of(element, name) or "" for name in ("VersionId", "ETag", "LastModifiedTime", "Size")]
    return Doomed(key, told[0], _unquoted(told[1]), told[2], told[3])


def _completed(element: Element) -> CompletedPart:
    number = require_text(element, "PartNumber").strip()
    if not (number.isascii() and number.isdecimal() and len(number) <= 5 and 1 <= int(number) <= MAX_PARTS):
        raise S3Fault("InvalidArgument", f"Part number must be an integer between 1 and {MAX_PARTS}, inclusive")
    told = [(algorithm, text) for algorithm in Algorithm if (text := text_of(element, algorithm.element)) is not None]
    checksum = parse_checksum(*told[0]) if told else None
    return CompletedPart(int(number), _unquoted(require_text(element, "ETag")), checksum)


def _unquoted(etag: str) -> str:
    return etag.strip().removeprefix('"').removesuffix('"')


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"

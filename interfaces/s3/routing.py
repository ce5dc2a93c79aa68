"""From a request line to a bucket, a key and the name of an operation. Pure.

1. The bucket is the first name of the path, or what stands in ``Host`` before a name of the server; the rest is the key, decoded once.
2. An operation is named by its method, by what it is about and by at most one subresource of the query. An unknown subresource is
   ``NotImplemented``, never mistaken for a read or a write of the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from interfaces.s3.faults import S3Fault

MAX_VERSION = 128
"""Characters of the longest id of a version."""

_BUCKET_SUBRESOURCES = frozenset(
    [
        "accelerate",
        "acl",
        "analytics",
        "cors",
        "delete",
        "encryption",
        "intelligent-tiering",
        "inventory",
        "lifecycle",
        "location",
        "logging",
        "metrics",
        "notification",
        "object-lock",
        "ownershipControls",
        "policy",
        "policyStatus",
        "publicAccessBlock",
        "replication",
        "requestPayment",
        "tagging",
        "uploads",
        "versioning",
        "versions",
        "website",
    ]
)
_OBJECT_SUBRESOURCES = frozenset(
    ["acl", "attributes", "legal-hold", "restore", "retention", "select", "tagging", "torrent", "uploadId", "uploads"]
)
_LEVELS: Mapping[str, frozenset[str]] = {"service": frozenset(), "bucket": _BUCKET_SUBRESOURCES, "object": _OBJECT_SUBRESOURCES}


def split_target(raw_path: bytes, host: str, names: frozenset[str]) -> tuple[str, bytes]:
    """Return bucket and key of a request to a server of these `names`, each empty where it names none.

    Raises ``InvalidURI``, ``InvalidBucketName``.
    """
    path = raw_path.partition(b"?")[0].removeprefix(b"/")
    bucket_in_host, _, server = host.lower().rpartition(":")[0].partition(".") if ":" in host else host.lower().partition(".")
    if server in names and not bucket_in_host.isdecimal():
        return _read_bucket(bucket_in_host.encode("latin-1")), _decode(path)
    bucket, _, key = path.partition(b"/")
    return _read_bucket(_decode(bucket)), _decode(key)


def name_operation(method: str, bucket: str, key: bytes, parameters: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """Return the operation of a request, such as ``GET object`` or ``PUT bucket tagging``. Raises ``NotImplemented``."""
    level = "object" if key else "bucket" if bucket else "service"
    found = [name for name in parameters if name in _LEVELS[level]]
    if len(found) > 1 and set(found) != {"uploads", "uploadId"}:
        raise S3Fault("InvalidRequest", f"Conflicting query string parameters: {', '.join(sorted(found))}")
    subresource = found[0] if found else ""
    if not subresource and level == "bucket" and parameters.get("list-type") == "2":
        subresource = "list-type"
    copies = level == "object" and method == "PUT" and "x-amz-copy-source" in headers and subresource in {"", "uploadId"}
    return " ".join(part for part in (method, level, subresource, "copy" if copies else "") if part)


def read_source(value: str) -> tuple[str, bytes, str | None]:
    """Return bucket, key and version (None: the current one) of an ``x-amz-copy-source``. Raises ``InvalidArgument``."""
    path, _, query = value.removeprefix("/").partition("?")
    version = check_version(query.partition("versionId=")[2]) or None
    bucket, _, key = unquote_to_bytes(path.encode("utf-8", "surrogateescape")).partition(b"/")
    if not bucket or not key:
        raise S3Fault("InvalidArgument", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
    return _read_bucket(bucket), key, version


def check_version(id: str) -> str:
    """Return the id of a version, when it can be one: no answer repeats what a client made up. Raises ``InvalidArgument``."""
    if id and not (id.isascii() and id.isalnum() and len(id) <= MAX_VERSION):
        raise S3Fault("InvalidArgument", "Invalid version id specified", elements={"ArgumentName": "versionId"})
    return id


def _read_bucket(name: bytes) -> str:
    try:
        return name.decode("ascii")
    except UnicodeDecodeError as error:
        raise S3Fault("InvalidBucketName") from error


def _decode(raw: bytes) -> bytes:
    try:
        decoded = unquote_to_bytes(raw)
        decoded.decode()
    except UnicodeDecodeError as error:
        raise S3Fault("InvalidURI") from error
    return decoded

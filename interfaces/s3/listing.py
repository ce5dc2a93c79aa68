"""Listing a bucket: version 1, version 2, and every version of every key.

1. A page costs what it shows: the walk stops at the first key that does not fit.
2. A page begins behind the last key or common prefix of the one before; nothing is remembered in between. The token is that key.
3. ``encoding-type=url`` writes keys percent-encoded, which is the only way to read one that XML cannot spell.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from urllib.parse import quote_from_bytes

from interfaces.port import Workspace
from interfaces.s3.call import Call, owner_of
from interfaces.s3.faults import S3Fault
from interfaces.s3.markup import document, group, tag
from interfaces.s3.seeing import Seen, is_known, see_directory, see_file
from interfaces.s3.shelf import Shelf, Shelves, Version, version_of
from interfaces.s3.tree import is_directory
from interfaces.s3.walking import Found, Wanted, walk_keys
from interfaces.web.asgi import Reply

MAX_KEYS = 1000


@dataclass(frozen=True, slots=True)
class Ask:
    """What every listing asks for."""

    wanted: Wanted
    limit: int
    encoded: bool

    def text(self, value: bytes) -> str:
        """Return a key, prefix or delimiter as it is written."""
        return quote_from_bytes(value, safe="/*") if self.encoded else value.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows, and whether there is more."""

    found: Sequence[Found]
    truncated: bool

    @property
    def last(self) -> bytes:
        """Return the last key or common prefix, empty on an empty page."""
        return self.found[-1].key if self.found else b""


def list_by_marker(call: Call) -> Reply:
    """Answer ``GET`` of a bucket: version 1, where a page begins behind a key."""
    ask = read_ask(call.parameters, after="marker")
    with call.opened() as workspace:
        page = _read_page(workspace, ask)
        contents = [_render_found(workspace, ask, found, owner_of(workspace)) for found in page.found]
    next_marker = tag("NextMarker", ask.text(page.last)) if page.truncated and ask.wanted.delimiter else ""
    # Clients decode every key of this answer but the prefix, which they sent themselves.
    return _answer(
        "ListBucketResult",
        tag("Name", call.bucket),
        tag("Prefix", call.parameters.get("prefix", "")),
        tag("Marker", ask.text(ask.wanted.after)),
        next_marker,
        *_head(ask, truncated=page.truncated),
        *contents,
    )


def list_by_token(call: Call) -> Reply:
    """Answer ``GET`` of a bucket: version 2, where a page begins behind a token."""
    ask = read_ask(call.parameters, after="start-after")
    token = call.parameters.get("continuation-token")
    start_after = ask.wanted.after
    if token is not None:
        ask = Ask(Wanted(ask.wanted.prefix, decode_token(token) or start_after, ask.wanted.delimiter), ask.limit, ask.encoded)
    with call.opened() as workspace:
        page = _read_page(workspace, ask)
        owner = owner_of(workspace) if call.parameters.get("fetch-owner", "").lower() == "true" else ""
        contents = [_render_found(workspace, ask, found, owner) for found in page.found]
    return _answer(
        "ListBucketResult",
        tag("Name", call.bucket),
        tag("Prefix", ask.text(ask.wanted.prefix)),
        tag("StartAfter", ask.text(start_after)) if start_after else "",
        tag("ContinuationToken", token) if token is not None else "",
        tag("NextContinuationToken", encode_token(page.last)) if page.truncated else "",
        tag("KeyCount", len(page.found)),
        *_head(ask, truncated=page.truncated),
        *contents,
    )


def list_versions(call: Call) -> Reply:
    """Answer ``GET ?versions``."""
    ask = read_ask(call.parameters, after="key-marker")
    marker = call.parameters.get("version-id-marker", "")
    if marker and not ask.wanted.after:
        raise S3Fault("InvalidArgument", "A version-id marker cannot be specified without a key marker.")
    with call.opened() as workspace:
        lines = list(islice(_version_lines(call, workspace, ask, marker), ask.limit + 1))
        owner = owner_of(workspace)
    shown, truncated = lines[: ask.limit], len(lines) > ask.limit > 0
    last = shown[-1] if shown else None
    more = (tag("NextKeyMarker", ask.text(last.key)), tag("NextVersionIdMarker", last.id) if last.id else "") if last and truncated else ()
    return _answer(
        "ListVersionsResult",
        tag("Name", call.bucket),
        tag("Prefix", ask.text(ask.wanted.prefix)),
        tag("KeyMarker", ask.text(ask.wanted.after)),
        tag("VersionIdMarker", marker),
        *more,
        *_head(ask, truncated=truncated),
        *(line.render(ask, owner) for line in shown),
    )


def read_ask(parameters: Mapping[str, str], *, after: str) -> Ask:
    """Return what a listing asks for; `after` is the parameter with the key to begin behind. Raises ``InvalidArgument``."""
    encoding = parameters.get("encoding-type")
    if encoding not in (None, "url"):
        raise S3Fault("InvalidArgument", "Invalid Encoding Method specified in Request", elements={"ArgumentName": "encoding-type"})
    prefix, start, delimiter = (parameters.get(name, "").encode() for name in ("prefix", after, "delimiter"))
    return Ask(Wanted(prefix, start, delimiter), read_limit(parameters, "max-keys", MAX_KEYS), encoding == "url")


def read_limit(parameters: Mapping[str, str], name: str, most: int) -> int:
    """Return how many of something a page may show. Raises ``InvalidArgument``."""
    text = parameters.get(name)
    if not text:
        return most
    if not (text.isascii() and text.isdecimal()) or len(text) > 10:
        raise S3Fault("InvalidArgument", f"Provided {name} not an integer or within integer range", elements={"ArgumentName": name})
    return min(int(text), most)


def encode_token(key: bytes) -> str:
    """Return the token that continues behind a key."""
    return urlsafe_b64encode(key).decode()


def decode_token(token: str) -> bytes:
    """Return the key a token continues behind. Raises ``InvalidArgument``."""
    try:
        return b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise S3Fault("InvalidArgument", "The continuation token provided is incorrect") from error


def render_time(nanoseconds: int) -> str:
    """Return a time as documents have it, in UTC with milliseconds."""
    seconds = min(max(nanoseconds // 1_000_000_000, 0), 253_402_300_799)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def render_owner(owner: str, name: str = "Owner") -> str:
    """Return whose something is."""
    return group(name, tag("ID", owner), tag("DisplayName", owner)) if owner else ""


def _read_page(workspace: Workspace, ask: Ask) -> Page:
    if ask.limit == 0:
        return Page((), truncated=False)
    found = list(islice(walk_keys(workspace, ask.wanted), ask.limit + 1))
    return Page(found[: ask.limit], truncated=len(found) > ask.limit)


def _answer(root: str, *parts: str) -> Reply:
    return Reply(200, [("content-type", "application/xml")], document(root, *parts))


def _head(ask: Ask, *, truncated: bool) -> Sequence[str]:
    return (
        tag("MaxKeys", ask.limit),
        tag("Delimiter", ask.text(ask.wanted.delimiter)) if ask.wanted.delimiter else "",
        tag("IsTruncated", truncated),
        tag("EncodingType", "url") if ask.encoded else "",
    )


def _see(workspace: Workspace, found: Found) -> Seen:
    assert found.attributes is not None
    return see_directory(workspace, found.attributes) if is_directory(found.attributes) else see_file(workspace, found.attributes)


def _render_found(workspace: Workspace, ask: Ask, found: Found, owner: str) -> str:
    if found.attributes is None:
        return group("CommonPrefixes", tag("Prefix", ask.text(found.key)))
    seen = _see(workspace, found)
    return group("Contents", tag("Key", ask.text(found.key)), _facts(seen.sidecar.etag, seen.size, seen.modified_ns), render_owner(owner))


def _facts(etag: str, size: int, modified_ns: int) -> str:
    modified = render_time(modified_ns)
    return f"<LastModified>{modified}</LastModified><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass>"


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a listing of versions; with no version it is a common prefix."""

    key: bytes
    id: str = ""
    version: Version | None = None
    latest: bool = False

    def render(self, ask: Ask, owner: str) -> str:
        version = self.version
        if version is None:
            return group("CommonPrefixes", tag("Prefix", ask.text(self.key)))
        told = (tag("Key", ask.text(self.key)), tag("VersionId", self.id), tag("IsLatest", self.latest))
        if version.sidecar is None:
            return group("DeleteMarker", *told, tag("LastModified", render_time(version.modified)), render_owner(owner))
        return group("Version", *told, _facts(version.sidecar.etag, version.size, version.modified), render_owner(owner))


def _version_lines(call: Call, workspace: Workspace, ask: Ask, marker: str) -> Iterator[_Line]:
    """Yield versions by key, newest first, behind the key and version a page begins at."""
    wanted = ask.wanted
    shelves = Shelves(call.door, workspace.branch)
    kept = shelves.keys(wanted.prefix)
    last = b""
    for key, found in _keys_with_versions(workspace, wanted, kept, inclusive=bool(marker)):
        rolled = _rolled(key, wanted)
        if rolled:
            if rolled not in (last, wanted.after):
                yield _Line(rolled)
            last = rolled
            continue
        lines = _lines_of(call, workspace, key, found, shelves.find(key))
        yield from _behind(lines, marker) if marker and key == wanted.after else lines


def _keys_with_versions(
    workspace: Workspace, wanted: Wanted, kept: Sequence[bytes], *, inclusive: bool
) -> Iterator[tuple[bytes, Found | None]]:
    """Yield every key that is in the tree or has versions, in order; with `inclusive` also the one a page begins at."""
    start = wanted.after[:-1] + bytes([wanted.after[-1] - 1]) if inclusive and wanted.after and wanted.after[-1] else wanted.after
    tree = walk_keys(workspace, Wanted(wanted.prefix, start))
    rest = iter([key for key in kept if key > wanted.after or (inclusive and key == wanted.after)])
    shelved, found = next(rest, None), next(tree, None)
    while found is not None or shelved is not None:
        if found is not None and (found.key < wanted.after or (found.key == wanted.after and not inclusive)):
            found = next(tree, None)
        elif found is None or (shelved is not None and shelved < found.key):
            assert shelved is not None
            yield shelved, None
            shelved = next(rest, None)
        else:
            yield found.key, found
            shelved = next(rest, None) if shelved == found.key else shelved
            found = next(tree, None)


def _rolled(key: bytes, wanted: Wanted) -> bytes:
    if not wanted.delimiter:
        return b""
    end = key.find(wanted.delimiter, len(wanted.prefix))
    return key[: end + len(wanted.delimiter)] if end >= 0 else b""


def _lines_of(call: Call, workspace: Workspace, key: bytes, found: Found | None, shelf: Shelf) -> list[_Line]:
    if found is None:
        if not is_known(call, shelf):
            return []
        return [_Line(key, each.id, each, latest=index == 0 and each.is_marker) for index, each in enumerate(shelf.versions)]
    seen = _see(workspace, found)
    current = version_of(shelf, seen.sidecar)
    kept = shelf.find(current)
    first = kept if kept and kept.sidecar == seen.sidecar else Version(current, seen.modified_ns, seen.sidecar, size=seen.size)
    return [_Line(key, current, first, latest=True), *(_Line(key, each.id, each) for each in shelf.versions if each.id != current)]


def _behind(lines: list[_Line], marker: str) -> list[_Line]:
    ids = [line.id for line in lines]
    return lines[ids.index(marker) + 1 :] if marker in ids else lines

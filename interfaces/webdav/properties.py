"""The properties of a resource: the live ones told from attributes, the dead ones as a client left them. Pure.

1. A listing is compiled once into the functions that tell each property; telling one is formatting a string.
2. ``allprop`` stays lean: `EVERYWHERE` and the dead properties, and at depth 0 the locks too. What is the same for every file is told
   to who asks for it by name; a desktop that hides a folder above a megabyte sees twice as many files so.
3. Entity tags are of content, hence strong; collections have none.
4. A file was created at the earliest time that is known of it: its content may be dated back, its attributes may not.
5. A label is told to who asks for it, or for the names of all properties; PROPPATCH does not change it.
6. Dead properties are at most `MAX_DEAD` bytes a resource, and well-formed whoever wrote them. They travel with a copy and a move and
   stay when content is replaced.
"""

from __future__ import annotations

import functools
import json
import mimetypes
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes, Space
from interfaces.web.conditions import render_date, tag_of
from interfaces.web.names import Names, display_name
from interfaces.webdav.locks import Lock, Locks, covering
from interfaces.webdav.markup import DAV, empty, filled, is_fragment, plain

MICROSOFT = "{urn:schemas-microsoft-com:}"
APACHE = "{http://apache.org/dav/props/}"
DEAD = b"user.dav.props"
MAX_DEAD = 48 << 10
MODIFIED = frozenset({f"{DAV}getlastmodified", f"{MICROSOFT}Win32LastModifiedTime"})
EXECUTABLE = f"{APACHE}executable"
LABELS = {"{urn:agent-nas}origin": "origin", "{urn:agent-nas}sensitivity": "sensitivity"}
"""The properties that tell a label, and which part of it; a resource that nobody labelled has none of them."""
EVERYWHERE = tuple(
    f"{DAV}{name}" for name in ("resourcetype", "getcontentlength", "getlastmodified", "getetag", "getcontenttype", "creationdate")
)
LOCKING = (f"{DAV}supportedlock", f"{DAV}lockdiscovery")
_LAST_SECOND = 253_402_300_799
_ENTRY = "<D:lockentry><D:lockscope><D:{0}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>"
_SUPPORTED = f"<D:supportedlock>{_ENTRY.format('exclusive')}{_ENTRY.format('shared')}</D:supportedlock>"


@dataclass(frozen=True, slots=True)
class Subject:
    """A resource as a listing tells it. `names` is its place in the branch, `dead` its own properties as elements by name.

    `label` is whose words it is and how far it may go, where somebody said.
    """

    href: str
    name: bytes
    names: Names
    attributes: Attributes
    dead: Mapping[str, str] = field(default_factory=dict)
    label: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_collection(self) -> bool:
        """Tell whether it is a collection."""
        return stat.S_ISDIR(self.attributes.st_mode)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is told of all resources alike: the locks of the branch, the room there is (None: not told), the time, where the branch is."""

    locks: Locks = ()
    space: Space | None = None
    now: int = 0
    base: str = ""
    href_of: Callable[[Names], str] = str


Tell = Callable[[Subject, Surroundings], str | None]
"""Returns a property as an element; None when the resource has none of that name."""


def content_type(name: bytes) -> str:
    """Return the media type that a name's ending stands for."""
    return _type_of_ending(name.rpartition(b".")[2].lower() if b"." in name else b"")


@functools.cache
def _types() -> mimetypes.MimeTypes:
    # Only what the interpreter itself knows: what is installed on the machine must not change what a client is told.
    types = mimetypes.MimeTypes()
    types.add_type("text/markdown", ".md")
    return types


@functools.lru_cache(1024)
def _type_of_ending(ending: bytes) -> str:
    guess, encoding = _types().guess_type(f"x.{ending.decode('latin-1')}")
    return "application/octet-stream" if guess is None or encoding else guess


def _resourcetype(subject: Subject, _: Surroundings) -> str:
    return "<D:resourcetype><D:collection/></D:resourcetype>" if subject.is_collection else "<D:resourcetype/>"


def _length(subject: Subject, _: Surroundings) -> str | None:
    return None if subject.is_collection else f"<D:getcontentlength>{subject.attributes.size}</D:getcontentlength>"


def _modified(subject: Subject, _: Surroundings) -> str:
    return f"<D:getlastmodified>{_date(subject.attributes.mtime_ns // 1_000_000_000)}</D:getlastmodified>"


def _microsoft_modified(subject: Subject, _: Surroundings) -> str:
    return filled(f"{MICROSOFT}Win32LastModifiedTime", _date(subject.attributes.mtime_ns // 1_000_000_000))


def _created(subject: Subject, _: Surroundings) -> str:
    seconds = min(subject.attributes.mtime_ns, subject.attributes.ctime_ns) // 1_000_000_000
    return f"<D:creationdate>{_timestamp(seconds)}</D:creationdate>"


def _etag(subject: Subject, _: Surroundings) -> str | None:
    return None if subject.is_collection else f"<D:getetag>{tag_of(subject.attributes)}</D:getetag>"


def _content_type(subject: Subject, _: Surroundings) -> str | None:
    return None if subject.is_collection else f"<D:getcontenttype>{content_type(subject.name)}</D:getcontenttype>"


def _display_name(subject: Subject, _: Surroundings) -> str:
    return f"<D:displayname>{plain(display_name(subject.name))}</D:displayname>"


def _executable(subject: Subject, _: Surroundings) -> str | None:
    return None if subject.is_collection else filled(EXECUTABLE, "T" if subject.attributes.st_mode & 0o111 else "F")


def _supported(_: Subject, around: Surroundings) -> str:
    return _SUPPORTED if around.base else "<D:supportedlock/>"


def _discovery(subject: Subject, around: Surroundings) -> str:
    return discovery(covering(around.locks, subject.names), around)


def _available(subject: Subject, around: Surroundings) -> str | None:
    if around.space is None or not subject.is_collection:
        return None
    return f"<D:quota-available-bytes>{around.space.free}</D:quota-available-bytes>"


def _used(subject: Subject, around: Surroundings) -> str | None:
    if around.space is None or not subject.is_collection:
        return None
    return f"<D:quota-used-bytes>{max(0, around.space.total - around.space.free)}</D:quota-used-bytes>"


def _label_teller(name: str, part: str) -> Tell:
    return lambda subject, _: filled(name, subject.label[part]) if part in subject.label else None


LIVE: Mapping[str, Tell] = {
    f"{DAV}resourcetype": _resourcetype,
    f"{DAV}getcontentlength": _length,
    f"{DAV}getlastmodified": _modified,
    f"{DAV}getetag": _etag,
    f"{DAV}getcontenttype": _content_type,
    f"{DAV}creationdate": _created,
    f"{DAV}displayname": _display_name,
    f"{DAV}supportedlock": _supported,
    f"{DAV}lockdiscovery": _discovery,
    f"{DAV}quota-available-bytes": _available,
    f"{DAV}quota-used-bytes": _used,
    EXECUTABLE: _executable,
    f"{MICROSOFT}Win32LastModifiedTime": _microsoft_modified,
    **{name: _label_teller(name, part) for name, part in LABELS.items()},
}

PROTECTED = frozenset(LIVE) - MODIFIED - {EXECUTABLE}
"""What PROPPATCH does not change."""


def discovery(locks: Sequence[Lock], around: Surroundings) -> str:
    """Return what is told of the locks on a resource."""
    return filled(f"{DAV}lockdiscovery", "".join(_active(lock, around) for lock in locks)) if locks else "<D:lockdiscovery/>"


def _active(lock: Lock, around: Surroundings) -> str:
    scope, depth = "shared" if lock.shared else "exclusive", "infinity" if lock.deep else "0"
    return (
        f"<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:{scope}/></D:lockscope><D:depth>{depth}</D:depth>"
        f"{lock.owner}<D:timeout>Second-{max(1, lock.expires - around.now)}</D:timeout>"
        f"<D:locktoken><D:href>{lock.token}</D:href></D:locktoken>"
        f"<D:lockroot><D:href>{around.href_of(lock.names)}</D:href></D:lockroot></D:activelock>"
    )


@functools.lru_cache(4096)
def _date(seconds: int) -> str:
    """Return an HTTP date; the cache is worth it because the files of a directory often share their second."""
    return render_date(min(max(0, seconds), _LAST_SECOND))


@functools.lru_cache(4096)
def _timestamp(seconds: int) -> str:
    return f"{datetime.fromtimestamp(min(max(0, seconds), _LAST_SECOND), UTC):%Y-%m-%dT%H:%M:%SZ}"


def parse_date(text: str) -> int:
    """Return the seconds since the epoch of an HTTP date; one without a zone is UTC. Raises `ValueError`, also for what was before."""
    moment = parsedate_to_datetime(text)
    seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if seconds < 0:
        raise ValueError(f"{text!r} lies before 1970")
    return seconds


def encode_dead(dead: Mapping[str, str]) -> bytes | None:
    """Return dead properties as the value of an extended attribute, None for none. Raises `Kind.NO_SPACE`."""
    value = json.dumps(dict(dead), ensure_ascii=False, separators=(",", ":")).encode()
    if len(value) > MAX_DEAD:
        raise Fault(Kind.NO_SPACE, f"the properties of a resource have at most {MAX_DEAD} bytes", hint="keep more in a file beside it")
    return value if dead else None


def decode_dead(xattrs: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the dead properties in extended attributes.

    Any program with the right to write can put anything there: what is not one whole element of its name counts as absent, so that
    nobody writes into the listings of others; so does what goes by the name of a live property: no client makes up a label.
    """
    try:
        found = json.loads(xattrs.get(DEAD, b"{}"))
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if name not in LIVE and isinstance(value, str) and is_fragment(name, value)}


def titles_of(subject: Subject) -> list[str]:
    """Return the names of what a resource has, as empty elements."""
    labels = [name for name, part in LABELS.items() if part in subject.label]
    return [empty(name) for name in dict.fromkeys((*EVERYWHERE, *LOCKING, *labels, *subject.dead))]

"""What is above and beside the branches: collections that nobody made, and what a person's agents did, as read-only files.

1. The root shows ``main``, one collection a role with its runs, and ``humans/<principal>/Agent Activity/`` to a principal that came with a
   token of its own; a lease sees what is its run's.
2. Everything is asked of `Control` when it is looked at: nothing is kept, so nothing goes stale.
3. An exhibit has attributes like a file's, so that conditions, ranges and properties treat it as one.
4. Nothing here can be changed, and what cannot be is refused alike, whether it exists or not.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Control, Document
from interfaces.web.names import Names
from interfaces.webdav.places import absent

MAIN = b"main"
HUMANS = b"humans"
ACTIVITY = b"Agent Activity"


@dataclass(frozen=True, slots=True)
class Shown:
    """Attributes of what no branch holds; the content is identified by its digest."""

    st_mode: int
    mtime_ns: int
    size: int = 0
    content: bytes = b""
    node: int = 0
    links: int = 1
    uid: int | None = None
    gid: int | None = None

    @property
    def ctime_ns(self) -> int:
        """Return the time of the last change, nanoseconds."""
        return self.mtime_ns

    @property
    def atime_ns(self) -> int:
        """Return the same: reading changes nothing."""
        return self.mtime_ns


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Something to look at: a collection, or a file with its text."""

    attributes: Shown
    text: bytes = b""

    @property
    def is_collection(self) -> bool:
        """Tell whether it is a collection."""
        return stat.S_ISDIR(self.attributes.st_mode)


COLLECTION = Exhibit(Shown(stat.S_IFDIR | 0o555, 0))
"""A collection that nobody made at any time."""


def split_branch(names: Names) -> tuple[str, Names] | None:
    """Return the branch that names lead into and the names in it; None for what belongs to the lobby. Raises `Kind.NOT_FOUND`."""
    if names[:1] == (MAIN,):
        return "main", names[1:]
    if len(names) < 2 or names[0] == HUMANS:
        return None
    try:
        return b"/".join(names[:2]).decode(), names[2:]
    except UnicodeDecodeError:
        raise absent(names) from None


def find_exhibit(control: Control, caller: Caller, names: Names) -> Exhibit:
    """Return what stands in the lobby. Blocks. Raises `Kind.NOT_FOUND`."""
    if not names:
        return COLLECTION
    found = list_exhibits(control, caller, names[:-1]).get(names[-1])
    if found is None:
        raise absent(names)
    return found


def list_exhibits(control: Control, caller: Caller, names: Names) -> Mapping[bytes, Exhibit]:
    """Return what a collection of the lobby shows, by name. Blocks. Raises `Kind.NOT_FOUND`."""
    if not names:
        return _root(control, caller)
    if names[0] != HUMANS:
        return _runs(control, caller, names)
    if caller.lease or names[1:2] not in {(), (caller.principal.encode(),)} or names[2:3] not in {(), (ACTIVITY,)}:
        raise absent(names)
    if len(names) < 3:
        return {(ACTIVITY if len(names) == 2 else caller.principal.encode()): COLLECTION}
    return _activity(control, caller, names)


def read_only(names: Names) -> Fault:
    """Return the refusal of every change in the lobby."""
    where = "its runs are made with `nas run start`" if names[:1] != (HUMANS,) else "it is written by the appliance"
    return Fault(Kind.READ_ONLY, f"nothing can be changed here: {where}", hint="change files in the branch of a run")


def _root(control: Control, caller: Caller) -> dict[bytes, Exhibit]:
    found: dict[bytes, Exhibit] = {}
    for branch in _branches(control, caller, ""):
        first = branch["branch"].partition("/")[0].encode()
        if branch["branch"] == "main" or "/" in branch["branch"]:
            found[first] = _collection(branch["created"])
    if not caller.lease:
        found[HUMANS] = COLLECTION
    return dict(sorted(found.items()))


def _runs(control: Control, caller: Caller, names: Names) -> dict[bytes, Exhibit]:
    if len(names) > 1:
        raise absent(names)
    prefix = names[0].decode("utf-8", "replace") + "/"
    found = {
        branch["branch"].removeprefix(prefix).encode(): _collection(branch["created"]) for branch in _branches(control, caller, prefix)
    }
    if not found:
        raise absent(names)
    return found


def _branches(control: Control, caller: Caller, prefix: str) -> Iterable[Document]:
    items: list[Document] = control.call(caller, "branch.list", {"prefix": prefix} if prefix else {})["items"]
    return items


def _activity(control: Control, caller: Caller, names: Names) -> dict[bytes, Exhibit]:
    folders = list(_folders(control, caller))
    if len(names) == 3:
        return {item["folder"].encode(): _collection(item["modified"]) for item in folders}
    run = next((item["run"] for item in folders if item["folder"].encode() == names[3]), None)
    if run is None or len(names) > 4:
        raise absent(names)
    shown = control.call(caller, "activity.show", {"run": run})
    return {item["name"].encode(): _file(item["text"].encode(), shown["modified"]) for item in shown["files"]}


def _folders(control: Control, caller: Caller) -> Iterator[Document]:
    """Yield the runs that worked for the caller, page by page."""
    cursor: Document = {}
    while True:
        page = control.call(caller, "activity.list", cursor)
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = {"cursor": page["next"]}


def _collection(modified: str | None) -> Exhibit:
    return Exhibit(Shown(stat.S_IFDIR | 0o555, _nanoseconds(modified)))


def _file(text: bytes, modified: str | None) -> Exhibit:
    return Exhibit(Shown(stat.S_IFREG | 0o444, _nanoseconds(modified), len(text), hashlib.sha256(text).digest()), text)


def _nanoseconds(time: str | None) -> int:
    return 0 if time is None else int(datetime.fromisoformat(time).timestamp()) * 1_000_000_000

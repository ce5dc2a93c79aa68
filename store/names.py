"""Names: what a tree may hold, what a commit may hold, which names are one on other systems, what a branch may be called.

1. A name is bytes, neither empty nor ``.`` or ``..``, without ``/`` and NUL, at most 255 bytes long. The working layer holds any such name.
2. A commit never holds a name that some checkout takes for ``.git``: by case, by code points that HFS+ ignores, by NTFS short
   names, trailing dots and spaces, streams, or behind a backslash. Nor a symlink that one takes for ``.gitmodules``.
3. Names that fold to the same name are twins: legal here, one file on systems that ignore case or compose characters.
4. A branch name is a git reference name in printable ASCII, and no branch lies below another.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

MAX_NAME = 255
"""Longest name in bytes."""

MAX_BRANCH_NAME = 200
"""Longest branch name in characters; leaves room for a lock's suffix in 255 bytes."""

_HFS_IGNORABLE = {*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF}
_IGNORED = dict.fromkeys(_HFS_IGNORABLE)
_DOTGIT = frozenset({".git", "git~1"})
_GITMODULES = re.compile(r"\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]")
_BRANCH_FORBIDDEN = re.compile(r"[^!-~]|[~^:?*\[\\]|\.\.|@\{|//")
_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def explain_name(name: bytes) -> str | None:
    """Return why no tree may hold `name`, or None when it may."""
    if not name:
        return "a name cannot be empty"
    if name in (b".", b".."):
        return "a name cannot be . or .."
    if b"/" in name or b"\0" in name:
        return "a name cannot hold a slash or a NUL"
    if len(name) > MAX_NAME:
        return f"a name cannot be longer than {MAX_NAME} bytes"
    return None


def valid(name: bytes) -> bool:
    """Tell whether a working layer may hold `name`."""
    return explain_name(name) is None


def explain_unversionable(name: bytes, *, symlink: bool = False) -> str | None:
    """Return why no commit may hold `name`, or None when it may; some names are refused for symlinks only."""
    why = explain_name(name)
    if why is not None:
        return why
    if any(disguise in _DOTGIT for disguise in _disguises(name)):
        return "some systems take this name for .git"
    if b"\\" in name and any(part in (b".", b"..") for part in name.split(b"\\")):
        return "some systems take this name for a path that leaves its directory"
    if symlink and any(_GITMODULES.fullmatch(disguise) for disguise in _disguises(name)):
        return "some systems take this symlink for .gitmodules"
    return None


def versionable(name: bytes, *, symlink: bool = False) -> bool:
    """Tell whether a commit may hold `name`."""
    return explain_unversionable(name, symlink=symlink) is None


def _disguises(name: bytes) -> Iterator[str]:
    """Yield what HFS+ and NTFS make of a name, one for each part between backslashes."""
    if name.isalnum():
        return
    for part in name.decode("utf-8", "surrogateescape").split("\\"):
        visible = part.translate(_IGNORED).lower()
        yield visible
        yield visible.partition(":")[0].rstrip(". ")


def fold(name: bytes) -> bytes:
    """Return the name that all twins of `name` share; bytes that are not UTF-8 fold to themselves."""
    if name.isascii():
        return name.lower()
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return name
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()).encode("utf-8")


def find_twins(names: Iterable[bytes]) -> tuple[tuple[bytes, ...], ...]:
    """Return the groups of names of one directory that are one name elsewhere, ordered."""
    groups: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for name in sorted(names):
        groups[fold(name)].append(name)
    return tuple(sorted(tuple(group) for group in groups.values() if len(group) > 1))


def explain_branch_name(name: str) -> str | None:
    """Return why no branch can be called `name`, or None when one can."""
    if not name or len(name) > MAX_BRANCH_NAME:
        return f"a branch name has 1 to {MAX_BRANCH_NAME} characters"
    if _BRANCH_FORBIDDEN.search(name):
        return "a branch name is printable ASCII without spaces, ~ ^ : ? * [ \\, .., @{ and //"
    if name[0] in "-/" or name[-1] in "/.":
        return "a branch name starts with neither - nor / and ends with neither / nor ."
    if any(part.startswith(".") or part.lower().endswith(".lock") for part in name.split("/")):
        return "no part of a branch name starts with . or ends with .lock"
    if name in ("@", "HEAD") or _FULL_ID.fullmatch(name):
        return "git reads this name as something else"
    return None


def names_above(branch: str) -> Iterator[str]:
    """Yield every name that cannot be a branch while `branch` is one, because it would have to be a directory above it."""
    above = branch.rpartition("/")[0]
    while above:
        yield above
        above = above.rpartition("/")[0]

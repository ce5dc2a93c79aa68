"""Git objects as bytes: identities, trees and commits, encoded and parsed.

1. Pure: bytes in, values out; nothing here reads a file, a clock or a setting.
2. What git wrote is written back byte for byte: authors, signatures and unknown headers of imported commits are kept as they are.
3. An identity is SHA-1 as git defines it (20 raw bytes). SHA-1 names content here, it does not protect it: an object that
   exists is never overwritten by another with the same name.
4. Malformed bytes raise `Corrupt`; no parser returns half a result.
"""

from __future__ import annotations

import enum
import hashlib
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from store import trailers
from store.errors import Corrupt
from store.model import Commit, CommitId, ContentId, Note
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, Listing, TreeEntry

GITLINK = 0o160000
"""A submodule: only imported trees hold one, and they keep it; its content is not here."""

ID_LENGTH = 20
DOMAIN = "agent-nas.invalid"
"""The part after the ``@`` of the addresses in commits made here; reserved, so it can never be somebody's mailbox."""

_MODES = {b"%o" % mode: mode for mode in (DIRECTORY, FILE, EXECUTABLE, SYMLINK, GITLINK)}
_COMMITTER = f"Agent NAS <nas@{DOMAIN}>"
_SIGNATURE = re.compile(rb"^(?P<who>.*>) (?P<when>-?\d+)(?: [+-]\d+)?$")
_UNSAFE = re.compile(r"[\x00-\x20<>\x7f]+")


class Kind(enum.IntEnum):
    """The kinds of git objects, with the numbers that packs use."""

    COMMIT = 1
    TREE = 2
    BLOB = 3
    TAG = 4

    @property
    def word(self) -> bytes:
        """Return the kind as headers spell it."""
        return self.name.lower().encode()


class GitObject(NamedTuple):
    """One object: its identity (20 raw bytes), its kind and its content."""

    oid: bytes
    kind: Kind
    data: bytes


@dataclass(frozen=True, slots=True)
class CommitData:
    """A commit as git stores it: raw ids, raw signature lines, other headers verbatim in `extra` (each line with its newline)."""

    tree: bytes
    parents: tuple[bytes, ...]
    author: bytes
    committer: bytes
    message: bytes
    extra: bytes = b""


def object_header(kind: Kind, size: int) -> bytes:
    """Return the bytes that git hashes in front of `size` bytes of content."""
    return b"%s %d\0" % (kind.word, size)


def object_id(kind: Kind, data: bytes) -> bytes:
    """Return the 20 raw bytes that name an object."""
    digest = hashlib.sha1(object_header(kind, len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


def make_object(kind: Kind, data: bytes) -> GitObject:
    """Return `data` as an object with its identity."""
    return GitObject(object_id(kind, data), kind, data)


EMPTY_TREE = object_id(Kind.TREE, b"")
"""The identity of the directory without entries."""


def parse_tree(data: bytes) -> dict[bytes, TreeEntry]:
    """Return the entries of a tree object by name, in git's order; odd file modes of old tools become one of the two. Raises `Corrupt`."""
    entries: dict[bytes, TreeEntry] = {}
    find, position, end = data.find, 0, len(data)
    while position < end:
        space = find(b" ", position)
        zero = find(b"\0", space)
        after = zero + 1 + ID_LENGTH
        if space <= position or zero <= space + 1 or after > end:
            raise Corrupt("tree", "an entry is cut short")
        digits = data[position:space]
        entries[data[space + 1 : zero]] = TreeEntry(_MODES.get(digits) or _parse_mode(digits), data[zero + 1 : after])
        position = after
    return entries


def encode_tree(listing: Listing) -> bytes:
    """Return the tree object of a listing; directories sort as if their names ended in a slash, as git wants it."""
    ordered = sorted((name + b"/" if entry.mode == DIRECTORY else name, name, entry) for name, entry in listing.items())
    return b"".join([b"%o %s\0%s" % (entry.mode, name, entry.content) for _, name, entry in ordered])


def encode_commit(commit: CommitData) -> bytes:
    """Return the commit object; the reverse of `parse_commit`."""
    lines = [b"tree " + commit.tree.hex().encode()]
    lines += [b"parent " + parent.hex().encode() for parent in commit.parents]
    lines += [b"author " + commit.author, b"committer " + commit.committer]
    return b"\n".join(lines) + b"\n" + commit.extra + b"\n" + commit.message


def parse_commit(data: bytes) -> CommitData:
    """Return what a commit object says. Raises `Corrupt` when a required header is missing or out of place."""
    head, blank, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    tree = _take_id(lines, b"tree ")
    parents = []
    while lines and lines[0].startswith(b"parent "):
        parents.append(_take_id(lines, b"parent "))
    author, committer = _take(lines, b"author "), _take(lines, b"committer ")
    if not blank:
        raise Corrupt("commit", "it has no blank line after its headers")
    return CommitData(tree, tuple(parents), author, committer, message, b"".join(line + b"\n" for line in lines))


def compose_commit(tree: bytes, parents: Sequence[bytes], note: Note) -> GitObject:
    """Return the commit that says `note` of a tree: its principal is the author, this product the committer."""
    name = _UNSAFE.sub("-", note.provenance.principal).strip("-.") or "unknown"
    author = f"{name} <{name}@{DOMAIN}> {note.when} +0000"
    committer = f"{_COMMITTER} {note.when} +0000"
    data = CommitData(tree, tuple(parents), author.encode(), committer.encode(), trailers.encode_message(note))
    return make_object(Kind.COMMIT, encode_commit(data))


def read_commit(oid: bytes, data: bytes) -> Commit:
    """Return a commit object in the store's words; the time is the committer's. Raises `Corrupt`."""
    commit = parse_commit(data)
    who, _ = parse_signature(commit.author)
    _, when = parse_signature(commit.committer)
    return Commit(
        id=CommitId(oid.hex()),
        parents=tuple(CommitId(parent.hex()) for parent in commit.parents),
        tree=ContentId(commit.tree.hex()),
        note=trailers.decode_message(commit.message, when),
        author=who,
    )


def parse_signature(line: bytes) -> tuple[str, int]:
    """Return who (``Name <address>``) and when (seconds) of an author or committer line. Raises `Corrupt`."""
    match = _SIGNATURE.match(line)
    if match is None:
        raise Corrupt("commit", "a signature line has no time")
    return match["who"].decode("utf-8", "replace"), int(match["when"])


def _parse_mode(digits: bytes) -> int:
    try:
        mode = int(digits, 8)
    except ValueError:
        raise Corrupt("tree", "a mode is not octal") from None
    if not stat.S_ISREG(mode):
        return mode
    return EXECUTABLE if mode & stat.S_IXUSR else FILE


def _take(lines: list[bytes], key: bytes) -> bytes:
    if not lines or not lines[0].startswith(key):
        raise Corrupt("commit", f"its {key.decode().strip()} line is missing")
    return lines.pop(0)[len(key) :]


def _take_id(lines: list[bytes], key: bytes) -> bytes:
    digits = _take(lines, key)
    try:
        oid = bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        raise Corrupt("commit", f"its {key.decode().strip()} line holds no object id") from None
    if len(oid) != ID_LENGTH:
        raise Corrupt("commit", f"its {key.decode().strip()} line holds no object id")
    return oid

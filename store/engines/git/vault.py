"""Reading what was committed: trees, commits, contents and their sizes, wherever they lie now.

1. An object is in the journal (a row) until it is in a pack. The journal is asked first: it is deleted only after the pack is there,
   so an object that is found in neither does not exist. A draft is read like an object, and is none.
2. Small objects come through libgit2; content above a mebibyte is streamed, because libgit2 holds the interpreter for its whole length.
3. Trees and commits are parsed once and kept as long as they are used; nobody may change what they get.
4. A pointer written by this store stands for large content and has its size; a file that merely looks like one is itself.
5. Every method may be called from several threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pygit2

from store.engines.git.caches import RecentMap
from store.engines.git.database import Database
from store.engines.git.large import POINTER_SIZES, LargeStore, Pointer
from store.engines.git.nodes import NodeRow
from store.engines.git.objects import EMPTY_TREE, GITLINK, CommitData, GitObject, Kind, parse_commit, parse_tree
from store.engines.git.packfolder import PackFolder
from store.errors import Corrupt, NotFound
from store.model import CommitId, ContentId, EntryKind, Side
from store.trees import DIRECTORY, EMPTY, EXECUTABLE, SYMLINK, Listing, TreeEntry

_TREE_BYTES = 64 << 20
_ENTRY_BYTES = 150
_COMMITS = 50_000
_SIZES = 500_000
_UNSTORED_BYTES = 32 << 20
_STREAM_FROM = 1 << 20
_READ = "SELECT kind, data FROM object WHERE oid = ?1 UNION ALL SELECT 3, data FROM draft WHERE oid = ?1 LIMIT 1"
_MEASURE = "SELECT length(data) FROM object WHERE oid = ?1 UNION ALL SELECT length(data) FROM draft WHERE oid = ?1 LIMIT 1"


class Vault:
    """The committed content of one store, for reading."""

    empty_tree = EMPTY_TREE

    def __init__(self, database: Database, git_dir: Path, large: LargeStore) -> None:
        """Read from the journal, from the packs of a bare repository, and from the store of large content."""
        self._database = database
        self._repository = pygit2.Repository(os.fspath(git_dir))
        self._odb = self._repository.odb
        self._packs = PackFolder(git_dir)
        self._large = large
        self._trees: RecentMap[bytes, Listing] = RecentMap(_TREE_BYTES, lambda listing: 200 + _ENTRY_BYTES * len(listing))
        self._commits: RecentMap[bytes, CommitData] = RecentMap(_COMMITS)
        self._unstored: RecentMap[bytes, bytes] = RecentMap(_UNSTORED_BYTES, len)
        self._sizes: RecentMap[bytes, int] = RecentMap(_SIZES)

    def read(self, oid: bytes) -> tuple[Kind, bytes]:
        """Return the kind and content of a small object. Raises `NotFound`."""
        row = self._database.select_one(_READ, (oid,))
        if row is not None:
            return Kind(row[0]), row[1]
        try:
            kind, data = self._odb.read(pygit2.Oid(raw=oid))
        except KeyError:
            raise NotFound(oid.hex(), "no such object") from None
        return Kind(kind), data

    def draft(self, branch: int, oid: bytes) -> GitObject | None:
        """Return a draft of a branch as the object that a commit makes of it, None when there is none."""
        row = self._database.select_one("SELECT data FROM draft WHERE oid = ? AND branch = ?", (oid, branch))
        return None if row is None else GitObject(oid, Kind.BLOB, row[0])

    def keep_content(self, oid: bytes, data: bytes) -> None:
        """Remember a small content that is not stored, for whoever asked what would change and now wants to see it."""
        self._unstored.put(oid, data)

    def read_whole(self, oid: bytes, wanted: Kind) -> bytes:
        """Return the content of a small object that is of a kind. Raises `NotFound`, `Corrupt` when it is of another."""
        unstored = self._unstored.get(oid) if wanted is Kind.BLOB else None
        if unstored is not None:
            return unstored
        kind, data = self.read(oid)
        if kind is not wanted:
            raise Corrupt(oid.hex(), f"a {kind.name.lower()} stands where a {wanted.name.lower()} belongs")
        return data

    def has(self, oid: bytes) -> bool:
        """Tell whether an object exists."""
        if self._database.select_one("SELECT 1 FROM object WHERE oid = ?", (oid,)):
            return True
        return pygit2.Oid(raw=oid) in self._odb

    def is_commit(self, oid: bytes) -> bool:
        """Tell whether an object exists and is a commit."""
        if self._commits.get(oid) is not None:
            return True
        try:
            return self.read(oid)[0] is Kind.COMMIT
        except NotFound:
            return False

    def tree(self, oid: bytes) -> Listing:
        """Return the entries of a directory. Raises `NotFound`, `Corrupt`."""
        listing = self._trees.get(oid)
        if listing is None:
            if oid == EMPTY_TREE:
                return EMPTY
            listing = parse_tree(self.read_whole(oid, Kind.TREE))
            self._trees.put(oid, listing)
        return listing

    def commit(self, oid: bytes) -> CommitData:
        """Return a parsed commit. Raises `NotFound`, `Corrupt`."""
        commit = self._commits.get(oid)
        if commit is None:
            commit = parse_commit(self.read_whole(oid, Kind.COMMIT))
            self._commits.put(oid, commit)
        return commit

    def keep_tree(self, oid: bytes, listing: Listing) -> None:
        """Remember a tree that was written just now, which will be read next."""
        self._trees.put(oid, listing)

    def size(self, oid: bytes) -> int:
        """Return the bytes of a file's content, of large content its own. Raises `NotFound`."""
        size = self._sizes.get(oid)
        if size is None:
            size = self._stored_size(oid)
            pointer = self.pointer(oid) if size in POINTER_SIZES else None
            size = size if pointer is None else pointer.size
            self._sizes.put(oid, size)
        return size

    def pointer(self, oid: bytes) -> Pointer | None:
        """Return the large content that a blob stands for, or None when the blob is the content."""
        row = self._database.select_one("SELECT sha256, size FROM large WHERE oid = ?", (oid,))
        return None if row is None else Pointer(*row)

    def chunks(self, oid: bytes) -> Iterator[bytes]:
        """Yield a file's content in pieces. Raises `NotFound`, `Corrupt`."""
        size = self.size(oid)
        pointer = self.pointer(oid)
        if pointer is not None:
            yield from self._large.stream(pointer)
        elif size >= _STREAM_FROM and (pieces := self._packs.stream(oid)) is not None:
            yield from pieces
        else:
            yield self.read_whole(oid, Kind.BLOB)

    def content(self, oid: bytes) -> bytes:
        """Return a small file's content whole; the caller knows its size."""
        unstored = self._unstored.get(oid)
        return b"".join(self.chunks(oid)) if unstored is None else unstored

    def link(self, row: NodeRow) -> bytes:
        """Return the target of a symlink; its blob is never a pointer, whatever it spells."""
        if row.target is not None:
            return row.target
        return b"" if row.lower is None else self.read_whole(row.lower, Kind.BLOB)

    def side(self, entry: TreeEntry | None, sizes: Mapping[bytes, int] = {}) -> Side | None:
        """Return an entry in the store's words, with the size of its content, which `sizes` knows if it is not stored."""
        if entry is None:
            return None
        content = ContentId(entry.content.hex())
        if entry.mode in (DIRECTORY, GITLINK):
            return Side(EntryKind.DIRECTORY, False, content)
        kind = EntryKind.SYMLINK if entry.mode == SYMLINK else EntryKind.FILE
        size = sizes.get(entry.content)
        if size is None:
            size = self._stored_size(entry.content) if kind is EntryKind.SYMLINK else self.size(entry.content)
        return Side(kind, entry.mode == EXECUTABLE, content, size)

    def find_commits(self, prefix: str) -> set[CommitId]:
        """Return the commits whose id starts with a prefix of hexadecimal digits, as far as that is unique within the packs."""
        low, high = bytes.fromhex(prefix.ljust(40, "0")), bytes.fromhex(prefix.ljust(40, "f"))
        rows = self._database.select("SELECT oid FROM object WHERE oid BETWEEN ? AND ? AND kind = ?", (low, high, Kind.COMMIT))
        found = {CommitId(row[0].hex()) for row in rows}
        try:
            packed = self._repository.expand_id(prefix)
        except (KeyError, ValueError):
            return found
        return found | {CommitId(str(packed))} if self.read(packed.raw)[0] is Kind.COMMIT else found

    def close(self) -> None:
        """Release the packs."""
        self._packs.close()
        self._repository.free()

    def _stored_size(self, oid: bytes) -> int:
        row = self._database.select_one(_MEASURE, (oid,))
        if row is not None:
            return int(row[0])
        try:
            return int(self._odb.read_header(pygit2.Oid(raw=oid))[1])
        except KeyError:
            raise NotFound(oid.hex(), "no such object") from None

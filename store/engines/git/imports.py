"""Directories into trees: one walk over a directory that may be hostile or may change meanwhile, straight into one pack.

1. Nothing outside the source is ever read: every directory and file is opened beneath the descriptor of its parent without following
   links, so a name swapped for a symlink during the walk is passed over, not followed. Symlinks are stored as they are.
2. What a tree cannot hold is passed over and reported with the reason: ``.git``, devices, pipes, sockets, what cannot be read,
   extended attributes. A name that no checkout can be trusted with refuses the whole import (`HostileTree`).
3. A file that changes while it is read comes in as it was read; never with bytes of another file.
4. Files of `large.THRESHOLD` bytes or more go to the large store in chunks; smaller ones pass through memory one at a time.
5. Nothing is part of the store until the caller's transaction: an import that fails leaves an aborted pack and unreferenced chunks.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from store import names
from store.contract import Progress
from store.engines.git.content import disk_errors
from store.engines.git.large import LargeStore, Pointer, belongs, encode_pointer
from store.engines.git.objects import Kind, encode_tree, make_object
from store.engines.git.packs import PackWriter
from store.errors import HostileTree, ImportFailed
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry, join_path

DEEPEST = 128
"""Directories nested deeper than this fail the import."""

REPORT_EVERY = 500
"""Files between two calls of the progress function."""

Taken = Callable[[bytes], bool]

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ImportedTree:
    """What one directory became: its tree, how many files and symlinks of how many bytes, what was passed over and why, and which
    blobs are pointers that now stand for large files.
    """

    tree: bytes
    files: int
    size: int
    passed_over: dict[bytes, str]
    pointers: dict[bytes, Pointer]


def import_tree(
    source: Path, pack: PackWriter, large: LargeStore, progress: Progress, *, avoid: Path | None = None, taken: Taken = lambda _oid: False
) -> ImportedTree:
    """Write the content of a directory into `pack` and `large` and return its tree; the directory `avoid` (the store's own) is passed over.

    `taken` tells of a pointer blob that it is an ordinary file in an imported history; a file that would need it is stored whole.
    The caller holds `large.writing`. Raises `ImportFailed` when the source is no readable directory, `HostileTree`.
    """
    walk = _Walk(pack, large, progress, _identity(avoid) if avoid is not None else None, taken)
    try:
        with _opened(os.fsencode(source), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None) as descriptor:
            tree = walk.take_directory(descriptor, b"", 0)
    except OSError as error:
        raise ImportFailed(str(source), error.strerror or str(error)) from error
    progress("import", walk.files, walk.files)
    return ImportedTree(tree, walk.files, walk.size, walk.passed_over, walk.pointers)


@dataclass(slots=True)
class _Walk:
    """The state of one walk."""

    pack: PackWriter
    large: LargeStore
    progress: Progress
    avoid: tuple[int, int] | None
    taken: Taken
    files: int = 0
    size: int = 0
    passed_over: dict[bytes, str] = field(default_factory=dict)
    pointers: dict[bytes, Pointer] = field(default_factory=dict)

    def take_directory(self, descriptor: int, path: bytes, depth: int) -> bytes:
        """Store everything below an open directory and return the identity of its tree."""
        if depth > DEEPEST:
            raise ImportFailed(path, f"directories are nested more than {DEEPEST} deep")
        listing: dict[bytes, TreeEntry] = {}
        for name in sorted(os.fsencode(found) for found in os.listdir(descriptor)):
            entry = self.take_entry(descriptor, name, join_path(path, name), depth)
            if entry is not None:
                listing[name] = entry
        tree = make_object(Kind.TREE, encode_tree(listing))
        with disk_errors("import"):
            self.pack.add(tree)
        return tree.oid

    def take_entry(self, parent: int, name: bytes, path: bytes, depth: int) -> TreeEntry | None:
        """Store one name of an open directory; None when it was passed over."""
        if name == b".git":
            return self.pass_over(path, "a commit cannot hold it")
        try:
            return self.take_kind(parent, name, path, depth)
        except OSError as error:
            return self.pass_over(path, error.strerror or "it cannot be read")

    def take_kind(self, parent: int, name: bytes, path: bytes, depth: int) -> TreeEntry | None:
        """Store one name by what it stands for. Raises `OSError` when it cannot be read, or is not what it was a moment ago."""
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        why = names.explain_unversionable(name, symlink=stat.S_ISLNK(found.st_mode))
        if why is not None:
            raise HostileTree(path, why)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(name, dir_fd=parent)
            self.count(len(target))
            return TreeEntry(SYMLINK, self.store_blob(target))
        if stat.S_ISDIR(found.st_mode):
            return self.take_subdirectory(parent, name, path, depth)
        if stat.S_ISREG(found.st_mode):
            with _opened(name, _OPEN_FILE, parent) as descriptor:
                return self.take_file(descriptor, path)
        return self.pass_over(path, "it is neither a file, a directory nor a symlink")

    def take_subdirectory(self, parent: int, name: bytes, path: bytes, depth: int) -> TreeEntry | None:
        """Store a directory beneath an open one."""
        with _opened(name, _OPEN_DIRECTORY, parent) as descriptor:
            found = os.fstat(descriptor)
            if (found.st_dev, found.st_ino) == self.avoid:
                return self.pass_over(path, "it is the store itself")
            return TreeEntry(DIRECTORY, self.take_directory(descriptor, path, depth + 1))

    def take_file(self, descriptor: int, path: bytes) -> TreeEntry | None:
        """Store an open file, once it is certain that it is one."""
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return self.pass_over(path, "it changed while it was read")
        size, oid = self.store_content(descriptor, found.st_size)
        self.note_xattrs(descriptor, path)
        self.count(size)
        return TreeEntry(EXECUTABLE if found.st_mode & stat.S_IXUSR else FILE, oid)

    def count(self, size: int) -> None:
        """Count one more file or symlink."""
        self.files += 1
        self.size += size
        if self.files % REPORT_EVERY == 0:
            self.progress("import", self.files, 0)

    def store_content(self, descriptor: int, size: int) -> tuple[int, bytes]:
        """Store what an open file holds and return its length and the identity of the blob that stands for it."""
        if not belongs(descriptor, size):
            data = _read_up_to(descriptor, size)
            return len(data), self.store_blob(data)
        with disk_errors("import"):
            pointer = self.large.put(descriptor)
            blob = make_object(Kind.BLOB, encode_pointer(pointer))
            if self.taken(blob.oid):
                return pointer.size, self.pack.add_stream(Kind.BLOB, pointer.size, self.large.stream(pointer))
            self.pack.add(blob)
        self.pointers[blob.oid] = pointer
        return pointer.size, blob.oid

    def store_blob(self, data: bytes) -> bytes:
        """Store a small content and return its identity. Raises `NoSpace`: what the store's disk refuses is no fault of the source."""
        with disk_errors("import"):
            return self.pack.add_blob(data)

    def note_xattrs(self, descriptor: int, path: bytes) -> None:
        """Report extended attributes, which live in working layers only."""
        if _has_user_xattrs(descriptor):
            self.passed_over[path] = "its extended attributes; the content is in"

    def pass_over(self, path: bytes, why: str) -> TreeEntry | None:
        """Report a path that stays out, and return the entry it has in the tree: none."""
        self.passed_over[path] = why
        return None


@contextmanager
def _opened(name: bytes, flags: int, parent: int | None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_up_to(descriptor: int, size: int) -> bytes:
    pieces, wanted = [], size
    while wanted and (piece := os.read(descriptor, wanted)):
        pieces.append(piece)
        wanted -= len(piece)
    return b"".join(pieces)


def _has_user_xattrs(descriptor: int) -> bool:
    try:
        return any(name.startswith("user.") for name in os.listxattr(descriptor))
    except OSError as failure:
        if failure.errno != errno.ENOTSUP:
            raise
        return False


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino

"""Trees out of the store: a commit as a plain directory.

1. Nothing is written outside the target: every directory is opened beneath the target's descriptor without following links, every file
   is created there and never opened where something is. A target that holds anything is refused (`Exists`).
2. Content is streamed and verified as the store reads it; long runs of zeros become holes.
3. Everything carries the time of the commit, so two exports of one commit are alike.
4. Submodules become empty directories.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from store import names
from store.contract import Progress
from store.engines.git.large import Pointer, write_pieces
from store.engines.git.objects import GITLINK, CommitData
from store.errors import Corrupt, Exists, NoSpace, StoreError
from store.trees import DIRECTORY, EXECUTABLE, SYMLINK, Listing, TreeEntry

REPORT_EVERY = 500
"""Files between two calls of the progress function."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Source(Protocol):
    """What an export reads: committed content by identity."""

    def tree(self, oid: bytes) -> Listing:
        """Return the entries of a directory."""

    def commit(self, oid: bytes) -> CommitData:
        """Return a commit."""

    def size(self, oid: bytes) -> int:
        """Return the bytes of a file's content; of large content, its own."""

    def pointer(self, oid: bytes) -> Pointer | None:
        """Return the large content that a blob stands for, or None when the blob is the content."""

    def chunks(self, oid: bytes) -> Iterator[bytes]:
        """Yield a file's content in pieces; of large content, its own."""

    def read(self, oid: bytes) -> tuple[int, bytes]:
        """Return the kind and the stored bytes of a small object."""


def export_tree(source: Source, tree: bytes, when: int, target: Path, progress: Progress) -> int:
    """Write a tree into an empty or missing directory and return the number of files; `when` is their time in seconds.

    Raises `Exists` when the target holds anything, `NoSpace`, `StoreError` for what else the disk refuses. What was written stays then.
    """
    with reported(target):
        target.mkdir(exist_ok=True)
        descriptor = os.open(target, _OPEN_DIRECTORY)
        try:
            _refuse_content(target, descriptor)
            return _Export(source, descriptor, when * 10**9, progress).write(tree)
        finally:
            os.close(descriptor)


@contextmanager
def reported(target: Path) -> Iterator[None]:
    """Turn what the disk refuses in the block into the store's errors."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(str(target), "the disk below it is full") from error
        if isinstance(error, FileExistsError):
            raise Exists(str(target), "something else is there") from error
        raise StoreError(str(target), error.strerror or str(error)) from error


class _Export:
    """One export being written."""

    def __init__(self, source: Source, root: int, time_ns: int, progress: Progress) -> None:
        self._source = source
        self._root = root
        self._times = (time_ns, time_ns)
        self._progress = progress
        self._files = 0

    def write(self, tree: bytes) -> int:
        """Write the tree; directories wait on a list of their own, so depth costs no stack and no descriptors."""
        waiting: list[tuple[tuple[bytes, ...], bytes]] = [((), tree)]
        while waiting:
            path, tree = waiting.pop()
            with self._opened(path) as descriptor:
                for name, entry in self._source.tree(tree).items():
                    self._write_entry(descriptor, name, entry)
                    if entry.mode == DIRECTORY:
                        waiting.append(((*path, name), entry.content))
                os.utime(descriptor, ns=self._times)
        self._progress("export", self._files, self._files)
        return self._files

    @contextmanager
    def _opened(self, path: tuple[bytes, ...]) -> Iterator[int]:
        descriptor = os.dup(self._root)
        try:
            for name in path:
                below = os.open(name, _OPEN_DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _write_entry(self, parent: int, name: bytes, entry: TreeEntry) -> None:
        if not names.valid(name):
            raise Corrupt(name, "a tree holds a name that no directory can")
        if entry.mode in (DIRECTORY, GITLINK):
            os.mkdir(name, dir_fd=parent)
            return
        if entry.mode == SYMLINK:
            os.symlink(self._source.read(entry.content)[1], name, dir_fd=parent)
            os.utime(name, ns=self._times, dir_fd=parent, follow_symlinks=False)
        else:
            self._write_file(parent, name, entry)
        self._files += 1
        if self._files % REPORT_EVERY == 0:
            self._progress("export", self._files, 0)

    def _write_file(self, parent: int, name: bytes, entry: TreeEntry) -> None:
        descriptor = os.open(name, _CREATE, 0o777 if entry.mode == EXECUTABLE else 0o666, dir_fd=parent)
        try:
            write_pieces(descriptor, self._source.chunks(entry.content))
            os.utime(descriptor, ns=self._times)
        finally:
            os.close(descriptor)


def _refuse_content(target: Path, descriptor: int) -> None:
    """Raise `Exists` when an open directory holds anything."""
    if os.listdir(descriptor):
        raise Exists(str(target), "the directory is not empty")

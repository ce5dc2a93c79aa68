"""Directories in and out of the reference engine.

1. Symlinks are taken and made as they are, never followed; nothing is written over.
2. What no commit holds (special files, names some system takes for ``.git``) is passed over and reported.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from store.contract import Progress
from store.engines.reference.contents import Contents
from store.errors import Exists, ImportFailed
from store.names import explain_unversionable
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry, join_path


class Intake:
    """Reads one directory tree; counts files and bytes and keeps why paths were passed over."""

    def __init__(self, contents: Contents, progress: Progress) -> None:
        self.files = 0
        self.bytes = 0
        self.passed_over: dict[bytes, str] = {}
        self._contents = contents
        self._progress = progress

    def read(self, source: Path) -> bytes:
        """Return the content of the root. Raises `ImportFailed`."""
        try:
            return self._directory(os.fsencode(source), b"")
        except OSError as error:
            raise ImportFailed(source, error.strerror or "cannot be read") from error

    def _directory(self, source: bytes, prefix: bytes) -> bytes:
        listing = {}
        with os.scandir(source) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                taken = self._entry(entry, join_path(prefix, entry.name))
                if taken is not None:
                    listing[entry.name] = taken
        return self._contents.write_tree(listing)

    def _entry(self, entry: os.DirEntry[bytes], path: bytes) -> TreeEntry | None:
        why = explain_unversionable(entry.name, symlink=entry.is_symlink())
        mode = entry.stat(follow_symlinks=False).st_mode
        if why is None and stat.S_ISDIR(mode):
            return TreeEntry(DIRECTORY, self._directory(entry.path, path))
        if why is None and stat.S_ISLNK(mode):
            return self._blob(SYMLINK, os.readlink(entry.path))
        if why is None and stat.S_ISREG(mode):
            return self._blob(EXECUTABLE if mode & 0o100 else FILE, _read_file(entry.path))
        self.passed_over[path] = why or "a special file"
        return None

    def _blob(self, mode: int, data: bytes) -> TreeEntry:
        self.files += 1
        self.bytes += len(data)
        self._progress("files", self.files, 0)
        return TreeEntry(mode, self._contents.write_blob(data))


def _read_file(path: bytes) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return file.read()


class Outlet:
    """Writes one tree into an empty or missing directory and counts its files."""

    def __init__(self, contents: Contents, progress: Progress) -> None:
        self.files = 0
        self._contents = contents
        self._progress = progress

    def write(self, root: bytes, target: Path) -> int:
        """Write the tree and return the number of files. Raises `Exists`."""
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise Exists(target, "the directory is not empty")
        self._below(root, os.fsencode(target))
        return self.files

    def _below(self, content: bytes, target: bytes) -> None:
        for name, entry in self._contents.read_tree(content).items():
            path = join_path(target, name)
            if entry.mode == DIRECTORY:
                os.makedirs(path)
                self._below(entry.content, path)
                continue
            self._leaf(entry, path)
            self.files += 1
            self._progress("files", self.files, 0)

    def _leaf(self, entry: TreeEntry, path: bytes) -> None:
        data = self._contents.read_blob(entry.content)
        if entry.mode == SYMLINK:
            os.symlink(data, path)
            return
        mode = 0o755 if entry.mode == EXECUTABLE else 0o644
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            file.write(data)

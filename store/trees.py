"""Directory trees by content: what a listing is, and how to read, edit and walk one.

1. Pure: an engine supplies `read` (content of a directory -> its listing) and `write` (listing -> content).
2. Two entries with the same content are the same, whatever lies below; nothing here reads below equal content.
3. A directory may be empty, and stays when its last entry goes.
4. A listing that `read` returned is never changed; an edit copies the directories it touches, once each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

DIRECTORY = 0o040000
FILE = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000


class TreeEntry(NamedTuple):
    """What a name stands for: its mode, one of the four above, and the opaque identity of its content."""

    mode: int
    content: bytes


Listing = Mapping[bytes, TreeEntry]
ReadTree = Callable[[bytes], Listing]
WriteTree = Callable[[Listing], bytes]

EMPTY: Listing = {}
"""The listing of a directory without entries."""


def is_directory(entry: TreeEntry | None) -> bool:
    """Tell whether there is an entry and it is a directory."""
    return entry is not None and entry.mode == DIRECTORY


def join_path(directory: bytes, name: bytes) -> bytes:
    """Return the path of `name` in `directory`; the root is the empty path."""
    return directory + b"/" + name if directory else name


def split_path(path: bytes) -> tuple[bytes, bytes]:
    """Return the directory and the last name of a path."""
    directory, _, name = path.rpartition(b"/")
    return directory, name


def find_entry(read: ReadTree, root: bytes, path: bytes) -> TreeEntry | None:
    """Return the entry at `path`, the root's own for the empty path, or None."""
    entry: TreeEntry | None = TreeEntry(DIRECTORY, root)
    for name in path.split(b"/") if path else ():
        if entry is None or entry.mode != DIRECTORY:
            return None
        entry = read(entry.content).get(name)
    return entry


def walk_entries(read: ReadTree, root: bytes, prefix: bytes = b"") -> Iterator[tuple[bytes, TreeEntry]]:
    """Yield every path below `root` with its entry, each directory before what it holds, names in order."""
    pending = [(prefix, root)]
    while pending:
        directory, content = pending.pop()
        below = []
        for name, entry in sorted(read(content).items()):
            path = join_path(directory, name)
            yield path, entry
            if entry.mode == DIRECTORY:
                below.append((path, entry.content))
        pending.extend(reversed(below))


class Draft:
    """A tree under construction over a written one; holds only the directories it touched.

    A part of a draft is a `TreeEntry` (as written) or a `Folder` (touched); `cut` and `place` move parts whole.
    """

    def __init__(self, read: ReadTree, root: bytes | None) -> None:
        self._read = read
        self._root = Folder(dict(read(root)) if root is not None else {})

    def cut(self, path: bytes) -> Part | None:
        """Take out and return what is at `path`, or None when nothing is there."""
        folder = self._open(split_path(path)[0])
        return None if folder is None else folder.parts.pop(split_path(path)[1], None)

    def get(self, path: bytes) -> Part | None:
        """Return what is at `path`, or None."""
        folder = self._open(split_path(path)[0])
        return None if folder is None else folder.parts.get(split_path(path)[1])

    def place(self, path: bytes, part: Part) -> None:
        """Put a part at `path`, making the directories above it; a file in the way, above or there, is replaced."""
        directory, name = split_path(path)
        self._make(directory).parts[name] = part

    def blocked(self, path: bytes) -> bytes | None:
        """Return the topmost path above `path` where something other than a directory is, or None."""
        folder = self._root
        above = b""
        for name in path.split(b"/")[:-1]:
            above = join_path(above, name)
            if name not in folder.parts:
                return None
            below = self._step(folder, name)
            if below is None:
                return above
            folder = below
        return None

    def freeze(self, write: WriteTree) -> bytes:
        """Write every touched directory, deepest first, and return the content of the root."""
        return _freeze(self._root, write).content

    def freeze_part(self, part: Part, write: WriteTree) -> TreeEntry:
        """Write a part that was cut out and return its entry."""
        return part if isinstance(part, TreeEntry) else _freeze(part, write)

    def _step(self, folder: Folder, name: bytes) -> Folder | None:
        part = folder.parts.get(name)
        if isinstance(part, TreeEntry):
            if part.mode != DIRECTORY:
                return None
            part = folder.parts[name] = Folder(dict(self._read(part.content)))
        return part

    def _open(self, path: bytes) -> Folder | None:
        folder: Folder | None = self._root
        for name in path.split(b"/") if path else ():
            if folder is None:
                return None
            folder = self._step(folder, name)
        return folder

    def _make(self, path: bytes) -> Folder:
        folder = self._root
        for name in path.split(b"/") if path else ():
            below = self._step(folder, name)
            if below is None:
                below = folder.parts[name] = Folder({})
            folder = below
        return folder


class Folder:
    """A directory of a draft, open for change."""

    __slots__ = ("parts",)

    def __init__(self, parts: Mapping[bytes, TreeEntry]) -> None:
        self.parts: dict[bytes, Part] = dict(parts)


Part = TreeEntry | Folder


def _freeze(folder: Folder, write: WriteTree) -> TreeEntry:
    listing = {name: part if isinstance(part, TreeEntry) else _freeze(part, write) for name, part in folder.parts.items()}
    return TreeEntry(DIRECTORY, write(listing))


def edit_tree(read: ReadTree, write: WriteTree, root: bytes | None, edits: Mapping[bytes, TreeEntry | None]) -> bytes:
    """Return the root with every path of `edits` set to its entry or (None) removed.

    Parents come before what is below them, so replacing a file by a directory's entries works in one call.
    Missing directories are made; directories that lose their last entry stay, unless they are removed themselves.
    """
    draft = Draft(read, root)
    for path in sorted(path for path, entry in edits.items() if entry is None):
        draft.cut(path)
    for path, entry in sorted((path, entry) for path, entry in edits.items() if entry is not None):
        draft.place(path, entry)
    return draft.freeze(write)

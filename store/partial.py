"""Partial trees: what somebody sees of a tree, how what they made of it goes back into the whole, and which paths a commit touches itself.

1. Pure: an engine supplies `read` (content of a directory -> its listing) and `write` (listing -> content), as in `store.trees`.
2. What is left out leaves no trace: neither content nor name, and no directory that holds nothing else.
3. Selecting is a function of a tree and of what is kept, and nothing else: the same tree always becomes the same one, and a tree of
   which everything is kept becomes itself. So it can be remembered, and costs what is new.
4. `graft_tree` undoes `select_tree`: grafting a selection onto its origin gives the origin, and selecting a graft gives what was grafted.
5. Directories nested deeper than `DEEPEST` are refused, so that depth costs no stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from store.errors import NotEmpty, TooLarge
from store.trees import DIRECTORY, EMPTY, Listing, ReadTree, TreeEntry, WriteTree, join_path

DEEPEST = 256
"""How many directories may lie in one another."""


class Keep(Protocol):
    """Says which paths are kept. It has no memory of its own: the same question always gets the same answer."""

    def keeps(self, directory: bytes, name: bytes) -> bool:
        """Tell whether the file, symlink or empty directory `name` of a directory is kept."""

    def keeps_all(self, directory: bytes) -> bool:
        """Tell whether everything that is or could be below a directory is kept; False where that is unknown."""

    def keeps_none(self, directory: bytes) -> bool:
        """Tell whether nothing that is or could be below a directory is kept; False where that is unknown."""


class Memory(Protocol):
    """Remembers what became of directories."""

    def find(self, directory: bytes, content: bytes) -> tuple[bytes | None] | None:
        """Return what became of a directory's content (in a tuple, None: nothing is left of it), or None when it is not known."""

    def put(self, directory: bytes, content: bytes, kept: bytes | None) -> None:
        """Remember what became of a directory's content."""


class Introduced(NamedTuple):
    """One path that a commit holds otherwise than each of its parents; `entry` is None where it removes what they hold."""

    path: bytes
    entry: TreeEntry | None


def select_tree(read: ReadTree, write: WriteTree, root: bytes, keep: Keep, memory: Memory) -> bytes:
    """Return the root with nothing but what is kept. Raises `TooLarge` (rule 5)."""
    kept = _Selection(read, write, keep, memory).take(b"", root)
    return write(EMPTY) if kept is None else kept


def graft_tree(read: ReadTree, write: WriteTree, shown: bytes, before: bytes, whole: bytes) -> bytes:
    """Return the root `shown` with everything that `whole` holds and `before`, its selection, leaves out.

    Raises `NotEmpty` when something took the place of a directory of which a part is left out, `TooLarge` (rule 5).
    """
    return _Graft(read, write).take(b"", shown, before, whole)


def list_introduced(read: ReadTree, tree: bytes, parents: Sequence[bytes]) -> Iterator[Introduced]:
    """Yield the paths at which a tree differs from every one of its parents' trees, in no order; without parents, every path.

    Equal subtrees are not read. A directory counts only when it is empty.
    """
    pending: list[tuple[bytes, bytes | None, list[bytes | None]]] = [(b"", tree, list(parents))]
    while pending:
        directory, now, befores = pending.pop()
        listing = _listing(read, now)
        listings = [_listing(read, before) for before in befores]
        for name in {*listing, *(name for each in listings for name in each)}:
            entry, olds = listing.get(name), [each.get(name) for each in listings]
            if olds and entry in olds:
                continue
            path = join_path(directory, name)
            below, belows = _below(entry), [_below(old) for old in olds]
            if below is not None or any(each is not None for each in belows):
                pending.append((path, below, belows))
            file = _file(entry)
            if file not in map(_file, olds) if olds else file is not None:
                yield Introduced(path, file)
            elif below is not None and not any(belows) and not read(below):
                yield Introduced(path, entry)


def _listing(read: ReadTree, content: bytes | None) -> Listing:
    return EMPTY if content is None else read(content)


def _below(entry: TreeEntry | None) -> bytes | None:
    return entry.content if entry is not None and entry.mode == DIRECTORY else None


def _file(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry is None or entry.mode == DIRECTORY else entry


def _check_depth(directory: bytes) -> None:
    if directory.count(b"/") >= DEEPEST:
        raise TooLarge(directory, f"directories are nested more than {DEEPEST} deep")


class _Selection:
    """One selection being made."""

    def __init__(self, read: ReadTree, write: WriteTree, keep: Keep, memory: Memory) -> None:
        self._read = read
        self._write = write
        self._keep = keep
        self._memory = memory

    def take(self, directory: bytes, content: bytes) -> bytes | None:
        """Return what is left of a directory, None when that is nothing."""
        if self._keep.keeps_all(directory):
            return content
        known = self._memory.find(directory, content)
        if known is not None:
            return known[0]
        _check_depth(directory)
        listing = self._read(content)
        kept = self._take_entries(directory, listing)
        result = content if kept == listing else (self._write(kept) if kept else None)
        self._memory.put(directory, content, result)
        return result

    def _take_entries(self, directory: bytes, listing: Listing) -> dict[bytes, TreeEntry]:
        kept: dict[bytes, TreeEntry] = {}
        for name, entry in listing.items():
            taken = self._take_entry(directory, name, entry)
            if taken is not None:
                kept[name] = taken
        return kept

    def _take_entry(self, directory: bytes, name: bytes, entry: TreeEntry) -> TreeEntry | None:
        if entry.mode != DIRECTORY:
            return entry if self._keep.keeps(directory, name) else None
        path = join_path(directory, name)
        if self._keep.keeps_none(path):
            return None
        if not self._read(entry.content):
            return entry if self._keep.keeps(directory, name) else None
        left = self.take(path, entry.content)
        return None if left is None else TreeEntry(DIRECTORY, left)


class _Graft:
    """One graft being made."""

    def __init__(self, read: ReadTree, write: WriteTree) -> None:
        self._read = read
        self._write = write

    def take(self, directory: bytes, shown: bytes | None, before: bytes | None, whole: bytes) -> bytes:
        """Return a directory with what is left out of it put back."""
        if before == whole and shown is not None:
            return shown
        _check_depth(directory)
        result = dict(_listing(self._read, shown))
        seen = _listing(self._read, before)
        for name, real in self._read(whole).items():
            if seen.get(name) != real:
                result[name] = self._put_back(join_path(directory, name), result.get(name), seen.get(name), real)
        return self._write(result)

    def _put_back(self, path: bytes, now: TreeEntry | None, seen: TreeEntry | None, real: TreeEntry) -> TreeEntry:
        if now is not None and (real.mode != DIRECTORY or now.mode != DIRECTORY):
            raise NotEmpty(path, "something that is not shown is in the way")
        if real.mode != DIRECTORY:
            return real
        return TreeEntry(DIRECTORY, self.take(path, _below(now), _below(seen), real.content))

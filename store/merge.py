"""Three-way merge of trees, without a checkout.

1. A directory is read only where both sides changed something below it; everything else is taken over by its content.
2. Each path keeps a file part and a directory part, merged apart; where both are left at the end, the path is a conflict.
3. Both sides are first told in the base's names: what a side renamed goes back under its old name, what a side put at a name it
   had vacated is parked beside. Then the trees merge by name, and every rename of either side is applied to the result. So an
   edit lands at the new name, a file added to a renamed directory follows it, and names swapped by one side stay swapped.
4. Nothing is dropped without a word: what one side deleted or renamed away and the other changed, what both renamed differently,
   two different things at one name, a directory moved below itself by two renames: each is a conflict with all sides named.
5. With a conflict nothing is written and there is no root. A merge never changes a listing it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from store.moves import Grown, Moves, arrange_moves, tell_in_base_names
from store.renames import NONE, Renames, simplify_renames
from store.trees import DIRECTORY, EMPTY, Draft, Listing, Part, ReadTree, TreeEntry, WriteTree, is_directory, join_path

MergeContent = Callable[[bytes, TreeEntry | None, TreeEntry, TreeEntry], TreeEntry | None]
"""Combines two versions of a regular file (path, base, ours, theirs), or returns None when they do not combine."""


class MergeConflict(NamedTuple):
    """A path that does not merge, what each side holds there (or held, for the base), and why."""

    path: bytes
    base: TreeEntry | None
    ours: TreeEntry | None
    theirs: TreeEntry | None
    why: str


class MergedTree(NamedTuple):
    """The root of the merged tree, or None and the conflicts, ordered by path.

    The renames lead from the merged tree's paths to those of each side; recorded with the merge, they let the next one follow.
    """

    root: bytes | None
    conflicts: tuple[MergeConflict, ...] = ()
    renames_from_ours: Renames = NONE
    renames_from_theirs: Renames = NONE


def merge_trees(
    read: ReadTree,
    write: WriteTree,
    base: bytes | None,
    ours: bytes,
    theirs: bytes,
    merge_content: MergeContent,
    renames_ours: Renames = NONE,
    renames_theirs: Renames = NONE,
) -> MergedTree:
    """Merge two root directories that grew from `base` (None: nothing in common); renames lead from a side's path to the base's."""
    if theirs == base:
        return MergedTree(ours, renames_from_theirs=renames_ours)
    if ours == base:
        return MergedTree(theirs, renames_from_ours=renames_theirs)
    if ours == theirs:
        return MergedTree(ours)
    merge = _Merge(_Scratch(read), merge_content)
    if renames_ours or renames_theirs:
        root, from_ours, from_theirs = _merge_renamed(merge, base, (ours, renames_ours), (theirs, renames_theirs))
    else:
        root, from_ours, from_theirs = merge.directories(b"", base, ours, theirs), NONE, NONE
    if merge.conflicts:
        return MergedTree(None, tuple(sorted(merge.conflicts, key=lambda conflict: (conflict.path, conflict.why))))
    return MergedTree(merge.scratch.persist(root, write), (), from_ours, from_theirs)


class _Scratch:
    """Directories that exist only while a merge runs, beside those of the engine."""

    def __init__(self, read: ReadTree) -> None:
        self._read = read
        self._made: dict[bytes, Listing] = {}

    def read(self, content: bytes) -> Listing:
        made = self._made.get(content)
        return self._read(content) if made is None else made

    def write(self, listing: Listing) -> bytes:
        content = b"scratch/%d" % len(self._made)
        self._made[content] = listing
        return content

    def persist(self, content: bytes, write: WriteTree) -> bytes:
        """Write a scratch directory and those below it for good and return its content."""
        listing = self._made.get(content)
        if listing is None:
            return content
        return write(
            {
                name: TreeEntry(DIRECTORY, self.persist(entry.content, write)) if entry.mode == DIRECTORY else entry
                for name, entry in listing.items()
            }
        )


def _same_name(path: bytes) -> bytes:
    return path


class _Merge:
    """The walk over three trees; `locate` leads from a path in the base's names to where it ends up."""

    def __init__(self, scratch: _Scratch, merge_content: MergeContent) -> None:
        self.scratch = scratch
        self.conflicts: list[MergeConflict] = []
        self.locate: Callable[[bytes], bytes] = _same_name
        self._merge_content = merge_content

    def directories(self, path: bytes, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes:
        """Return the merged content of a directory; None stands for a side without one."""
        listings = tuple(EMPTY if content is None else self.scratch.read(content) for content in (base, ours, theirs))
        was, mine, other = listings
        merged = dict(mine)
        for name, before, now, then in _undecided(was, mine, other):
            entry = self.entry(join_path(path, name), before, now, then)
            if entry is None:
                merged.pop(name, None)
            else:
                merged[name] = entry
        if ours is not None and merged == mine:
            return ours
        return self.scratch.write(merged)

    def entry(self, path: bytes, base: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None) -> TreeEntry | None:
        """Return what is at a path after the merge; what does not merge is noted and stays as ours."""
        if theirs in (ours, base):
            return ours
        if ours == base:
            return theirs
        known = len(self.conflicts)
        leaf = self._leaf(path, _leaf(base), _leaf(ours), _leaf(theirs))
        directory = self._directory(path, _content(base), _content(ours), _content(theirs))
        if leaf is None or directory is None:
            return leaf if directory is None else directory
        if len(self.conflicts) == known:
            self.refuse(path, base, ours, theirs, "one side has a file here, the other a directory")
        return ours

    def refuse(self, path: bytes, base: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None, why: str) -> None:
        """Note a conflict."""
        self.conflicts.append(MergeConflict(self.locate(path), self._shown(base), self._shown(ours), self._shown(theirs), why))

    def _shown(self, entry: TreeEntry | None) -> TreeEntry | None:
        """Return the entry as a caller may see it: a directory of this merge's own making has no content yet."""
        scratch = entry is not None and entry.mode == DIRECTORY and entry.content.startswith(b"scratch/")
        return TreeEntry(DIRECTORY, b"") if scratch else entry

    def _directory(self, path: bytes, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> TreeEntry | None:
        """Merge the directory part; a directory that one side removed stays only for what the other put into it."""
        if ours is None and theirs is None:
            return None
        merged = self.directories(path, base, ours, theirs)
        removed = base is not None and (ours is None or theirs is None)
        return None if removed and not self.scratch.read(merged) else TreeEntry(DIRECTORY, merged)

    def _leaf(self, path: bytes, base: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None) -> TreeEntry | None:
        """Merge the file part."""
        if theirs in (ours, base):
            return ours
        if ours == base:
            return theirs
        if ours is None or theirs is None:
            deleted, changed = ("we", "they") if ours is None else ("they", "we")
            self.refuse(path, base, ours, theirs, f"{deleted} deleted what {changed} changed")
            return ours
        combined = self._combine(path, base, ours, theirs)
        if combined is None:
            self.refuse(path, base, ours, theirs, _explain(base, ours, theirs))
            return ours
        return combined

    def _combine(self, path: bytes, base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> TreeEntry | None:
        """Combine two versions of a file that both changed: mode and content apart."""
        mode = _pick(base and base.mode, ours.mode, theirs.mode)
        if mode is None or len({_type(entry) for entry in (base, ours, theirs) if entry is not None}) > 1:
            return None
        content = _pick(base and base.content, ours.content, theirs.content)
        if content is None and _type(ours) == _REGULAR:
            merged = self._merge_content(self.locate(path), base, ours, theirs)
            content = merged and merged.content
        return None if content is None else TreeEntry(mode, content)


_REGULAR = 0o100000
_T = TypeVar("_T")


def _type(entry: TreeEntry) -> int:
    return entry.mode & 0o170000


def _leaf(entry: TreeEntry | None) -> TreeEntry | None:
    return None if is_directory(entry) else entry


def _content(entry: TreeEntry | None) -> bytes | None:
    return entry.content if entry is not None and entry.mode == DIRECTORY else None


def _pick(base: _T | None, ours: _T, theirs: _T) -> _T | None:
    """Return the value that one side changed, or None when both did, differently."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _explain(base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> str:
    if _type(ours) != _type(theirs):
        return "one side has a file here, the other a symlink"
    if ours.content == theirs.content:
        return "both sides added it, one executable and one not"
    return "both sides added it with different content" if base is None else "both sides changed it in ways that do not combine"


def _undecided(
    base: Listing, ours: Listing, theirs: Listing
) -> Iterator[tuple[bytes, TreeEntry | None, TreeEntry | None, TreeEntry | None]]:
    """Yield the names where taking over our entry is not right at once: theirs differs from the base and from ours."""
    find_base, find_ours, find_theirs = base.get, ours.get, theirs.get
    for name, then in theirs.items():
        before = find_base(name)
        if before != then:
            now = find_ours(name)
            if now != then:
                yield name, before, now, then
    for name, before in base.items():
        if find_theirs(name) is None:
            now = find_ours(name)
            if now is not None:
                yield name, before, now, None


def _merge_renamed(
    merge: _Merge, base: bytes | None, ours: tuple[bytes, Renames], theirs: tuple[bytes, Renames]
) -> tuple[bytes, Renames, Renames]:
    """Merge with renames, as rule 3 says, and return the scratch root with the renames from each side."""
    scratch = merge.scratch
    mine = tell_in_base_names(scratch.read, scratch.write, base, *ours, b"ours")
    other = tell_in_base_names(scratch.read, scratch.write, base, *theirs, b"theirs")
    moves = arrange_moves(mine, other)
    merge.locate = moves.locate
    _refuse_crossed(merge, base, moves, mine, other)
    root = merge.directories(b"", base, mine.root, other.root)
    known = mine.renamed | other.renamed
    from_ours, from_theirs = (simplify_renames({moves.locate(origin): side.locate(origin) for origin in known}) for side in (mine, other))
    return _apply_moves(merge, root, moves), from_ours, from_theirs


def _refuse_crossed(merge: _Merge, base: bytes | None, moves: Moves, ours: Grown, theirs: Grown) -> None:
    """Note the renames that contradict the other side: renamed differently, deleted there, or in a circle."""
    before, mine, other = (Draft(merge.scratch.read, root) for root in (base, ours.root, theirs.root))

    def refuse(path: bytes, why: str) -> None:
        entries = [part if isinstance(part := draft.get(path), TreeEntry) else None for draft in (before, mine, other)]
        merge.refuse(path, entries[0], entries[1], entries[2], why)

    for path, we, they in moves.split:
        refuse(path, f"we renamed it to {_text(we)}, they renamed it to {_text(they)}")
    for path in moves.circular:
        refuse(path, "we moved one directory below another, they moved that one below the first")
    for side, reached, hollow, who, others in ((ours, other, theirs.hollow, "we", "they"), (theirs, mine, ours.hollow, "they", "we")):
        for path in side.renamed:
            if reached.get(path) is None or path in hollow:
                refuse(path, f"{who} renamed it from {_text(path)}, {others} deleted it")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def _apply_moves(merge: _Merge, root: bytes, moves: Moves) -> bytes:
    """Carry everything renamed from the base's name to its final one and return the scratch root."""
    scratch = merge.scratch
    merge.locate = _same_name
    draft = Draft(scratch.read, root)
    carried: list[tuple[bytes, bytes, Part]] = []
    for path in sorted(moves.places, reverse=True):
        part = draft.cut(path)
        if part is not None:
            carried.append((moves.locate(path), path, part))
    for target, path, part in sorted(carried, key=lambda item: item[:2]):
        _put(merge, draft, target, part, ours=path in moves.ours)
    for path in sorted(moves.hollow, reverse=True):
        _drop_hollow(draft, scratch, moves.locate(path))
    return draft.freeze(scratch.write)


def _put(merge: _Merge, draft: Draft, target: bytes, part: Part, *, ours: bool) -> None:
    """Place a renamed part; what is at the place already came from the other side and is merged with it."""
    entry = draft.freeze_part(part, merge.scratch.write)
    blocked = draft.blocked(target)
    if blocked is not None:
        why = f"it was moved below {_text(blocked)}, which is a file on the other side"
        merge.refuse(target, None, entry if ours else None, None if ours else entry, why)
        return
    present = draft.cut(target)
    if present is not None:
        there = draft.freeze_part(present, merge.scratch.write)
        merged = merge.entry(target, None, *((entry, there) if ours else (there, entry)))
        entry = entry if merged is None else merged
    draft.place(target, entry)


def _drop_hollow(draft: Draft, scratch: _Scratch, path: bytes) -> None:
    """Remove a directory that one side had deleted, and that only stood for what was moved out of it, once it is empty."""
    part = draft.cut(path)
    if part is None:
        return
    entry = draft.freeze_part(part, scratch.write)
    if entry.mode != DIRECTORY or scratch.read(entry.content):
        draft.place(path, entry)

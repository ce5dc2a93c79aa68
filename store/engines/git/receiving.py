"""Pushes: from a quarantine that git filled to commits of a branch.

1. Git has unpacked and checked every object (`index-pack --strict`) before this looks. Here the history is followed: every object that the
   new head reaches and the shown references do not reach either was sent, or is reached from them. Nothing else counts as there.
2. Every name of every new directory passes the name policy; every path a commit touches itself is told; sizes are counted before bytes are.
3. Where something is left out of what was shown, each pushed commit is put back onto the whole history: its tree is grafted onto its
   parent's whole one. Shown again it has the identity it was pushed with; a commit for which that fails is refused.
4. In a merge of two histories that leave out different things, what is left out is taken from the side that changed it since both were one.
   When both did, nobody can decide it who does not see it: the merge is refused.
5. Order of an acceptance: large contents, packs, pointers, then the branch, each durable before the next. A death before the last
   leaves objects that nothing reaches; a repack removes them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import pygit2

from store import names
from store.engines.git.census import ObjectSet, list_objects
from store.engines.git.commands import CommandFailed, run_git
from store.engines.git.commits import list_twins, store_objects
from store.engines.git.content import disk_errors
from store.engines.git.database import Database
from store.engines.git.histories import adopt_packs
from store.engines.git.large import POINTER_SIZES, LargeStore, Pointer, parse_pointer
from store.engines.git.objects import (
    EMPTY_TREE,
    GITLINK,
    CommitData,
    Kind,
    encode_commit,
    encode_tree,
    make_object,
    parse_commit,
    parse_tree,
    read_commit,
)
from store.engines.git.packs import PackWriter, Sync
from store.engines.git.projection import Projection
from store.engines.git.upkeep import Upkeep
from store.engines.git.vault import Vault
from store.errors import Corrupt, HostileTree, Moved, TooLarge, Unsupported
from store.exchange import LargeContent, LargeFile, Limits
from store.model import Commit, CommitId
from store.partial import Introduced, graft_tree, list_introduced
from store.trees import DIRECTORY, EMPTY, EXECUTABLE, FILE, SYMLINK, Listing

_MODES = frozenset({DIRECTORY, FILE, EXECUTABLE, SYMLINK, GITLINK})
_PIECE = 1 << 20
_HEADS = "refs/heads/"
_INCOMPLETE = "objects that it needs are missing"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A quarantine, the branch it is for, the head that it is to get, and what its sender was shown (full name -> id)."""

    folder: Path
    branch: str
    target: str
    refs: Mapping[str, CommitId]
    projection: Projection | None

    @property
    def head(self) -> CommitId:
        """Return the branch's head as its sender was shown it."""
        return self.refs[_HEADS + self.branch]


@dataclass(slots=True)
class _Sent:
    """What a push consists of."""

    commits: list[bytes] = field(default_factory=list)
    trees: list[bytes] = field(default_factory=list)
    size: int = 0
    pointers: dict[bytes, Pointer] = field(default_factory=dict)


class Quarantine:
    """The objects of a quarantine and all it borrows, for reading."""

    def __init__(self, folder: Path) -> None:
        """Read the repository in `folder`."""
        self.folder = folder
        self.packs = folder / "objects" / "pack"
        self._repository = pygit2.Repository(os.fspath(folder))
        self._odb = self._repository.odb
        self._written: dict[bytes, Listing] = {}

    def read(self, oid: bytes) -> bytes:
        """Return the content of a small object."""
        return self._odb.read(pygit2.Oid(raw=oid))[1]

    def tree(self, oid: bytes) -> Listing:
        """Return the entries of a directory."""
        if oid == EMPTY_TREE:
            return EMPTY
        written = self._written.get(oid)
        return parse_tree(self.read(oid)) if written is None else written

    def commit(self, oid: bytes) -> CommitData:
        """Return a parsed commit. Raises `Corrupt`."""
        return parse_commit(self.read(oid))

    def merge_base(self, commits: Sequence[bytes]) -> bytes | None:
        """Return the best common ancestor of two commits, None when they have none or are not two."""
        if len(commits) != 2:
            return None
        base = self._repository.merge_base(*(pygit2.Oid(raw=oid) for oid in commits))
        return None if base is None else base.raw

    def keep(self, oid: bytes, listing: Listing) -> None:
        """Remember a tree that is being written."""
        self._written[oid] = listing

    def close(self) -> None:
        """Release the packs."""
        self._repository.free()


class Receiver:
    """Takes pushes into one store."""

    def __init__(
        self,
        store: Path,
        database: Database,
        vault: Vault,
        large: LargeStore,
        upkeep: Upkeep,
        move: Callable[[str, CommitId, CommitId], None],
        *,
        sync: Sync,
    ) -> None:
        """Take pushes into the store in `store`; `move` moves a branch."""
        self.packs = store / "repo.git" / "objects" / "pack"
        self.database = database
        self.vault = vault
        self.large = large
        self.upkeep = upkeep
        self.move = move
        self.sync = sync

    def examine(self, incoming: Incoming, limits: Limits, reaches: Callable[[Sequence[str]], bool]) -> GitArrival:
        """Look at a push; `reaches` tells of objects whether they are reached from what its sender was shown."""
        self.upkeep.owned()
        quarantine = Quarantine(incoming.folder)
        try:
            sent = self._follow(quarantine, incoming, limits, reaches)
            _check_names(quarantine, sent)
            sent.pointers = {oid: pointer for oid, pointer in sent.pointers.items() if not reaches([oid.hex()])}
            introduced = self._list_introduced(quarantine, incoming, sent.commits, limits)
            commits = [read_commit(oid, quarantine.read(oid)) for oid in sent.commits]
            before, after = (quarantine.commit(bytes.fromhex(each)).tree for each in (incoming.head, incoming.target))
            return GitArrival(self, incoming, commits, introduced, sent, sorted(list_twins(quarantine.tree, before, after)))
        finally:
            quarantine.close()

    def _follow(self, quarantine: Quarantine, incoming: Incoming, limits: Limits, reaches: Callable[[Sequence[str]], bool]) -> _Sent:
        """Return what the new head reaches and the shown references do not. Raises `HostileTree`, `Moved`, `TooLarge`."""
        tips = set(incoming.refs.values())
        try:
            listed = list_objects(quarantine.folder, [incoming.target, *(f"^{tip}" for tip in tips)], "--objects", "--no-object-names")
        except CommandFailed as failure:
            raise HostileTree(incoming.target, _INCOMPLETE) from failure
        if run_git(quarantine.folder, "rev-list", "--max-count=1", incoming.head, f"^{incoming.target}"):
            raise Moved(incoming.branch, "its head is not in the history of what was pushed")
        if not reaches(self._find_strangers(quarantine, listed)):
            raise HostileTree(incoming.target, _INCOMPLETE)
        excluded = [f"^{tip}" for tip in tips]
        commits = run_git(quarantine.folder, "rev-list", "--topo-order", "--reverse", incoming.target, *excluded)
        return self._measure(quarantine, listed, commits.decode().split(), limits)

    def _find_strangers(self, quarantine: Quarantine, listed: ObjectSet) -> list[str]:
        sent = [ObjectSet.of_index(index) for index in quarantine.packs.glob("*.idx")]
        return [oid.hex() for oid in listed if not any(oid in each for each in sent)]

    def _measure(self, quarantine: Quarantine, listed: ObjectSet, commits: Sequence[str], limits: Limits) -> _Sent:
        sent = _Sent([bytes.fromhex(commit) for commit in commits])
        given = "".join(f"{oid.hex()}\n" for oid in listed).encode()
        answers = run_git(quarantine.folder, "cat-file", "--batch-check", "--buffer", given=given).decode()
        for oid, kind, size in map(str.split, answers.splitlines()):
            raw, length = bytes.fromhex(oid), int(size)
            sent.size += length if kind == "blob" else 0
            if kind == "tree":
                _check_size(oid, length, limits.tree_bytes)
                sent.trees.append(raw)
            elif kind == "blob" and length in POINTER_SIZES and (pointer := parse_pointer(quarantine.read(raw))):
                sent.pointers[raw] = pointer
            elif kind == "tag":
                raise HostileTree(oid, "a branch leads to commits only")
        _check_size("the push", sent.size, limits.size)
        return sent

    def _list_introduced(self, quarantine: Quarantine, incoming: Incoming, commits: Sequence[bytes], limits: Limits) -> list[Introduced]:
        found = list(islice(self._introduced(quarantine, incoming, commits), limits.paths + 1))
        if len(found) > limits.paths:
            raise TooLarge("the push", f"it touches more than {limits.paths} paths")
        unique = {each.path: each for each in found if not _is_empty_directory(each)}
        return [unique[path] for path in sorted(unique)]

    def _introduced(self, quarantine: Quarantine, incoming: Incoming, commits: Sequence[bytes]) -> Iterator[Introduced]:
        for oid in commits:
            commit = quarantine.commit(oid)
            parents = [quarantine.commit(parent).tree for parent in commit.parents]
            yield from list_introduced(quarantine.tree, commit.tree, parents)
        # What a merge took from another shown branch is no change of its own, unless it took it from an older commit of it.
        bases = run_git(quarantine.folder, "merge-base", "--all", incoming.target, *incoming.refs.values()) if commits else b""
        tips = {bytes.fromhex(incoming.head), *map(bytes.fromhex, bases.decode().split())}
        tree = quarantine.commit(bytes.fromhex(incoming.target)).tree
        yield from list_introduced(quarantine.tree, tree, [quarantine.commit(tip).tree for tip in sorted(tips)])


class GitArrival:
    """`store.exchange.Arrival`."""

    def __init__(
        self,
        receiver: Receiver,
        incoming: Incoming,
        commits: Sequence[Commit],
        introduced: Sequence[Introduced],
        sent: _Sent,
        twins: Sequence[tuple[bytes, ...]],
    ) -> None:
        """Hold what was found in a quarantine."""
        self.commits = commits
        self.introduced = introduced
        self.twins = twins
        self.size = sent.size
        self.large = [LargeFile(*pointer) for pointer in sorted(set(sent.pointers.values()))]
        self._receiver = receiver
        self._incoming = incoming
        self._pointers = sent.pointers

    def accept(self, contents: Mapping[bytes, LargeContent]) -> CommitId:
        """Make the push part of the store, move the branch to it, and return the branch's head."""
        receiver, incoming = self._receiver, self._incoming
        with disk_errors("the store"), receiver.large.writing():
            stored = {oid: pointer for oid, pointer in self._pointers.items() if pointer.sha256 in contents and not self._is_ordinary(oid)}
            for pointer in set(stored.values()):
                _store_large(receiver.large, pointer, contents[pointer.sha256], incoming.folder)
            expected, target = self._put_back()
            with receiver.upkeep.owned().packing():
                adopt_packs(incoming.folder / "objects" / "pack", receiver.packs, receiver.sync)
            with receiver.database.transaction() as connection:
                store_objects(connection, (), stored)
            receiver.move(incoming.branch, expected, target)
        return target

    def _is_ordinary(self, oid: bytes) -> bool:
        """Tell whether some history holds a blob as a file of its own, whatever it spells; that it stays."""
        return self._receiver.vault.pointer(oid) is None and self._receiver.vault.has(oid)

    def _put_back(self) -> tuple[CommitId, CommitId]:
        """Return the branch's head and its next one in the whole history, whose objects are in the quarantine when this returns."""
        incoming = self._incoming
        if incoming.projection is None:
            return incoming.head, CommitId(incoming.target)
        quarantine = Quarantine(incoming.folder)
        try:
            with PackWriter(quarantine.packs, sync=self._receiver.sync) as pack:
                return _PutBack(self._receiver, incoming.projection, quarantine, pack).run(incoming, self.commits)
        finally:
            quarantine.close()


class _PutBack:
    """Commits of a selected history becoming commits of the whole one (rules 3 and 4)."""

    def __init__(self, receiver: Receiver, projection: Projection, quarantine: Quarantine, pack: PackWriter) -> None:
        self._receiver = receiver
        self._projection = projection
        self._quarantine = quarantine
        self._pack = pack
        self._whole: dict[bytes, bytes] = {}
        self._made: dict[bytes, CommitData] = {}

    def run(self, incoming: Incoming, commits: Sequence[Commit]) -> tuple[CommitId, CommitId]:
        """Return the whole commits that the branch's head and the pushed head stand for."""
        for commit in commits:
            self._take(bytes.fromhex(commit.id))
        head, target = (self._find(bytes.fromhex(each)) for each in (incoming.head, incoming.target))
        return CommitId(head.hex()), CommitId(target.hex())

    def _take(self, shown: bytes) -> None:
        commit = self._quarantine.commit(shown)
        parents = tuple(self._find(parent) for parent in commit.parents)
        tree = self._graft(commit, parents)
        whole = replace(commit, tree=tree, parents=parents)
        if self._projection.select(self._tree, tree) != commit.tree:
            raise HostileTree(shown.hex(), "it holds what is left out of this view")
        item = make_object(Kind.COMMIT, encode_commit(whole))
        if whole != commit:
            self._pack.add(item)
        self._whole[shown] = item.oid
        self._made[item.oid] = whole

    def _graft(self, commit: CommitData, parents: Sequence[bytes]) -> bytes:
        """Return the whole tree of a shown commit whose parents stand for `parents`."""
        if not parents:
            return commit.tree
        grafts = {self._graft_onto(commit.tree, parent) for parent in parents}
        if len(grafts) > 1:
            base = self._quarantine.merge_base(commit.parents)
            grafts -= {self._graft_onto(commit.tree, self._find(base))} if base is not None else set()
        if len(grafts) != 1:
            raise Unsupported("a merge", "both of its sides changed what this view leaves out")
        return grafts.pop()

    def _graft_onto(self, shown: bytes, parent: bytes) -> bytes:
        whole = self._commit(parent).tree
        return graft_tree(self._tree, self._write, shown, self._projection.select(self._tree, whole), whole)

    def _find(self, shown: bytes) -> bytes:
        """Return the whole commit that a shown one stands for."""
        known = self._whole.get(shown)
        if known is not None:
            return known
        origins = self._projection.origins(shown) or [shown]
        if len(origins) > 1:
            raise Unsupported(shown.hex(), "this view cannot tell it from another commit")
        return origins[0]

    def _commit(self, oid: bytes) -> CommitData:
        return self._made.get(oid) or self._receiver.vault.commit(oid)

    def _tree(self, oid: bytes) -> Listing:
        return self._quarantine.tree(oid)

    def _write(self, listing: Listing) -> bytes:
        item = make_object(Kind.TREE, encode_tree(listing))
        self._pack.add(item)
        self._quarantine.keep(item.oid, listing)
        return item.oid


def _check_names(quarantine: Quarantine, sent: _Sent) -> None:
    """Raise `HostileTree` for a name that no checkout can be trusted with; the blob of a symlink is no pointer."""
    for tree in sent.trees:
        for name, entry in quarantine.tree(tree).items():
            why = _explain_entry(name, entry.mode)
            if why is not None:
                raise HostileTree(name, why)
            if entry.mode == SYMLINK:
                sent.pointers.pop(entry.content, None)


def _explain_entry(name: bytes, mode: int) -> str | None:
    if mode not in _MODES:
        return f"mode {mode:o} is neither a file, a directory, a symlink nor a submodule"
    return names.explain_unversionable(name, symlink=mode == SYMLINK)


def _is_empty_directory(each: Introduced) -> bool:
    """Tell whether a change is an empty directory, which git itself neither makes nor means to remove."""
    return each.entry is not None and each.entry.mode == DIRECTORY


def _check_size(subject: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(subject, f"{size} bytes are more than {limit}")


def _store_large(large: LargeStore, pointer: Pointer, content: LargeContent, folder: Path) -> None:
    """Store a large content durably. Raises `Corrupt` when it is not what its pointer says."""
    with open(folder / pointer.sha256.hex(), "w+b") as file:
        offset = 0
        while piece := content.read(offset, _PIECE):
            file.write(piece)
            offset += len(piece)
        file.flush()
        if large.put(file.fileno()) != pointer:
            raise Corrupt(pointer.sha256.hex(), "the content is not what the pointer says")

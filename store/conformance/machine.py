"""Random work on an engine and on the reference engine at once, compared after every step.

1. Each step is one call of the contract on both; either both give the same, or both raise the same class of error.
2. Files are chosen by their path in the reference, found in each engine by name, so nodes and ids stay each engine's own.
3. Two callers share every working layer, and the one that acts is chosen at random; what is seen is read through the other.
4. Merges whose common ancestor is ambiguous are left out: the contract lets an engine choose.
"""

from __future__ import annotations

import io
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from store.conformance.bench import (
    APPENDING,
    REPLACING,
    WRITING,
    Subject,
    find,
    make_note,
    move,
    put_file,
    remove,
    same,
    see_change,
    see_tree,
    write_node,
)
from store.contract import Engine, Handle, Working
from store.engines.reference import ReferenceEngine
from store.errors import StoreError
from store.model import ROOT, AttributeChange, Capability, CommitId, EntryKind
from store.trees import join_path, split_path

_NAMES = (b"a", b"b", b"c", b"A", "\u00e9".encode(), "e\u0301".encode(), b"\xff", b".git", b"git~1", b"x y\n")
_BRANCHES = ("main", "agent/r1", "agent/r2", "agent/r3", "agent/r4")
_TAKEN = ("agent", "main/x", "agent/r1")
_PARTS = (b"1", b"2", b"3")

_names = st.sampled_from(_NAMES)
_TEXT = b"%s\n-\n-\n%s\n-\n-\n%s\n"
_FIRST_FILES = (b"a/a", b"a/b/c", b"a/b/x y\n", b"b", b"c")
_texts = st.tuples(*[st.sampled_from(_PARTS)] * 3).map(lambda parts: _TEXT % parts)
_contents = _texts | st.sampled_from([b"", b"\0binary", b"no newline", b"\0" * 70_000])
_T = TypeVar("_T")


@dataclass(slots=True)
class _Pair:
    """The same thing in the engine and in the reference."""

    tried: CommitId
    reference: CommitId


@dataclass(slots=True)
class _Open:
    """One file opened in both engines."""

    tried: Handle
    reference: Handle
    branch: str


class StoreMachine(RuleBasedStateMachine):
    """The rules; `build_machine` gives them an engine to try."""

    engine_name = "reference"

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.subject = Subject(self.engine_name, Path(self._folder.name) / "store")
        self.tried: Engine = self.subject.open()
        self.reference = ReferenceEngine(itertools.count(1).__next__)
        self.commits: list[_Pair] = []
        self.handles: list[_Open] = []
        self.layers: dict[str, tuple[Working, Working]] = {}
        self.time = 1_700_000_000
        self.current = "main"

    def teardown(self) -> None:
        """Release everything."""
        for handle in self.handles:
            handle.tried.close()
        self.tried.close()
        self._folder.cleanup()

    # both at once

    def both(self, tried: Callable[[], _T], reference: Callable[[], _T]) -> tuple[_T, _T] | None:
        """Do the same on both and return both results, or None when both refused alike."""
        found, expected = _attempt(tried), _attempt(reference)
        if isinstance(found, StoreError) or isinstance(expected, StoreError):
            same(_describe(found), _describe(expected), "the outcome of the call")
            return None
        return found, expected

    def work(self, call: Callable[[Working], object]) -> None:
        """Do the same on the working layer of the current branch in both."""
        one, other = self.layers[self.current]
        self.layers[self.current] = (other, one)
        self.both(lambda: call(one), lambda: call(self.reference.working(self.current)))

    def pick(self, draw: st.DataObject, *kinds: EntryKind) -> bytes:
        """Choose a path of the current branch, sometimes one that is not there."""
        tree = self.reference.working(self.current)
        paths = sorted(path for path, seen in see_tree(tree).items() if not kinds or seen.kind in kinds)
        return draw.draw(st.sampled_from([*paths * 4, b"missing"]))

    def pick_directory(self, draw: st.DataObject) -> bytes:
        """Choose a directory of the current branch."""
        tree = self.reference.working(self.current)
        paths = sorted(path for path, seen in see_tree(tree).items() if seen.kind is EntryKind.DIRECTORY)
        return draw.draw(st.sampled_from([b"", *paths]))

    def note(self) -> int:
        """Return the next second."""
        self.time += 1
        return self.time

    # names

    @initialize()
    def start(self) -> None:
        """Begin with a commit of a few files and directories."""
        self.create_branch("main", None)
        for path in _FIRST_FILES:
            self.work(partial(put_file, path=path, content=_TEXT % (b"1", b"1", b"1")))
        self.commit()

    @rule(draw=st.data(), name=_names, mode=st.sampled_from([0o644, 0o755]), content=_contents)
    def create(self, draw: st.DataObject, name: bytes, mode: int, content: bytes) -> None:
        """Make a file with content."""
        directory = self.pick_directory(draw)
        self.work(lambda working: write_node(working, working.create(find(working, directory).node, name, mode).node, content))

    @rule(draw=st.data(), name=_names)
    def mkdir(self, draw: st.DataObject, name: bytes) -> None:
        """Make a directory."""
        directory = self.pick_directory(draw)
        self.work(lambda working: working.mkdir(find(working, directory).node, name, 0o755))

    @rule(draw=st.data(), name=_names, text=st.sampled_from([b"a", b"../x", b"/etc/passwd"]))
    def symlink(self, draw: st.DataObject, name: bytes, text: bytes) -> None:
        """Make a symlink."""
        directory = self.pick_directory(draw)
        self.work(lambda working: working.symlink(find(working, directory).node, name, text))

    @rule(draw=st.data(), name=_names)
    def make_pipe(self, draw: st.DataObject, name: bytes) -> None:
        """Make a pipe, which no commit holds."""
        directory = self.pick_directory(draw)
        self.work(lambda working: working.create(find(working, directory).node, name, 0o644, EntryKind.FIFO))

    @precondition(lambda self: Capability.HARD_LINKS in self.tried.capabilities)
    @rule(draw=st.data(), name=_names)
    def link(self, draw: st.DataObject, name: bytes) -> None:
        """Give something another name."""
        path, directory = self.pick(draw), self.pick_directory(draw)
        self.work(lambda working: working.link(find(working, path).node, find(working, directory).node, name))

    @rule(draw=st.data())
    def unlink(self, draw: st.DataObject) -> None:
        """Remove a name of anything."""
        directory, name = split_path(self.pick(draw))
        self.work(lambda working: working.unlink(find(working, directory).node, name))

    @rule(draw=st.data())
    def rmdir(self, draw: st.DataObject) -> None:
        """Remove a directory, or try to."""
        directory, name = split_path(self.pick(draw))
        self.work(lambda working: working.rmdir(find(working, directory).node, name))

    @rule(draw=st.data(), name=_names, replace=st.booleans())
    def rename(self, draw: st.DataObject, name: bytes, replace: bool) -> None:
        """Move something to a name that may be taken."""
        path, directory = self.pick(draw), self.pick_directory(draw)
        self.work(lambda working: move(working, path, join_path(directory, name), replace=replace))

    @rule(draw=st.data())
    def rename_onto(self, draw: st.DataObject) -> None:
        """Move something over something."""
        path, target = self.pick(draw), self.pick(draw)
        self.work(lambda working: move(working, path, target))

    @rule(draw=st.data())
    def exchange(self, draw: st.DataObject) -> None:
        """Swap two names."""
        path, target = self.pick(draw), self.pick(draw)
        self.work(lambda working: move(working, path, target, exchange=True))

    @rule(draw=st.data(), name=_names, content=_contents)
    def place(self, draw: st.DataObject, name: bytes, content: bytes) -> None:
        """Put a whole file under a name."""
        directory = self.pick_directory(draw)
        self.work(lambda working: working.place(find(working, directory).node, name, 0o644, io.BytesIO(content)))

    # content and attributes

    @rule(draw=st.data(), content=_contents, how=st.sampled_from([REPLACING, WRITING, APPENDING]), offset=st.sampled_from([0, 3, 5_000]))
    def write(self, draw: st.DataObject, content: bytes, how: object, offset: int) -> None:
        """Write to a file."""
        path = self.pick(draw, EntryKind.FILE)
        access = next(each for each in (REPLACING, WRITING, APPENDING) if each is how)
        self.work(lambda working: write_node(working, find(working, path).node, content, offset, access))

    @rule(draw=st.data(), size=st.sampled_from([0, 2, 9_000]))
    def truncate(self, draw: st.DataObject, size: int) -> None:
        """Set the size of anything."""
        path = self.pick(draw)
        self.work(lambda working: working.set_attributes(find(working, path).node, AttributeChange(size=size)).size)

    @rule(draw=st.data(), mode=st.sampled_from([0o644, 0o755, 0o600]))
    def change_mode(self, draw: st.DataObject, mode: int) -> None:
        """Set the mode of a file."""
        path = self.pick(draw, EntryKind.FILE)
        self.work(lambda working: working.set_attributes(find(working, path).node, AttributeChange(mode=mode)))

    @precondition(lambda self: Capability.XATTRS in self.tried.capabilities)
    @rule(draw=st.data(), name=st.sampled_from([b"user.a", b"user.b", b"trusted.c"]), value=st.sampled_from([b"", b"1", None]))
    def change_xattr(self, draw: st.DataObject, name: bytes, value: bytes | None) -> None:
        """Set or remove an extended attribute."""
        path = self.pick(draw)
        self.work(lambda working: working.set_xattr(find(working, path).node, name, value))

    @precondition(lambda self: len(self.handles) < 4)
    @rule(draw=st.data())
    def open(self, draw: st.DataObject) -> None:
        """Open a file and keep it open."""
        path = self.pick(draw, EntryKind.FILE)
        tried, reference = self.layers[self.current][0], self.reference.working(self.current)
        opened = self.both(
            lambda: tried.open(find(tried, path).node, WRITING),
            lambda: cast("Handle", reference.open(find(reference, path).node, WRITING)),
        )
        if opened is not None:
            self.handles.append(_Open(*opened, self.current))

    @precondition(lambda self: self.handles)
    @rule(draw=st.data(), content=_contents)
    def write_open(self, draw: st.DataObject, content: bytes) -> None:
        """Write through a handle that was kept, whatever happened to its file."""
        handle = draw.draw(st.sampled_from(self.handles))
        self.both(lambda: handle.tried.write(2, content), lambda: handle.reference.write(2, content))

    @precondition(lambda self: self.handles)
    @rule(draw=st.data())
    def close(self, draw: st.DataObject) -> None:
        """Read through a kept handle and close it."""
        handle = self.handles.pop(draw.draw(st.integers(0, len(self.handles) - 1)))
        same(handle.tried.read(0, 100_000), handle.reference.read(0, 100_000), "the content of an open file")
        handle.tried.close()
        handle.reference.close()

    # commits, branches, merges

    def edit(self, draw: st.DataObject) -> None:
        """Do one thing to what is there."""
        path, other, name, content = self.pick(draw), self.pick(draw), draw.draw(_names), draw.draw(_texts)
        directory = self.pick_directory(draw)
        edits: list[Callable[[Working], object]] = [
            lambda working: write_node(working, find(working, path).node, content),
            lambda working: write_node(working, find(working, other).node, content),
            lambda working: move(working, path, join_path(directory, name)),
            lambda working: move(working, path, other),
            lambda working: move(working, path, other, exchange=True),
            lambda working: remove(working, path),
            lambda working: put_file(working, join_path(directory, name), content),
        ]
        self.work(draw.draw(st.sampled_from(edits)))

    @precondition(lambda self: len(self.layers) < len(_BRANCHES))
    @rule(draw=st.data(), here=st.integers(0, 3), there=st.integers(1, 3))
    def diverge(self, draw: st.DataObject, here: int, there: int) -> None:
        """Work on two branches that grow from one commit, and merge one into the other."""
        self.commit()
        target = self.current
        at = _Pair(self.tried.branch(target).head, self.reference.branch(target).head)
        self.create_branch(next(name for name in _BRANCHES if name not in self.layers), at)
        source = self.current
        for branch, edits in ((source, there), (target, here)):
            self.current = branch
            for _ in range(edits):
                self.edit(draw)
            self.commit()
        self.merge_commit(_Pair(self.tried.branch(source).head, self.reference.branch(source).head))

    @rule()
    def commit(self) -> None:
        """Commit the current branch."""
        note = make_note("commit", self.note())
        result = self.both(lambda: self.tried.commit(self.current, note), lambda: self.reference.commit(self.current, note))
        if result is None:
            return
        found, expected = result
        same(found is None, expected is None, "whether there was anything to commit")
        if found is not None and expected is not None:
            same(replace(found, id=expected.id), expected, "what the commit says")
            self.add_commit(found.id, expected.id)

    def add_commit(self, tried: CommitId, reference: CommitId) -> None:
        """Compare two commits that should be the same, and remember them."""
        self.commits.append(_Pair(tried, reference))
        same(self.see_commit(self.tried, tried), self.see_commit(self.reference, reference), "a commit")

    def see_commit(self, engine: Engine, commit: CommitId) -> object:
        """Return what can be seen of a commit: its tree, note and differences from its parents."""
        facts = engine.read_commit(commit)
        tree = {path: (seen.kind, seen.executable, seen.content) for path, seen in see_tree(engine.view(commit)).items()}
        changes = [[see_change(change) for change in engine.diff(parent, commit)] for parent in facts.parents]
        return facts.note, len(facts.parents), tree, changes, [each.note for each in engine.log(commit)]

    @rule(name=st.sampled_from([*_BRANCHES, *_TAKEN]), draw=st.data())
    def fork(self, name: str, draw: st.DataObject) -> None:
        """Make a branch at a commit and work there."""
        if self.commits:
            self.create_branch(name, draw.draw(st.sampled_from(self.commits)))

    def create_branch(self, name: str, at: _Pair | None) -> None:
        """Make a branch in both engines."""
        now = self.note()
        at_tried, at_reference = (at.tried, at.reference) if at else (None, None)
        made = self.both(
            lambda: self.tried.create_branch(name, at_tried, now),
            lambda: self.reference.create_branch(name, at_reference, now),
        )
        if made is not None:
            self.layers[name] = (self.tried.working(name), self.tried.working(name))
            self.current = name
            self.commits.append(_Pair(made[0].head, made[1].head))

    @rule(draw=st.data())
    def switch(self, draw: st.DataObject) -> None:
        """Work on another branch."""
        self.current = draw.draw(st.sampled_from(sorted(self.layers)))

    @rule(draw=st.data())
    def merge(self, draw: st.DataObject) -> None:
        """Merge a commit into the current branch."""
        self.merge_commit(draw.draw(st.sampled_from(self.commits[-6:])))

    def merge_commit(self, source: _Pair) -> None:
        """Merge in both engines and compare what came of it."""
        heads = _Pair(self.tried.branch(self.current).head, self.reference.branch(self.current).head)
        if len(self.reference.history.merge_bases(heads.reference, source.reference)) > 1:
            return
        note = make_note("merge", self.note())
        trial = self.both(
            lambda: self.tried.try_merge(heads.tried, source.tried), lambda: self.reference.try_merge(heads.reference, source.reference)
        )
        merged = self.both(
            lambda: self.tried.merge(self.current, heads.tried, source.tried, note),
            lambda: self.reference.merge(self.current, heads.reference, source.reference, note),
        )
        for found, expected in filter(None, (trial, merged)):
            same(found.commit is None, expected.commit is None, "whether it merges")
            same([(each.path, each.why) for each in found.conflicts], [(each.path, each.why) for each in expected.conflicts], "conflicts")
        if merged is not None and merged[0].commit is not None and merged[1].commit is not None:
            self.add_commit(merged[0].commit, merged[1].commit)

    @rule(draw=st.data())
    def restore(self, draw: st.DataObject) -> None:
        """Put a path, or everything, back to what a commit holds."""
        source = draw.draw(st.sampled_from(self.commits))
        paths = draw.draw(st.sampled_from([[], [self.pick(draw)]]))
        self.both(
            lambda: self.tried.restore(self.current, source.tried, paths),
            lambda: self.reference.restore(self.current, source.reference, paths),
        )

    @rule(draw=st.data())
    def move_branch(self, draw: st.DataObject) -> None:
        """Set the head of the current branch to another commit."""
        target = draw.draw(st.sampled_from(self.commits))
        tried, reference = self.tried.branch(self.current).head, self.reference.branch(self.current).head
        self.both(
            lambda: self.tried.move_branch(self.current, tried, target.tried),
            lambda: self.reference.move_branch(self.current, reference, target.reference),
        )

    @rule()
    def maintain(self) -> None:
        """Have the engine do its housekeeping."""
        self.tried.maintain(self.note())

    @precondition(lambda self: Capability.DURABLE in self.tried.capabilities and not self.handles)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.tried.close()
        self.tried = self.subject.open()
        self.layers = {name: (self.tried.working(name), self.tried.working(name)) for name in self.layers}

    # what must hold

    @invariant()
    def the_working_layers_are_the_same(self) -> None:
        """Everything that can be seen of the current branch, through a caller that did not act last."""
        if self.current not in self.layers:
            return
        tried, reference = self.layers[self.current][0], self.reference.working(self.current)
        same(see_tree(tried), see_tree(reference), "the working layer")
        same(_see_links(tried), _see_links(reference), "which names are one file")
        same([see_change(each) for each in tried.changes()], [see_change(each) for each in reference.changes()], "uncommitted changes")
        same(sorted(tried.left_out()), sorted(reference.left_out()), "what commits pass over")
        same(sorted(self.reference.dirty().keys() - self.tried.dirty().keys()), [], "dirty branches that were not listed")

    @invariant()
    def the_open_files_are_the_same(self) -> None:
        """Everything that can be read through the kept handles."""
        for handle in self.handles:
            same(handle.tried.read(0, 100_000), handle.reference.read(0, 100_000), "the content of an open file")


def build_machine(engine: str) -> type[StoreMachine]:
    """Return the state machine that compares an engine, by name, with the reference."""
    return cast("type[StoreMachine]", type(f"StoreMachineOf{engine.title()}", (StoreMachine,), {"engine_name": engine}))


def _attempt(call: Callable[[], _T]) -> _T | StoreError:
    try:
        return call()
    except StoreError as error:
        return error


def _describe(outcome: object) -> object:
    return type(outcome).__name__ if isinstance(outcome, StoreError) else "done"


def _see_links(working: Working) -> list[list[bytes]]:
    """Return the groups of paths that are one file."""
    groups: dict[int, list[bytes]] = {}
    pending = [(b"", ROOT)]
    while pending:
        prefix, directory = pending.pop()
        for name, attributes in working.list(directory):
            path = join_path(prefix, name)
            groups.setdefault(attributes.node, []).append(path)
            if attributes.kind is EntryKind.DIRECTORY:
                pending.append((path, attributes.node))
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)

"""Random work on an engine and on the reference engine at once, compared after every step.

1. Each rule is one step of the contract, or a few that lead to a merge with work on both sides.
2. Files are chosen by their path in the reference and found in each engine by name, so nodes and ids stay each engine's own.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from store.conformance.bench import APPENDING, REPLACING, WRITING, Subject, find, move, put_file, remove, write_node
from store.conformance.side_by_side import SideBySide
from store.contract import Working
from store.model import Access, AttributeChange, Capability, EntryKind
from store.trees import join_path, split_path

_NAMES = (b"a", b"b", b"c", b"A", "\u00e9".encode(), "e\u0301".encode(), b"\xff", b".git", b"git~1", b"x y\n")
_BRANCHES = ("main", "agent/r1", "agent/r2", "agent/r3", "agent/r4")
_TAKEN = ("agent", "main/x", "agent/r1")
_FIRST_FILES = (b"a/a", b"a/b/c", b"a/b/x y\n", b"b", b"c")
_TEXT = b"%s\n-\n--\n%s\n---\n----\n%s\n"

_names = st.sampled_from(_NAMES)
_texts = st.tuples(*[st.sampled_from([b"1", b"2", b"3"])] * 3).map(lambda parts: _TEXT % parts)
_contents = _texts | st.sampled_from([b"", b"\0binary", b"no newline", b"\0" * 70_000])


class StoreMachine(RuleBasedStateMachine):
    """The rules; `build_machine` gives them an engine to try."""

    engine_name = "reference"

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.stores = SideBySide(Subject(self.engine_name, Path(self._folder.name) / "store"))

    def teardown(self) -> None:
        """Release everything."""
        self.stores.close()
        self._folder.cleanup()

    def declares(self, capability: Capability) -> bool:
        """Tell whether the engine declares a capability."""
        return capability in self.stores.tried.capabilities

    def pick(self, draw: st.DataObject, *kinds: EntryKind) -> bytes:
        """Choose a path of the current branch, sometimes one that is not there."""
        return draw.draw(st.sampled_from([*self.stores.paths(*kinds) * 4, b"missing"]))

    def pick_directory(self, draw: st.DataObject) -> bytes:
        """Choose a directory of the current branch."""
        return draw.draw(st.sampled_from([b"", *self.stores.paths(EntryKind.DIRECTORY)]))

    # names

    @initialize()
    def start(self) -> None:
        """Begin with a commit of a few files and directories."""
        self.stores.create_branch("main", None)
        for path in _FIRST_FILES:
            self.stores.work(partial(put_file, path=path, content=_TEXT % (b"1", b"1", b"1")))
        self.stores.commit()

    @rule(draw=st.data(), name=_names, mode=st.sampled_from([0o644, 0o755]), content=_contents)
    def create(self, draw: st.DataObject, name: bytes, mode: int, content: bytes) -> None:
        """Make a file with content."""
        directory = self.pick_directory(draw)
        self.stores.work(lambda working: write_node(working, working.create(find(working, directory).node, name, mode).node, content))

    @rule(draw=st.data(), name=_names)
    def mkdir(self, draw: st.DataObject, name: bytes) -> None:
        """Make a directory."""
        directory = self.pick_directory(draw)
        self.stores.work(lambda working: working.mkdir(find(working, directory).node, name, 0o755))

    @rule(draw=st.data(), name=_names, text=st.sampled_from([b"a", b"../x", b"/etc/passwd"]))
    def symlink(self, draw: st.DataObject, name: bytes, text: bytes) -> None:
        """Make a symlink."""
        directory = self.pick_directory(draw)
        self.stores.work(lambda working: working.symlink(find(working, directory).node, name, text))

    @rule(draw=st.data(), name=_names)
    def make_pipe(self, draw: st.DataObject, name: bytes) -> None:
        """Make a pipe, which no commit holds."""
        directory = self.pick_directory(draw)
        self.stores.work(lambda working: working.create(find(working, directory).node, name, 0o644, EntryKind.FIFO))

    @precondition(lambda self: self.declares(Capability.HARD_LINKS))
    @rule(draw=st.data(), name=_names)
    def link(self, draw: st.DataObject, name: bytes) -> None:
        """Give something another name."""
        path, directory = self.pick(draw), self.pick_directory(draw)
        self.stores.work(lambda working: working.link(find(working, path).node, find(working, directory).node, name))

    @rule(draw=st.data())
    def unlink(self, draw: st.DataObject) -> None:
        """Remove a name of anything."""
        directory, name = split_path(self.pick(draw))
        self.stores.work(lambda working: working.unlink(find(working, directory).node, name))

    @rule(draw=st.data())
    def rmdir(self, draw: st.DataObject) -> None:
        """Remove a directory, or try to."""
        directory, name = split_path(self.pick(draw))
        self.stores.work(lambda working: working.rmdir(find(working, directory).node, name))

    @rule(draw=st.data(), name=_names, replace=st.booleans())
    def rename(self, draw: st.DataObject, name: bytes, replace: bool) -> None:
        """Move something to a name that may be taken."""
        path, directory = self.pick(draw), self.pick_directory(draw)
        self.stores.work(lambda working: move(working, path, join_path(directory, name), replace=replace))

    @rule(draw=st.data())
    def rename_onto(self, draw: st.DataObject) -> None:
        """Move something over something."""
        path, onto = self.pick(draw), self.pick(draw)
        self.stores.work(lambda working: move(working, path, onto))

    @rule(draw=st.data())
    def exchange(self, draw: st.DataObject) -> None:
        """Swap two names."""
        path, other = self.pick(draw), self.pick(draw)
        self.stores.work(lambda working: move(working, path, other, exchange=True))

    @rule(draw=st.data(), name=_names, content=_contents)
    def place(self, draw: st.DataObject, name: bytes, content: bytes) -> None:
        """Put a whole file under a name."""
        directory = self.pick_directory(draw)
        self.stores.work(lambda working: working.place(find(working, directory).node, name, 0o644, io.BytesIO(content)))

    @rule(draw=st.data(), name=_names)
    def copy(self, draw: st.DataObject, name: bytes) -> None:
        """Put a copy of anything under a name."""
        path, directory = self.pick(draw), self.pick_directory(draw)
        self.stores.work(lambda working: working.copy(find(working, path).node, find(working, directory).node, name))

    # content and attributes

    @rule(draw=st.data(), content=_contents, how=st.sampled_from([REPLACING, WRITING, APPENDING]), offset=st.sampled_from([0, 3, 5_000]))
    def write(self, draw: st.DataObject, content: bytes, how: Access, offset: int) -> None:
        """Write to a file."""
        path = self.pick(draw, EntryKind.FILE)
        self.stores.work(lambda working: write_node(working, find(working, path).node, content, offset, how))

    @rule(draw=st.data(), size=st.sampled_from([0, 2, 9_000]))
    def truncate(self, draw: st.DataObject, size: int) -> None:
        """Set the size of anything."""
        path = self.pick(draw)
        self.stores.work(lambda working: working.set_attributes(find(working, path).node, AttributeChange(size=size)))

    @rule(draw=st.data(), mode=st.sampled_from([0o644, 0o755, 0o600]))
    def change_mode(self, draw: st.DataObject, mode: int) -> None:
        """Set the mode of a file."""
        path = self.pick(draw, EntryKind.FILE)
        self.stores.work(lambda working: working.set_attributes(find(working, path).node, AttributeChange(mode=mode)))

    @precondition(lambda self: self.declares(Capability.XATTRS))
    @rule(draw=st.data(), name=st.sampled_from([b"user.a", b"user.b", b"trusted.c"]), value=st.sampled_from([b"", b"1", None]))
    def change_xattr(self, draw: st.DataObject, name: bytes, value: bytes | None) -> None:
        """Set or remove an extended attribute."""
        path = self.pick(draw)
        self.stores.work(lambda working: working.set_xattr(find(working, path).node, name, value))

    @precondition(lambda self: len(self.stores.handles) < 4)
    @rule(draw=st.data())
    def open(self, draw: st.DataObject) -> None:
        """Open a file and keep it open."""
        path = self.pick(draw, EntryKind.FILE)
        self.stores.open(lambda working: working.open(find(working, path).node, WRITING))

    @precondition(lambda self: self.stores.handles)
    @rule(draw=st.data(), content=_contents)
    def write_open(self, draw: st.DataObject, content: bytes) -> None:
        """Write through a handle that was kept, whatever happened to its file."""
        handle = draw.draw(st.sampled_from(self.stores.handles))
        self.stores.both(lambda: handle.tried.write(2, content), lambda: handle.reference.write(2, content))

    @precondition(lambda self: self.stores.handles)
    @rule(draw=st.data())
    def close(self, draw: st.DataObject) -> None:
        """Close a handle that was kept."""
        handle = self.stores.handles.pop(draw.draw(st.integers(0, len(self.stores.handles) - 1)))
        self.stores.both(handle.tried.close, handle.reference.close)

    # commits, branches, merges

    @rule()
    def commit(self) -> None:
        """Commit the current branch."""
        self.stores.commit()

    @rule(name=st.sampled_from([*_BRANCHES, *_TAKEN]), draw=st.data())
    def fork(self, name: str, draw: st.DataObject) -> None:
        """Make a branch at a commit and work there."""
        self.stores.create_branch(name, draw.draw(st.sampled_from(self.stores.commits)))

    @rule(draw=st.data())
    def switch(self, draw: st.DataObject) -> None:
        """Work on another branch."""
        self.stores.current = draw.draw(st.sampled_from(sorted(self.stores.layers)))

    @rule(draw=st.data())
    def merge(self, draw: st.DataObject) -> None:
        """Merge a commit into the current branch."""
        self.stores.merge(draw.draw(st.sampled_from(self.stores.commits[-6:])))

    @precondition(lambda self: len(self.stores.layers) < len(_BRANCHES))
    @rule(draw=st.data(), here=st.integers(0, 3), there=st.integers(1, 3))
    def diverge(self, draw: st.DataObject, here: int, there: int) -> None:
        """Work on two branches that grow from one commit, and merge one into the other."""
        self.stores.commit()
        into = self.stores.current
        source = next(name for name in _BRANCHES if name not in self.stores.layers)
        self.stores.create_branch(source, self.stores.heads(into))
        if source not in self.stores.layers:
            return
        for branch, edits in ((source, there), (into, here)):
            self.stores.current = branch
            for _ in range(edits):
                self.edit(draw)
            self.stores.commit()
        self.stores.merge(self.stores.heads(source))

    def edit(self, draw: st.DataObject) -> None:
        """Do one thing to what is there."""
        path, other, name, content = self.pick(draw), self.pick(draw), draw.draw(_names), draw.draw(_texts)
        beside = join_path(self.pick_directory(draw), name)
        edits: list[Callable[[Working], object]] = [
            lambda working: write_node(working, find(working, path).node, content),
            lambda working: write_node(working, find(working, other).node, content),
            lambda working: move(working, path, beside),
            lambda working: move(working, path, other),
            lambda working: move(working, path, other, exchange=True),
            lambda working: remove(working, path),
            lambda working: put_file(working, beside, content),
        ]
        self.stores.work(draw.draw(st.sampled_from(edits)))

    @rule(draw=st.data())
    def restore(self, draw: st.DataObject) -> None:
        """Put a path, or everything, back to what a commit holds."""
        stores, source = self.stores, draw.draw(st.sampled_from(self.stores.commits))
        paths = draw.draw(st.sampled_from([[], [self.pick(draw)]]))
        stores.both(
            lambda: stores.tried.restore(stores.current, source.tried, paths),
            lambda: stores.reference.restore(stores.current, source.reference, paths),
        )

    @rule(draw=st.data())
    def move_branch(self, draw: st.DataObject) -> None:
        """Set the head of the current branch to another commit."""
        stores, to = self.stores, draw.draw(st.sampled_from(self.stores.commits))
        heads = stores.heads(stores.current)
        stores.both(
            lambda: stores.tried.move_branch(stores.current, heads.tried, to.tried),
            lambda: stores.reference.move_branch(stores.current, heads.reference, to.reference),
        )

    @rule()
    def maintain(self) -> None:
        """Have the engine do its housekeeping."""
        self.stores.tried.maintain(self.stores.now())

    @precondition(lambda self: self.declares(Capability.DURABLE) and not self.stores.handles)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.stores.reopen()

    @invariant()
    def both_look_the_same(self) -> None:
        """Compare everything that can be seen."""
        if self.stores.layers:
            self.stores.compare()


def build_machine(engine: str) -> type[StoreMachine]:
    """Return the state machine that compares an engine, by name, with the reference."""
    return cast("type[StoreMachine]", type(f"StoreMachineOf{engine.title()}", (StoreMachine,), {"engine_name": engine}))

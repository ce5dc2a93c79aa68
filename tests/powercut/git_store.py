"""The git engine while power fails: runs that fork, write, commit and merge at once, with upkeep in the background.

1. What is acknowledged: a fork, a commit, a merge, a file that was synced or put whole without a commit. Content is a function of
   branch, turn and path, so the check knows every byte without having been told.
2. The check opens the store as its owner after a restart of the machine would, and then asks three things of every acknowledgement:
   is it there, is every byte of it right, and is the repository valid to ordinary git.
3. `CARELESS` is the same work with an engine that syncs nothing; it has to lose something, or the machine proves nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from store.contract import Engine, Tree, Working
from store.engines.git import open_engine
from store.engines.git.commands import run_git
from store.errors import NotFound, StoreError
from store.model import ROOT, Access, CommitId, EntryKind, NodeId, Note, Provenance
from tests.powercut.machine import Acknowledge, Scenario

_RUNS = 4
_TURNS = 8
_LARGE = 9 << 20
_WHEN = 1_700_000_000
_FILES = [b"src/%02d/file%d" % (at % 12, at) for at in range(240)]


def content_of(branch: str, turn: int, path: bytes) -> bytes:
    """Return what a run writes to a file in a turn; now and then something that takes a pack, or chunks, of its own."""
    seed = hashlib.sha256(b"%s %d %s" % (branch.encode(), turn, path)).digest()
    size = _LARGE if path == b"large" else 2_000_000 if path == b"medium" else 40 + seed[0] * 20
    return random.Random(seed).randbytes(size)


def paths_of(branch: str, turn: int) -> list[bytes]:
    """Return the files that a run writes in a turn."""
    chosen = random.Random(f"{branch} {turn}").sample(_FILES, 3)
    return chosen + ([b"medium"] if turn % 4 == 1 else []) + ([b"large"] if turn % 4 == 3 else [])


def _prepare(root: Path) -> None:
    engine = _open(root)
    engine.create_branch("start", None, _WHEN)
    working = engine.working("start")
    for path in _FILES:
        _write(working, path, content_of("start", 0, path))
    working.close()
    committed = engine.commit("start", _note("start"))
    assert committed is not None
    engine.create_branch("main", committed.id, _WHEN, protected=True)
    engine.close()
    os.sync()


def _work_with(sync: Callable[[int], None]) -> Callable[[Path, Acknowledge], None]:
    def work(root: Path, acknowledge: Acknowledge) -> None:
        engine = _open(root, sync=sync)
        runs = [threading.Thread(target=_run, args=(engine, f"run/{at}", acknowledge)) for at in range(_RUNS)]
        for run in runs:
            run.start()
        while any(run.is_alive() for run in runs):
            engine.maintain(_WHEN)
            runs[0].join(0.2)
        for run in runs:
            run.join()
        engine.close()

    return work


def _open(root: Path, *, sync: Callable[[int], None] = os.fdatasync, boot: str | None = None) -> Engine:
    return open_engine(root / "store", clock=time.time_ns, sync=sync, boot=boot)


def _run(engine: Engine, branch: str, acknowledge: Acknowledge) -> None:
    engine.create_branch(branch, engine.branch("main").head, _WHEN)
    acknowledge(f"fork {branch}")
    working = engine.working(branch)
    for turn in range(1, _TURNS + 1):
        for path in paths_of(branch, turn):
            _write(working, path, content_of(branch, turn, path))
        if turn % 3 == 0:
            _write(working, b"synced%d" % turn, content_of(branch, turn, b"synced"), sync=True)
            acknowledge(f"synced {branch} {turn}")
        if turn % 3 == 1:
            _place(working, branch, turn)
            acknowledge(f"placed {branch} {turn}")
        committed = engine.commit(branch, _note(branch))
        assert committed is not None
        acknowledge(f"commit {branch} {turn} {committed.id}")
    working.close()
    _merge(engine, branch, acknowledge)


def _place(working: Working, branch: str, turn: int) -> None:
    """Put whole files: one that is a row, one that is a file, and a copy of each."""
    for path in (b"medium", b"small"):
        node = working.place(ROOT, b"placed-%s%d" % (path, turn), 0o644, io.BytesIO(content_of(branch, turn, path))).node
        working.copy(node, ROOT, b"copied-%s%d" % (path, turn))


def _merge(engine: Engine, branch: str, acknowledge: Acknowledge) -> None:
    source = engine.branch(branch).head
    try:
        merged = engine.merge("main", engine.branch("main").head, source, _note(branch))
    except StoreError:
        return
    if merged.commit is not None:
        acknowledge(f"merge {branch} {merged.commit}")


def _check(root: Path, acknowledged: Sequence[str]) -> list[str]:
    engine = _open(root, boot="another boot")
    try:
        problems = [wrong for line in acknowledged if (wrong := _examine(engine, *line.split())) is not None]
        for commit in {line.split()[1]: line.split()[-1] for line in acknowledged if line.startswith(("commit", "merge"))}.values():
            _read_all(engine.view(CommitId(commit)), ROOT)
        run_git(root / "store" / "repo.git", "fsck", "--strict", "--full", "--no-dangling")
    except StoreError as error:
        return [f"damaged: {error}"]
    finally:
        engine.close()
    return problems


def _examine(engine: Engine, what: str, branch: str, *facts: str) -> str | None:
    """Return what is wrong with one acknowledged effect, or None."""
    try:
        head = engine.branch("main" if what == "merge" else branch).head
    except NotFound:
        return f"{what} {branch}: the branch is lost"
    if what == "synced":
        turn = int(facts[0])
        found = _read(engine.working(branch), b"synced%d" % turn)
        return None if found == content_of(branch, turn, b"synced") else f"synced {branch} {turn}: the file differs"
    if what == "placed":
        return _examine_placed(engine.working(branch), branch, int(facts[0]))
    if what == "fork":
        return None
    commit = CommitId(facts[-1])
    if not engine.is_ancestor(commit, head):
        return f"{what} {branch}: the commit is lost"
    return None if what == "merge" else _examine_commit(engine, branch, int(facts[0]), commit)


def _examine_placed(working: Working, branch: str, turn: int) -> str | None:
    names = {b"%s-%s%d" % (how, path, turn): path for how in (b"placed", b"copied") for path in (b"medium", b"small")}
    wrong = [name for name, path in names.items() if _read(working, name) != content_of(branch, turn, path)]
    return f"placed {branch} {turn}: {wrong} differ" if wrong else None


def _examine_commit(engine: Engine, branch: str, turn: int, commit: CommitId) -> str | None:
    view = engine.view(commit)
    wrong = [path for path in paths_of(branch, turn) if _read(view, path) != content_of(branch, turn, path)]
    return f"commit {branch} {turn}: {wrong} differ" if wrong else None


def _read_all(tree: Tree, node: NodeId) -> None:
    for _, attributes in tree.list(node):
        if attributes.kind is EntryKind.DIRECTORY:
            _read_all(tree, attributes.node)
        elif attributes.kind is EntryKind.FILE:
            _read_node(tree, attributes.node)


def _read(tree: Tree, path: bytes) -> bytes | None:
    node = ROOT
    try:
        for name in path.split(b"/"):
            node = tree.lookup(node, name).node
    except NotFound:
        return None
    return _read_node(tree, node)


def _read_node(tree: Tree, node: NodeId) -> bytes:
    handle = tree.open(node)
    try:
        return handle.read(0, tree.attributes(node).size)
    finally:
        handle.close()


def _write(working: Working, path: bytes, data: bytes, *, sync: bool = False) -> None:
    *folders, name = path.split(b"/")
    parent = ROOT
    for folder in folders:
        parent = _found_or_made(working, parent, folder, directory=True)
    handle = working.open(_found_or_made(working, parent, name, directory=False), Access(write=True, truncate=True))
    try:
        handle.write(0, data)
        if sync:
            handle.sync()
    finally:
        handle.close()


def _found_or_made(working: Working, parent: NodeId, name: bytes, *, directory: bool) -> NodeId:
    try:
        return working.lookup(parent, name).node
    except NotFound:
        return (working.mkdir(parent, name, 0o755) if directory else working.create(parent, name, 0o644)).node


def _note(branch: str) -> Note:
    return Note(f"work of {branch}", Provenance("agent:powercut", run=branch), _WHEN)


STORE = Scenario(_prepare, _work_with(os.fdatasync), _check)
CARELESS = Scenario(_prepare, _work_with(lambda _descriptor: None), _check)

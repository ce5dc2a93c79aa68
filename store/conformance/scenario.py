"""Days in a store as single calls, and everything that can be seen afterwards.

1. A scenario yields after each call that returned, so whoever runs it knows what was acknowledged.
2. Each call is one of the contract; nothing between two yields could be seen half done by an engine that keeps its promises.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator

from store.conformance.bench import APPENDING, REPLACING, WRITING, Seen, find, make_note, move, see_change, see_tree
from store.contract import Engine, Joined, Tree, Working
from store.model import ROOT, AttributeChange, Capability, CommitId, EntryKind, NodeId

_START = 1_700_000_000
_LARGE = bytes(range(256)) * 1_200
_VERY_LARGE = b"".join(b"%08d" % number for number in range(9 << 17))
_SHOWN = 1 << 12


Scenario = Callable[[Engine], Iterator[str]]
"""Works on an empty store and yields a word for each call after it returned."""


def play(engine: Engine) -> Iterator[str]:
    """Play a day with every kind of call on small files."""
    engine.create_branch("main", None, _START)
    yield "create main"
    main = engine.working("main")
    yield from _make_files(main)
    first = _commit(engine, "main", 1)
    yield "first commit"
    engine.create_branch("agent/r1", first, _START + 2)
    yield "fork"
    agent = engine.working("agent/r1")
    yield from _change_files(engine, agent)
    second = _commit(engine, "agent/r1", 3)
    yield "second commit"
    yield from _write(main, find(main, b"top").node, b"main's own", "main's write")
    third = _commit(engine, "main", 4)
    yield "third commit"
    engine.merge("main", third, second, make_note("merge", _START + 5))
    yield "merge"
    engine.create_snapshot("v1", second, _START + 6)
    yield "snapshot"
    engine.maintain(_START + 7)
    yield "maintain"
    engine.restore("agent/r1", first, [b"gone"])
    yield "restore"
    yield from _finish(engine, first)


def play_large(engine: Engine) -> Iterator[str]:
    """Play a day with files that are too large to be kept like the others."""
    engine.create_branch("main", None, _START)
    yield "create main"
    main = engine.working("main")
    node = main.place(ROOT, b"large", 0o644, io.BytesIO(_VERY_LARGE)).node
    yield "place a large file"
    first = _commit(engine, "main", 1)
    yield "commit a large file"
    handle = main.open(node, WRITING)
    yield "open"
    handle.write(1 << 20, b"changed")
    yield "write in the middle"
    handle.close()
    yield "close"
    engine.create_branch("side", first, _START + 2)
    yield "fork"
    _commit(engine, "main", 3)
    yield "commit the changed file"
    engine.maintain(_START + 4)
    yield "maintain"


def _make_files(main: Working) -> Iterator[str]:
    directory = main.mkdir(ROOT, b"d", 0o755).node
    yield "mkdir"
    for name, parent in ((b"top", ROOT), (b"gone", ROOT), (b"f", directory)):
        node = main.create(parent, name, 0o644).node
        yield "create"
        yield from _write(main, node, name * 3, "write")
    main.symlink(directory, b"link", b"../top")
    yield "symlink"
    main.create(ROOT, b"pipe", 0o600, EntryKind.FIFO)
    yield "pipe"
    handle = main.open(find(main, b"top").node, APPENDING)
    handle.write(0, _LARGE)
    yield "append"
    handle.sync()
    yield "sync of a handle"
    handle.close()
    yield "close"


def _write(working: Working, node: NodeId, content: bytes, word: str) -> Iterator[str]:
    """Replace content in calls of their own."""
    handle = working.open(node, REPLACING)
    yield f"open: {word}"
    handle.write(0, content)
    yield word
    handle.close()
    yield f"close: {word}"


def _change_files(engine: Engine, agent: Working) -> Iterator[str]:
    move(agent, b"d", b"moved")
    yield "rename a directory"
    handle = agent.open(find(agent, b"moved/f").node, WRITING)
    yield "open"
    handle.write(2, b"patched")
    yield "write in the middle"
    agent.set_attributes(find(agent, b"moved/f").node, AttributeChange(mode=0o755))
    yield "mode"
    agent.unlink(ROOT, b"gone")
    yield "unlink"
    agent.place(ROOT, b"placed", 0o644, io.BytesIO(_LARGE))
    yield "place"
    agent.copy(find(agent, b"placed").node, find(agent, b"moved").node, b"copy")
    yield "copy what was written"
    agent.copy(find(agent, b"top").node, ROOT, b"placed")
    yield "copy what is committed over a file"
    parts = [agent.stage(io.BytesIO(part)).id for part in (_LARGE, b"end")]
    yield "stage"
    handles = [agent.staged(part) for part in parts]
    agent.place(ROOT, b"joined", 0o644, Joined(handles))
    yield "place what was staged"
    for part, staged in zip(parts, handles, strict=True):
        staged.close()
        agent.unstage(part)
    yield "unstage"
    if Capability.HARD_LINKS in engine.capabilities:
        agent.link(find(agent, b"placed").node, find(agent, b"moved").node, b"twice")
        yield "link"
    if Capability.XATTRS in engine.capabilities:
        agent.set_xattr(find(agent, b"placed").node, b"user.a", b"1")
        yield "xattr"
    agent.sync()
    yield "sync"
    handle.close()
    yield "close"


def _finish(engine: Engine, first: CommitId) -> Iterator[str]:
    engine.create_branch("agent/r2", first, _START + 8)
    yield "another fork"
    engine.move_branch("agent/r2", first, engine.branch("main").head)
    yield "move"
    engine.delete_branch("agent/r1", engine.branch("agent/r1").head)
    yield "delete"
    engine.maintain(_START + 9)
    yield "maintain again"


def _commit(engine: Engine, name: str, when: int) -> CommitId:
    committed = engine.commit(name, make_note(f"commit {when}", _START + when))
    if committed is None:
        raise AssertionError("the scenario commits changes")
    return committed.id


def see_store(engine: Engine) -> object:
    """Return everything that can be seen of a store, without ids."""
    branches = {branch.name: _see_branch(engine, branch.name) for branch in engine.branches()}
    snapshots = {snapshot.name: _see_history(engine, snapshot.head) for snapshot in engine.snapshots()}
    return branches, snapshots


def _see_branch(engine: Engine, name: str) -> object:
    working = engine.working(name)
    changes = [see_change(change) for change in working.changes()]
    return _see_history(engine, engine.branch(name).head), _see_short(working), changes, sorted(working.left_out())


def _see_history(engine: Engine, head: CommitId) -> object:
    tree = {path: (seen.kind, seen.executable, seen.content) for path, seen in _see_short(engine.view(head)).items()}
    return [(commit.note, len(commit.parents)) for commit in engine.log(head)], tree


def _see_short(tree: Tree) -> dict[bytes, Seen]:
    """Return what can be seen of a tree, long content by its digest."""
    return {path: seen._replace(content=_shorten(seen.content)) for path, seen in see_tree(tree).items()}


def _shorten(content: bytes) -> bytes:
    return content if len(content) <= _SHOWN else hashlib.sha256(content).digest()

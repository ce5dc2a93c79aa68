"""What the tests of the git engine share: files put, read and committed by path."""

from __future__ import annotations

import time
from pathlib import Path

from store.contract import Working
from store.engines.git import open_engine
from store.engines.git.engine import GitEngine
from store.engines.git.opening import Role
from store.model import ROOT, Access, Attributes, CommitId, NodeId, Note, Provenance

WRITING = Access(write=True)
NOTE = Note("work", Provenance("agent:x"), 1_700_000_000)


def open_store(folder: Path, role: Role = "owner", boot: str = "this boot") -> GitEngine:
    """Open a store as it would be on a boot of the machine."""
    return open_engine(folder, role=role, clock=time.time_ns, boot=boot)


def find(working: Working, path: bytes) -> Attributes:
    """Return the attributes of a path."""
    attributes = working.attributes(ROOT)
    for name in path.split(b"/"):
        attributes = working.lookup(attributes.node, name)
    return attributes


def parent_of(working: Working, path: bytes) -> tuple[NodeId, bytes]:
    """Return the directory above a path and the last name."""
    above, _, name = path.rpartition(b"/")
    return (find(working, above).node if above else ROOT), name


def put(working: Working, path: bytes, data: bytes) -> NodeId:
    """Make a file, its directory being there, and return its node."""
    parent, name = parent_of(working, path)
    node = working.create(parent, name, 0o644).node
    write(working, node, data)
    return node


def write(working: Working, node: NodeId, data: bytes, offset: int = 0) -> None:
    """Write into a file."""
    handle = working.open(node, WRITING)
    handle.write(offset, data)
    handle.close()


def read(working: Working, path: bytes) -> bytes:
    """Return the content of a path."""
    found = find(working, path)
    handle = working.open(found.node)
    try:
        return handle.read(0, found.size + 1)
    finally:
        handle.close()


def commit(engine: GitEngine, branch: str = "main") -> CommitId:
    """Commit a branch, which has changed."""
    committed = engine.commit(branch, NOTE)
    assert committed is not None
    return committed.id


def names(working: Working, path: bytes = b"") -> list[bytes]:
    """Return the names in a directory."""
    return [name for name, _ in working.list(find(working, path).node if path else ROOT)]

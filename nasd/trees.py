"""Walking a tree of the store by path."""

from __future__ import annotations

from store.contract import Tree
from store.model import ROOT, Access, NodeId

CHUNK = 1 << 20


def node_at(tree: Tree, path: bytes) -> NodeId:
    """Return the node a path stands for, symlinks not followed. Raises `store.errors.NotFound` and `NotADirectory`."""
    node = ROOT
    for name in path.split(b"/") if path else ():
        node = tree.lookup(node, name).node
    return node


def read_small(tree: Tree, path: bytes, limit: int) -> bytes:
    """Return a file's content, at most `limit` bytes of it."""
    handle = tree.open(node_at(tree, path), Access())
    try:
        return handle.read(0, limit)
    finally:
        handle.close()

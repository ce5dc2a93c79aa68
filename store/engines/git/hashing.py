"""What the dirty files of a layer hold, as entries of a tree.

1. `store_content` keeps the content, `peek_entry` only computes what it would be called.
2. A file is identified by the number, size, mtime and ctime of its upper file. The caller decides when that is enough.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from store.engines.git.content import disk_errors
from store.engines.git.freezing import Frozen
from store.engines.git.harvest import Harvest
from store.engines.git.large import Pointer, belongs, encode_pointer
from store.engines.git.layer import Layer
from store.engines.git.nodes import NodeRow, identify_content, stamp_content
from store.engines.git.objects import Kind, make_object, object_id
from store.errors import Corrupt
from store.model import NodeId
from store.trees import FILE, SYMLINK, TreeEntry

_PIECE = 1 << 20
_SHOWN = 1 << 20

Signature = tuple[int, int, int, int]
"""What identifies the content of an upper file: its number, size, mtime and ctime."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """A content that is stored already, and the file it was read from."""

    signature: Signature
    oid: bytes


def sign_content(layer: Layer, row: NodeRow) -> Signature | None:
    """Return what identifies a file's content now, or None when another process removed the file."""
    assert row.upper is not None
    try:
        found = layer.uppers.stat(row.upper)
    except FileNotFoundError:
        return None
    return row.upper, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def store_content(layer: Layer, row: NodeRow, harvest: Harvest) -> bytes:
    """Store the content of a file and return its identity. Raises `Corrupt` when the upper file is gone."""
    assert row.upper is not None
    try:
        with layer.uppers.reading(row.upper) as descriptor, disk_errors(row.id):
            return harvest.add_file(descriptor, os.fstat(descriptor).st_size)
    except FileNotFoundError:
        raise Corrupt(row.id, "its upper file is missing") from None


def store_entry(layer: Layer, row: NodeRow, harvest: Harvest, hashed: Mapping[NodeId, Hashed]) -> TreeEntry:
    """Return the entry of a dirty file or symlink, its content stored unless `hashed` has it as it is now."""
    if row.is_symlink:
        return TreeEntry(SYMLINK, harvest.add(make_object(Kind.BLOB, layer.around.vault.link(row))))
    mode = row.git_mode or FILE
    if row.upper is None:
        return TreeEntry(mode, harvest.add_below(layer.branch, _below(row)))
    known = hashed.get(row.id)
    if known is not None and known.signature == sign_content(layer, row):
        return TreeEntry(mode, known.oid)
    return TreeEntry(mode, store_content(layer, row, harvest))


def peek_entry(layer: Layer, row: NodeRow, sizes: dict[bytes, int]) -> TreeEntry:
    """Return the entry that a dirty file or symlink would have, and note the size of its content."""
    if row.is_symlink:
        target = layer.around.vault.link(row)
        oid = object_id(Kind.BLOB, target)
        sizes[oid] = len(target)
        layer.around.vault.keep_content(oid, target)
        return TreeEntry(SYMLINK, oid)
    mode = row.git_mode or FILE
    if row.upper is None:
        return TreeEntry(mode, _below(row))
    with layer.uppers.reading(row.upper) as descriptor, disk_errors(row.id):
        size = os.fstat(descriptor).st_size
        oid = _name_content(descriptor, size)
        if size <= _SHOWN:
            layer.around.vault.keep_content(oid, os.pread(descriptor, size, 0))
    sizes[oid] = size
    return TreeEntry(mode, oid)


def record_sizes(layer: Layer, frozen: Frozen) -> None:
    """Have the rows say how long the committed files are, when they changed and what identifies them, now that nobody writes."""
    for row in list(frozen.nodes.values()):
        if row.upper is not None:
            found = layer.uppers.stat(row.upper)
            ctime = max(row.ctime_ns, found.st_ctime_ns)
            written = row._replace(size=found.st_size, mtime_ns=found.st_mtime_ns, ctime_ns=ctime)
            frozen.nodes[row.id] = stamp_content(written, identify_content(row, found), found)


def _below(row: NodeRow) -> bytes:
    if row.lower is None:
        raise Corrupt(row.id, "the file has no content")
    return row.lower


def _name_content(descriptor: int, size: int) -> bytes:
    if not belongs(descriptor, size):
        return object_id(Kind.BLOB, os.pread(descriptor, size, 0))
    digest, position = hashlib.sha256(), 0
    while piece := os.pread(descriptor, _PIECE, position):
        digest.update(piece)
        position += len(piece)
    return object_id(Kind.BLOB, encode_pointer(Pointer(digest.digest(), position)))

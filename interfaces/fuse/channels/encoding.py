"""Attributes as pyfuse3 wants them.

1. Entries and attributes are valid without limit: every change goes through us or is announced to the kernel.
2. An encoder fills the same object again and again. pyfuse3 copies it into its answer before any other code runs.
3. Blocks are told from the size: what a file really takes is shared with other branches and no use to `du`.
"""

from __future__ import annotations

import pyfuse3

from interfaces.fuse.attributes import NAME_MAX, Caller
from interfaces.port import AttributeChange, Attributes, Space

BLOCK = 4096
"""The preferred size of reads and writes, and the unit of `statfs`, bytes."""

_WITHOUT_LIMIT = 1e9


class Encoder:
    """Turns attributes into pyfuse3's; owners that nobody set become the mount's."""

    def __init__(self, owner: Caller) -> None:
        """Give unowned nodes to `owner`."""
        self._owner = owner
        self._entry = _fresh_entry()
        self.absent = _fresh_entry()

    def encode(self, attributes: Attributes) -> pyfuse3.EntryAttributes:
        """Return the attributes; good until the next call."""
        entry, size, uid, gid = self._entry, attributes.size, attributes.uid, attributes.gid
        entry.st_ino = attributes.node
        entry.st_mode = attributes.st_mode
        entry.st_nlink = attributes.links
        entry.st_uid = self._owner.uid if uid is None else uid
        entry.st_gid = self._owner.gid if gid is None else gid
        entry.st_size = size
        entry.st_blocks = (size + 511) >> 9
        entry.st_mtime_ns = attributes.mtime_ns
        entry.st_ctime_ns = attributes.ctime_ns
        entry.st_atime_ns = attributes.atime_ns
        return entry


def _fresh_entry() -> pyfuse3.EntryAttributes:
    entry = pyfuse3.EntryAttributes()
    entry.st_ino = 0
    entry.generation = 0
    entry.st_blksize = BLOCK
    entry.entry_timeout = entry.attr_timeout = _WITHOUT_LIMIT
    return entry


def decode_change(attributes: pyfuse3.EntryAttributes, fields: pyfuse3.SetattrFields) -> AttributeChange:
    """Return the change that a `setattr` asks for."""
    return AttributeChange(
        mode=attributes.st_mode & 0o7777 if fields.update_mode else None,
        size=attributes.st_size if fields.update_size else None,
        mtime_ns=attributes.st_mtime_ns if fields.update_mtime else None,
        atime_ns=attributes.st_atime_ns if fields.update_atime else None,
        uid=attributes.st_uid if fields.update_uid else None,
        gid=attributes.st_gid if fields.update_gid else None,
    )


def encode_space(space: Space) -> pyfuse3.StatvfsData:
    """Return the room left; a file needs at least a block, which bounds how many more there can be."""
    answer = pyfuse3.StatvfsData()
    free = space.free // BLOCK
    answer.f_bsize = answer.f_frsize = BLOCK
    answer.f_blocks = space.total // BLOCK
    answer.f_bfree = answer.f_bavail = free
    answer.f_files = space.files + free
    answer.f_ffree = answer.f_favail = free
    answer.f_namemax = NAME_MAX
    return answer

"""Rules about modes, owners and names that POSIX leaves to the file system: values in, values out.

1. Access is checked by the kernel (``default_permissions``) and by the workspace; nothing here grants or refuses it.
2. The kernel leaves the killing of set-id bits to us on write, truncate and chown, and inheriting of groups on creation.
3. Names above 255 bytes are refused here, as the kernel would let FUSE have 1,024.
"""

from __future__ import annotations

import stat
from typing import NamedTuple

from interfaces.faults import Fault, Kind
from interfaces.port import AttributeChange, Attributes

NAME_MAX = 255
"""The longest name, bytes."""

TARGET_MAX = 4095
"""The longest target of a symlink, bytes."""


class Caller(NamedTuple):
    """Whose system call this is."""

    uid: int
    gid: int


def check_name(name: bytes) -> None:
    """Raise `Kind.NAME_TOO_LONG` for a name no tree here can hold."""
    if len(name) > NAME_MAX:
        raise Fault(Kind.NAME_TOO_LONG, f"a name of {len(name)} bytes is longer than {NAME_MAX}")


def drop_set_id(st_mode: int) -> int:
    """Return the permission bits without set-user-id, and without set-group-id where the group may execute.

    Set-group-id without group execution asked for mandatory locking once; Linux leaves it alone, and so do we.
    """
    bits = stat.S_IMODE(st_mode) & ~stat.S_ISUID
    return bits & ~stat.S_ISGID if bits & stat.S_IXGRP else bits


def has_set_id(st_mode: int) -> bool:
    """Tell whether a write to this node must change its mode."""
    return stat.S_ISREG(st_mode) and drop_set_id(st_mode) != stat.S_IMODE(st_mode)


def complete_change(current: Attributes, change: AttributeChange, caller: Caller) -> AttributeChange:
    """Return the change with the set-id bits it must kill: always for a new owner, for a new size unless root asks."""
    gives_away = change.uid is not None or change.gid is not None
    truncates = change.size is not None and caller.uid != 0
    if change.mode is None and (gives_away or truncates) and has_set_id(current.st_mode):
        return AttributeChange(drop_set_id(current.st_mode), change.size, change.mtime_ns, change.atime_ns, change.uid, change.gid)
    return change


def drop_same_owner(current: Attributes, change: AttributeChange, owner: Caller) -> AttributeChange:
    """Return the change without an owner and group that the node is shown with already.

    ``tar``, ``cp -a`` and ``rsync`` set the owner of every file they make, nearly always to what it is; `owner` stands for nobody set one.
    """
    uid = None if change.uid == (owner.uid if current.uid is None else current.uid) else change.uid
    gid = None if change.gid == (owner.gid if current.gid is None else current.gid) else change.gid
    return AttributeChange(change.mode, change.size, change.mtime_ns, change.atime_ns, uid, gid)


def birth_change(made: Attributes, caller: Caller, owner: Caller, inherited: int | None) -> AttributeChange | None:
    """Return what a fresh node still needs to belong to whom it should; None when nothing.

    `owner` is whom nodes belong to unless told otherwise, `inherited` the group of a set-group-id parent directory.
    """
    gid = caller.gid if inherited is None else inherited
    becomes_heir = inherited is not None and stat.S_ISDIR(made.st_mode)
    change = AttributeChange(
        mode=stat.S_IMODE(made.st_mode) | stat.S_ISGID if becomes_heir else None,
        uid=None if caller.uid == owner.uid else caller.uid,
        gid=None if gid == owner.gid else gid,
    )
    return None if change == AttributeChange() else change

"""Who may open a store: one owner at a time, and any number of gateways after an owner has made it safe.

1. The owner holds `LOCK` as long as it lives; the kernel releases it when the process dies. The file names the owner for messages only.
2. `cas.epoch` names the boot of the machine that the cache and the upper files are good for. After another boot the owner drops the
   cache, because files that were never synced may be empty, and writes the new boot only when everything is safe again.
3. A gateway refuses to open what no owner has made safe since the machine started.
4. File systems that other machines can write to are refused: their locks do not hold what this store needs.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
from pathlib import Path

from store.engines.git.database import Database, Row
from store.engines.git.packs import Sync, sync_folder
from store.errors import InUse, StoreError, Unsupported

_NETWORK = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB 2",
    0x01021997: "9p",
    0x65735546: "FUSE",
    0x00C36400: "Ceph",
}
_BOOT = Path("/proc/sys/kernel/random/boot_id")

_CLEAN_UPPERS = "UPDATE node SET upper = NULL, size = NULL WHERE upper IS NOT NULL AND dirty = 0"
_DIRTY_UPPERS = "SELECT branch, id, upper, size, lower FROM node WHERE upper IS NOT NULL AND dirty > 0"
_REVERT = "UPDATE node SET upper = NULL, size = NULL, dirty = 0, content = NULL WHERE branch = ? AND id = ?"
_RELOAD = "UPDATE branch SET version = version + 1, seal = version + 1, swept = version + 1"


def read_boot() -> str:
    """Return what identifies this boot of the machine."""
    return _BOOT.read_text().strip()


def refuse_network(folder: Path) -> None:
    """Raise `Unsupported` when a folder lies on a file system that other machines can write to."""
    kind = _NETWORK.get(_file_system(folder))
    if kind is not None:
        raise Unsupported(str(folder), f"it lies on {kind}; a store needs a local file system")


def lock_store(folder: Path) -> int:
    """Become the owner of a store and return the descriptor that holds it. Raises `InUse` with the owner's process id."""
    descriptor = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise InUse(str(folder), f"process {owner or 'unknown'} owns the store") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def is_safe(folder: Path, boot: str) -> bool:
    """Tell whether an owner has made the store safe since the machine started."""
    try:
        return (folder / "cas.epoch").read_text() == boot
    except FileNotFoundError:
        return False


def make_safe(folder: Path, database: Database, boot: str, *, sync: Sync) -> list[str]:
    """Drop or revert what the machine may have lost when it stopped, and return what had to be reverted, one line each."""
    cache, doubtful = folder / "cas", folder / "cas.doubtful"
    shutil.rmtree(doubtful, ignore_errors=True)
    if cache.exists():
        cache.rename(doubtful)
    cache.mkdir()
    reverted = _revert_uppers(folder / "up", database)
    draft = folder / "cas.epoch.tmp"
    draft.write_text(boot)
    draft.rename(folder / "cas.epoch")
    sync_folder(folder, sync)
    shutil.rmtree(doubtful, ignore_errors=True)
    return reverted


def _revert_uppers(uppers: Path, database: Database) -> list[str]:
    """Distrust every upper file whose content is committed, and those that are shorter than what was synced."""
    lost = []
    with database.transaction() as connection:
        connection.execute(_CLEAN_UPPERS)
        rows: list[Row] = connection.execute(_DIRTY_UPPERS).fetchall()
        for branch, node, upper, size, lower in rows:
            path = uppers / str(branch) / str(upper)
            found = path.stat().st_size if path.exists() else -1
            if found >= (size or 0):
                continue
            lost.append(f"branch {branch}, node {node}: {max(found, 0)} of {size} bytes were left")
            if lower is not None:
                connection.execute(_REVERT, (branch, node))
            elif found < 0:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        connection.execute(_RELOAD)
    database.flush()
    return lost


class _Statfs(ctypes.Structure):
    """The head of struct statfs: the kind comes first, the rest is room for the kernel."""

    _fields_ = (("kind", ctypes.c_long), ("rest", ctypes.c_char * 248))


def _file_system(folder: Path) -> int:
    """Return the number that statfs(2) gives for the kind of a file system."""
    answer = _Statfs()
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(folder), ctypes.byref(answer)) != 0:
        raise StoreError(str(folder), os.strerror(ctypes.get_errno()))
    return int(answer.kind) & 0xFFFFFFFF

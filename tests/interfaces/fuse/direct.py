"""A workspace without decisions, straight over a working layer, and the program that serves it.

1. It grants everything, so that these tests are about the door alone; what the composition adds has tests of its own.
2. ``python -m tests.interfaces.fuse.direct`` opens a store as a gateway and serves one branch, as a mount's process does.
   It prints ``ready`` when it is usable and why it ended when it has.
3. Where the file named on the command line as the lease appears, the lease is over.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from interfaces.faults import Fault, Kind
from interfaces.fuse import Options, serve
from interfaces.port import Access, AttributeChange, Attributes, Content, Document, Handle, Space, Touch
from nasd.faults import as_fault
from store import Access as StoredAccess
from store import AttributeChange as StoredChange
from store import EntryKind, NodeId, Version, Working, open_store
from store.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

_KINDS = {stat.S_IFREG: EntryKind.FILE, stat.S_IFIFO: EntryKind.FIFO, stat.S_IFSOCK: EntryKind.SOCKET}


def guarded(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return the method raising `Fault` for what the store refuses."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except (StoreError, OSError) as error:
            raise as_fault(error) from error

    return call


class Lease:
    """A lease that ends when a file appears."""

    def __init__(self, end: Path | None) -> None:
        self._end = end

    def check(self) -> None:
        """Raise `Kind.REVOKED` once the file is there."""
        if self._end is not None and self._end.exists():
            raise Fault(Kind.REVOKED, "the lease was taken back")

    def require_writable(self, parent: int, name: bytes) -> None:
        """Return: what is not ended may write."""
        self.check()


class DirectHandle:
    """An open file of the store, under a lease."""

    def __init__(self, handle: Any, lease: Lease) -> None:
        self.node: int = handle.node
        self._handle = handle
        self._lease = lease

    @guarded
    def read(self, offset: int, size: int) -> bytes:
        self._lease.check()
        data: bytes = self._handle.read(offset, size)
        return data

    @guarded
    def write(self, offset: int, data: bytes) -> int:
        self._lease.check()
        written: int = self._handle.write(offset, data)
        return written

    @guarded
    def sync(self) -> None:
        self._handle.sync()

    @guarded
    def close(self) -> None:
        self._handle.close()


class DirectWorkspace:
    """The port over a working layer."""

    def __init__(self, branch: str, working: Working, lease: Lease) -> None:
        self.branch = branch
        self._working = working
        self._lease = lease

    @guarded
    def lookup(self, parent: int, name: bytes) -> Attributes:
        self._lease.check()
        return self._working.lookup(NodeId(parent), name)

    @guarded
    def attributes(self, node: int) -> Attributes:
        self._lease.check()
        return self._working.attributes(NodeId(node))

    @guarded
    def list(self, node: int) -> Sequence[tuple[bytes, Attributes]]:
        self._lease.check()
        return self._working.list(NodeId(node))

    @guarded
    def readlink(self, node: int) -> bytes:
        self._lease.check()
        return self._working.readlink(NodeId(node))

    @guarded
    def open(self, node: int, access: Access) -> Handle:
        self._lease.check()
        wanted = StoredAccess(access.read, access.write, access.append, access.truncate)
        return DirectHandle(self._working.open(NodeId(node), wanted), self._lease)

    @guarded
    def create(self, parent: int, name: bytes, mode: int) -> tuple[Attributes, Handle]:
        self._lease.check()
        made = self._working.create(NodeId(parent), name, mode)
        return made, DirectHandle(self._working.open(made.node, StoredAccess(read=True, write=True)), self._lease)

    @guarded
    def publish(self, parent: int, name: bytes, mode: int, content: Content) -> Attributes:
        return self._working.place(NodeId(parent), name, mode, content)

    @guarded
    def make_special(self, parent: int, name: bytes, st_mode: int) -> Attributes:
        kind = _KINDS.get(stat.S_IFMT(st_mode) or stat.S_IFREG)
        if kind is None:
            raise Fault(Kind.NOT_PERMITTED, "devices have no place in a branch")
        return self._working.create(NodeId(parent), name, stat.S_IMODE(st_mode), kind)

    @guarded
    def mkdir(self, parent: int, name: bytes, mode: int) -> Attributes:
        self._lease.check()
        return self._working.mkdir(NodeId(parent), name, mode)

    @guarded
    def symlink(self, parent: int, name: bytes, target: bytes) -> Attributes:
        return self._working.symlink(NodeId(parent), name, target)

    @guarded
    def link(self, node: int, parent: int, name: bytes) -> Attributes:
        return self._working.link(NodeId(node), NodeId(parent), name)

    @guarded
    def unlink(self, parent: int, name: bytes) -> None:
        self._lease.check()
        self._working.unlink(NodeId(parent), name)

    @guarded
    def rmdir(self, parent: int, name: bytes) -> None:
        self._working.rmdir(NodeId(parent), name)

    @guarded
    def rename(self, parent: int, name: bytes, target: int, target_name: bytes, *, replace: bool = True, exchange: bool = False) -> None:
        self._working.rename(NodeId(parent), name, NodeId(target), target_name, replace=replace, exchange=exchange)

    @guarded
    def set_attributes(self, node: int, change: AttributeChange) -> Attributes:
        wanted = StoredChange(change.mode, change.size, change.mtime_ns, change.atime_ns, change.uid, change.gid)
        return self._working.set_attributes(NodeId(node), wanted)

    @guarded
    def xattrs(self, node: int) -> Mapping[bytes, bytes]:
        return self._working.xattrs(NodeId(node))

    @guarded
    def set_xattr(self, node: int, name: bytes, value: bytes | None) -> None:
        try:
            self._working.set_xattr(NodeId(node), name, value)
        except StoreError as error:
            fault = as_fault(error)
            raise Fault(Kind.NO_ATTRIBUTE, fault.message) if fault.kind is Kind.NOT_FOUND else fault from error

    @guarded
    def space(self) -> Space:
        return self._working.space()

    @guarded
    def sync(self) -> None:
        self._working.sync()

    @guarded
    def version(self) -> int:
        return self._working.version()

    @guarded
    def touched(self, since: int) -> Sequence[Touch] | None:
        return self._working.touched(Version(since))

    def check(self) -> None:
        self._lease.check()

    @guarded
    def path(self, node: int) -> bytes:
        return self._working.path(NodeId(node))

    def commit(self, message: str) -> Document:
        raise Fault(Kind.UNSUPPORTED, "nobody commits here")

    def close(self) -> None:
        self._working.close()


def main(engine: str, folder: str, branch: str, mountpoint: str, lease: str) -> None:
    """Serve a branch of a store until the mount ends."""
    store = open_store(Path(folder), engine, role="gateway" if engine != "reference" else "owner")
    if engine == "reference":
        store.create_branch(branch, None, 0)
    working = store.working(branch)
    options = Options(os.getuid(), os.getgid(), allow_other=os.getuid() == 0)
    workspace = DirectWorkspace(branch, working, Lease(Path(lease)))
    print(serve(workspace, Path(mountpoint), options, lambda: print("ready", flush=True)).value, flush=True)
    workspace.close()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Every operation of a mounted branch, once, for whatever channel brings it from the kernel.

1. An operation takes nodes, names and bytes, returns small values or raises `Fault`; encoding and errno are the channel's.
2. The workspace decides and records each one; what the kernel answers from its caches it was told by an operation before.
3. One thread, the channel's, calls all of it but `open_file`, `read`, `put`, `put_change` and `sync`, which may block: those run
   in any thread, and the channel calls `settle` (or `admit`, `count_write`) in its own thread when one is done.
4. Access times are those somebody set: reading does not change them (as with ``noatime``). A directory's times change when
   an entry is made or removed, by the store.
5. A write that returned is the store's. There is no write-back cache in the kernel and no buffer here, so the end of this
   process loses none. For the same reason `close` has nothing left to report but failed writes of shared mappings, which
   the kernel reports itself.
6. Locks (flock, fcntl) are the kernel's own and bind the processes of one mount.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from interfaces.faults import Fault, Kind
from interfaces.fuse.attributes import TARGET_MAX, Caller, birth_change, check_name, complete_change, drop_same_owner, drop_set_id
from interfaces.fuse.coherence import Coherence, Notice
from interfaces.fuse.directories import Directories, Entry
from interfaces.fuse.files import Files, OpenFile
from interfaces.fuse.known import Known
from interfaces.fuse.xattrs import get_xattr, list_xattrs, set_xattr
from interfaces.port import ROOT, Access, AttributeChange, Attributes, Space, Workspace

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2


class Operations:
    """The operations of one mount on one workspace."""

    def __init__(self, workspace: Workspace, owner: Caller) -> None:
        """Serve `workspace`; nodes without an owner of their own belong to `owner`."""
        self._workspace = workspace
        self._owner = owner
        self._known = Known(owner.gid)
        self._coherence = Coherence(workspace, self._known)
        self._files = Files(workspace)
        self._directories = Directories(workspace)
        self._pending: list[Notice] = []
        self._own = self._coherence.own

    # Names

    def lookup(self, parent: int, name: bytes) -> Attributes:
        """Return what a name stands for. Raises `Kind.NOT_FOUND`, which the kernel remembers."""
        check_name(name)
        if parent == ROOT:
            self._coherence.tell_root_name(name)
        return self._hand_out(self._workspace.lookup(parent, name))

    def forget(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Take back references the kernel gave up: pairs of a node and how many."""
        self._known.forget(pairs)

    def make(self, parent: int, name: bytes, st_mode: int, caller: Caller) -> Attributes:
        """Make an empty file, a pipe or a socket. Raises `Kind.NOT_PERMITTED` for devices."""
        check_name(name)
        return self._adopt(parent, name, self._workspace.make_special(parent, name, st_mode), caller)

    def mkdir(self, parent: int, name: bytes, mode: int, caller: Caller) -> Attributes:
        """Make a directory."""
        check_name(name)
        return self._adopt(parent, name, self._workspace.mkdir(parent, name, mode), caller)

    def symlink(self, parent: int, name: bytes, target: bytes, caller: Caller) -> Attributes:
        """Make a symlink. Raises `Kind.NAME_TOO_LONG` for a target above 4,095 bytes."""
        check_name(name)
        if len(target) > TARGET_MAX:
            raise Fault(Kind.NAME_TOO_LONG, f"a target of {len(target)} bytes is longer than {TARGET_MAX}")
        return self._adopt(parent, name, self._workspace.symlink(parent, name, target), caller)

    def link(self, node: int, parent: int, name: bytes) -> Attributes:
        """Give a file another name."""
        check_name(name)
        attributes = self._workspace.link(node, parent, name)
        self._own()
        self._tell_name(parent, name)
        return self._hand_out(attributes)

    def unlink(self, parent: int, name: bytes) -> None:
        """Remove a name of anything but a directory; open files stay good."""
        self._workspace.unlink(parent, name)
        self._own()

    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory."""
        self._workspace.rmdir(parent, name)
        self._own()

    def rename(self, parent: int, name: bytes, target: int, target_name: bytes, flags: int) -> None:
        """Move a name as renameat2(2). Raises `Kind.INVALID` for flags other than NOREPLACE or EXCHANGE."""
        check_name(target_name)
        if flags not in (0, RENAME_NOREPLACE, RENAME_EXCHANGE):
            raise Fault(Kind.INVALID, "no such way to rename here")
        before = self.version()
        self._workspace.rename(parent, name, target, target_name, replace=flags != RENAME_NOREPLACE, exchange=flags == RENAME_EXCHANGE)
        self.settle(before, None)
        self._tell_name(target, target_name)

    # Attributes

    def attributes(self, node: int) -> Attributes:
        """Return the attributes of a node."""
        return self.tell(self._workspace.attributes(node))

    def put_change(self, node: int, change: AttributeChange, caller: Caller) -> Attributes:
        """Change attributes and return them all. May block; `settle` and `tell` follow."""
        if node not in self._known.set_id and (change.uid is not None or change.gid is not None):
            current = self._workspace.attributes(node)
            change = drop_same_owner(current, change, self._owner)
            if change == AttributeChange():
                return current
        if node in self._known.set_id:
            change = complete_change(self._workspace.attributes(node), change, caller)
        result = self._workspace.set_attributes(node, change)
        if change.size is None and self._has_name(node):
            self._own()  # one row, one version: nobody needs to be asked what changed
        return result

    def _has_name(self, node: int) -> bool:
        try:
            self._workspace.path(node)
        except Fault:
            return False
        return True

    def tell(self, attributes: Attributes) -> Attributes:
        """Note that the kernel is told these attributes of a node it holds, and return them."""
        self._known.note(attributes)
        self._files.note_size(attributes.node, attributes.size)
        return attributes

    def readlink(self, node: int) -> bytes:
        """Return the target of a symlink."""
        return self._workspace.readlink(node)

    def get_xattr(self, node: int, name: bytes) -> bytes:
        """Return an extended attribute."""
        return get_xattr(self._workspace, node, name)

    def set_xattr(self, node: int, name: bytes, value: bytes | None) -> None:
        """Set or (None) remove an extended attribute."""
        before = self.version()
        set_xattr(self._workspace, node, name, value)
        self.settle(before, node)

    def list_xattrs(self, node: int) -> list[bytes]:
        """Return the names of the extended attributes."""
        return list_xattrs(self._workspace, node)

    def space(self) -> Space:
        """Return the room left under disk, quota and budget."""
        return self._workspace.space()

    # Files

    def open_file(self, node: int, flags: int) -> OpenFile:
        """Open a file. May block; `admit` follows."""
        return self._files.open(node, _access(flags), append=bool(flags & os.O_APPEND))

    def admit(self, file: OpenFile, flags: int) -> tuple[int, bool]:
        """Return the number of an opened file, and whether what the kernel has cached of its content is still true."""
        node = file.node
        if flags & os.O_TRUNC:
            self._coherence.mutations += 1
            self._known.large.discard(node)
        file.cold = node in self._known.large
        size = self._workspace.attributes(node).size if file.appender is not None else 0
        self._pending += self._coherence.collect()
        return self._files.add(file, size), not self._coherence.is_stale(node)

    def create(self, parent: int, name: bytes, mode: int, flags: int, caller: Caller) -> tuple[int, Attributes]:
        """Make and open a file and return its number and attributes; open the one that another door made meanwhile."""
        check_name(name)
        try:
            made, handle = self._workspace.create(parent, name, mode)
        except Fault as fault:
            if fault.kind is not Kind.EXISTS or flags & os.O_EXCL:
                raise
            existing = self.lookup(parent, name)
            return self.admit(self.open_file(existing.node, flags), flags)[0], existing
        file = self._files.wrap(made.node, handle, append=bool(flags & os.O_APPEND))
        attributes = self._adopt(parent, name, made, caller)
        return self._files.add(file, 0), attributes

    def read(self, number: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes. May block."""
        file = self._files[number]
        content = file.handle.read(offset, size)
        file.cold = False
        return content

    def put(self, number: int, offset: int, data: bytes) -> int:
        """Store bytes and return how many; set-id bits of the file go first. May block; `count_write` follows."""
        node = self._files[number].node
        if node in self._known.set_id:
            self._drop_set_id(node)
        return self._files.write(number, offset, data)

    def count_write(self) -> None:
        """Note that a write was done: listings given out from now on look again."""
        self._coherence.mutations += 1

    def sync(self, number: int) -> int:
        """Return the node of an open file once what was written to it is on stable storage. Blocks; `settle` follows."""
        file = self._files[number]
        file.handle.sync()
        return file.node

    def sync_all(self) -> None:
        """Return once every write and every name is on stable storage. Blocks."""
        self._workspace.sync()

    def release(self, number: int) -> None:
        """Close a file; the store notes the size of one that was written."""
        file = self._files.release(number)
        if not file.written:
            file.close()
            return
        before = self.version()
        file.close()
        self.settle(before, file.node)

    def version(self) -> int:
        """Return the version before a call that may change something, for `settle`."""
        return self._workspace.version()

    def settle(self, before: int, node: int | None) -> None:
        """Take the change of a call as known to the kernel, if it made one; see `Coherence.settle`."""
        self._coherence.settle(before, node)

    def opening_blocks(self, node: int) -> bool:
        """Tell whether opening or resizing a node may take long (fetching or copying a large file)."""
        return node in self._known.large

    def touching_blocks(self, number: int) -> bool:
        """Tell whether the next read or write of an open file may take long."""
        return self._files[number].cold

    # Directories

    def open_directory(self, node: int) -> int:
        """Open a directory and return its number."""
        return self._directories.open(node)

    def entries(self, number: int, offset: int) -> Iterator[Entry]:
        """Yield the entries from an offset on; the channel calls `hand_out_entry` for each that fits into its answer."""
        return self._directories.read(number, offset, self._coherence.mutations)

    def hand_out_entry(self, number: int, name: bytes, attributes: Attributes) -> None:
        """Note that the kernel was given an entry of an open directory."""
        self._tell_name(self._directories.node(number), name)
        self._hand_out(attributes)

    def release_directory(self, number: int) -> None:
        """Close a directory."""
        self._directories.release(number)

    # Coherence

    def changes(self) -> list[Notice]:
        """Return what the kernel must drop because it changed through another door."""
        pending, self._pending = self._pending, []
        return pending + self._coherence.collect() + self._coherence.look_at_growing()

    def everything(self) -> list[Notice]:
        """Return notices for all the kernel holds."""
        return self._coherence.everything()

    def check(self) -> None:
        """Raise `Kind.EXPIRED` or `Kind.REVOKED` once the lease has ended."""
        self._workspace.check()

    def close(self) -> None:
        """Close what is still open."""
        self._files.close()

    def _hand_out(self, attributes: Attributes) -> Attributes:
        self._known.count(attributes)
        self._files.note_size(attributes.node, attributes.size)
        return attributes

    def _tell_name(self, parent: int, name: bytes) -> None:
        if parent == ROOT:
            self._coherence.tell_root_name(name)

    def _adopt(self, parent: int, name: bytes, made: Attributes, caller: Caller) -> Attributes:
        self._own()
        self._tell_name(parent, name)
        change = birth_change(made, caller, self._owner, self._known.inherited_group(parent))
        if change is not None:
            made = self._workspace.set_attributes(made.node, change)
            self._own()
        return self._hand_out(made)

    def _drop_set_id(self, node: int) -> None:
        mode = drop_set_id(self._workspace.attributes(node).st_mode)
        self.tell(self._workspace.set_attributes(node, AttributeChange(mode=mode)))


def _access(flags: int) -> Access:
    mode = flags & os.O_ACCMODE
    return Access(read=mode != os.O_WRONLY, write=mode != os.O_RDONLY, truncate=bool(flags & os.O_TRUNC))

"""The channel through pyfuse3: works without privileges, on any kernel of this decade.

1. Nothing but FUSEError leaves a method here: any other exception would end the whole mount. A `Fault` becomes its errno;
   anything else is a defect of ours, is logged with its traceback and answered with EIO.
2. The kernel's write-back cache stays off, whatever it would gain: a write that returned must survive the death of this process.
3. Short operations are answered in place. Those that may block (sync, and opening, resizing or first touching a large
   file) run in a thread. The kernel holds a file's lock during write and truncate, so no two of one file are under way.
4. pyfuse3 keeps its session in module globals: one mount per process.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

import pyfuse3
from pyfuse3 import (
    EntryAttributes,
    FileHandleT,
    FileInfo,
    FileNameT,
    FlagT,
    FUSEError,
    InodeT,
    ModeT,
    ReaddirToken,
    RequestContext,
    SetattrFields,
    StatvfsData,
    XAttrNameT,
)

from interfaces.faults import Fault, Kind
from interfaces.fuse.attributes import Caller
from interfaces.fuse.channels.encoding import Encoder, decode_change, encode_space
from interfaces.fuse.channels.loop import Loop
from interfaces.fuse.coherence import Notice
from interfaces.fuse.errno_table import ERRNO
from interfaces.fuse.operations import Operations

P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate["Channel", P], T]
AsyncMethod = Callable[Concatenate["Channel", P], Coroutine[Any, Any, T]]

logger = logging.getLogger(__name__)


def _refuse(error: Exception, operation: str) -> NoReturn:
    if isinstance(error, Fault):
        raise FUSEError(ERRNO[error.kind]) from None
    if isinstance(error, FUSEError):
        raise error
    logger.error("%s failed", operation, exc_info=error)
    raise FUSEError(errno.EIO) from None


def answer_late(method: AsyncMethod[P, T]) -> AsyncMethod[P, T]:
    """Return an asynchronous method that raises nothing but FUSEError."""

    @wraps(method)
    async def answered(self: Channel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - rule 1: whatever it is, the mount must live on
            _refuse(error, method.__name__)

    return answered


def answer(method: Method[P, T]) -> AsyncMethod[P, T]:
    """Return the method as pyfuse3 wants it: asynchronous, and raising nothing but FUSEError."""

    @wraps(method)
    async def call(self: Channel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(self, *args, **kwargs)

    return answer_late(call)


def _caller(context: RequestContext) -> Caller:
    return Caller(context.uid, context.gid)


class Channel(pyfuse3.Operations):
    """One mount's operations, as pyfuse3 calls them."""

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(self, operations: Operations, owner: Caller, ready: Callable[[], None]) -> None:
        """Answer with `operations`; call `ready` when the kernel begins to ask."""
        super().__init__()
        self._operations = operations
        self._encoder = Encoder(owner)
        self._encode = self._encoder.encode
        self._ready = ready
        self._loop: Loop

    def attach(self, loop: Loop) -> None:
        """Use the threads of `loop` for what may block."""
        self._loop = loop

    def init(self) -> None:
        """Say that the kernel's first message came."""
        self._ready()

    @staticmethod
    def announce(notice: Notice) -> None:
        """Make the kernel drop something. Blocks; never from a method of this class. Raises OSError."""
        if notice.name is None:
            pyfuse3.invalidate_inode(notice.node, attr_only=not notice.pages)
        else:
            pyfuse3.invalidate_entry(notice.node, notice.name)

    # Names

    @answer
    def lookup(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> EntryAttributes:
        """Answer with an entry, or with one that tells the kernel to remember that there is none."""
        try:
            return self._encode(self._operations.lookup(parent_inode, name))
        except Fault as fault:
            if fault.kind is Kind.NOT_FOUND:
                return self._encoder.absent
            raise

    @answer
    def forget(self, inode_list: Sequence[tuple[InodeT, int]]) -> None:
        """Take back references."""
        self._operations.forget(inode_list)

    @answer
    def mknod(self, parent_inode: InodeT, name: FileNameT, mode: ModeT, rdev: int, ctx: RequestContext) -> EntryAttributes:
        """Make a file, a pipe or a socket."""
        return self._encode(self._operations.make(parent_inode, name, mode, _caller(ctx)))

    @answer
    def mkdir(self, parent_inode: InodeT, name: FileNameT, mode: ModeT, ctx: RequestContext) -> EntryAttributes:
        """Make a directory."""
        return self._encode(self._operations.mkdir(parent_inode, name, mode & 0o7777, _caller(ctx)))

    @answer
    def symlink(self, parent_inode: InodeT, name: FileNameT, target: FileNameT, ctx: RequestContext) -> EntryAttributes:
        """Make a symlink."""
        return self._encode(self._operations.symlink(parent_inode, name, target, _caller(ctx)))

    @answer
    def link(self, inode: InodeT, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> EntryAttributes:
        """Make a hard link."""
        return self._encode(self._operations.link(inode, parent_inode, name))

    @answer
    def unlink(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> None:
        """Remove a name."""
        self._operations.unlink(parent_inode, name)

    @answer
    def rmdir(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> None:
        """Remove an empty directory."""
        self._operations.rmdir(parent_inode, name)

    @answer
    def rename(
        self,
        parent_inode: InodeT,
        name: FileNameT,
        target_inode: InodeT,
        target_name: FileNameT,
        flags: FlagT,
        ctx: RequestContext,
    ) -> None:
        """Move a name."""
        self._operations.rename(parent_inode, name, target_inode, target_name, flags)

    @answer
    def readlink(self, inode: InodeT, ctx: RequestContext) -> FileNameT:
        """Answer with a target."""
        return self._operations.readlink(inode)

    # Attributes

    @answer
    def getattr(self, inode: InodeT, ctx: RequestContext) -> EntryAttributes:
        """Answer with attributes."""
        return self._encode(self._operations.attributes(inode))

    @answer_late
    async def setattr(
        self, inode: InodeT, attr: EntryAttributes, fields: SetattrFields, fh: FileHandleT | None, ctx: RequestContext
    ) -> EntryAttributes:
        """Change attributes; a new size of a large file may copy it first."""
        operations, change = self._operations, decode_change(attr, fields)
        before = operations.version()
        if change.size and operations.opening_blocks(inode):
            await self._loop.in_thread(operations.put_change, inode, change, _caller(ctx))
            result = operations.attributes(inode)
        else:
            result = operations.put_change(inode, change, _caller(ctx))
        operations.settle(before, inode)
        return self._encode(operations.tell(result))

    @answer
    def getxattr(self, inode: InodeT, name: XAttrNameT, ctx: RequestContext) -> bytes:
        """Answer with a value."""
        return self._operations.get_xattr(inode, name)

    @answer
    def setxattr(self, inode: InodeT, name: XAttrNameT, value: bytes, ctx: RequestContext) -> None:
        """Set a value."""
        self._operations.set_xattr(inode, name, value)

    @answer
    def removexattr(self, inode: InodeT, name: XAttrNameT, ctx: RequestContext) -> None:
        """Remove a value."""
        self._operations.set_xattr(inode, name, None)

    @answer
    def listxattr(self, inode: InodeT, ctx: RequestContext) -> Sequence[XAttrNameT]:
        """Answer with the names."""
        return self._operations.list_xattrs(inode)

    @answer
    def statfs(self, ctx: RequestContext) -> StatvfsData:
        """Answer with the room left."""
        return encode_space(self._operations.space())

    # Files

    @answer_late
    async def open(self, inode: InodeT, flags: FlagT, ctx: RequestContext) -> FileInfo:
        """Open a file; a large one may have to be fetched first."""
        operations = self._operations
        if operations.opening_blocks(inode):
            file = await self._loop.in_thread(operations.open_file, inode, flags)
        else:
            file = operations.open_file(inode, flags)
        number, fresh = operations.admit(file, flags)
        return FileInfo(fh=number, keep_cache=fresh)

    @answer
    def create(
        self, parent_inode: InodeT, name: FileNameT, mode: ModeT, flags: FlagT, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        """Make and open a file."""
        number, attributes = self._operations.create(parent_inode, name, mode & 0o7777, flags, _caller(ctx))
        return FileInfo(fh=number, keep_cache=True), self._encode(attributes)

    @answer_late
    async def read(self, fh: FileHandleT, off: int, size: int) -> bytes:
        """Answer with content."""
        operations = self._operations
        if operations.touching_blocks(fh):
            return await self._loop.in_thread(operations.read, fh, off, size)
        return operations.read(fh, off, size)

    @answer_late
    async def write(self, fh: FileHandleT, off: int, buf: bytes) -> int:
        """Store content; the first write to a large file may copy it first."""
        operations = self._operations
        if operations.touching_blocks(fh):
            written = await self._loop.in_thread(operations.put, fh, off, buf)
        else:
            written = operations.put(fh, off, buf)
        operations.count_write()
        return written

    async def flush(self, fh: FileHandleT) -> None:
        """Tell the kernel not to ask at every close: nothing is held back that could fail then."""
        raise FUSEError(errno.ENOSYS)

    @answer
    def release(self, fh: FileHandleT) -> None:
        """Close a file."""
        self._operations.release(fh)

    @answer_late
    async def fsync(self, fh: FileHandleT, datasync: bool) -> None:
        """Make a file durable."""
        before = self._operations.version()
        node = await self._loop.in_thread(self._operations.sync, fh)
        self._operations.settle(before, node)

    # Directories

    @answer
    def opendir(self, inode: InodeT, ctx: RequestContext) -> FileHandleT:
        """Open a directory."""
        return self._operations.open_directory(inode)

    @answer
    def readdir(self, fh: FileHandleT, start_id: int, token: ReaddirToken) -> None:
        """Answer with entries and their attributes until the answer is full."""
        operations, encode, reply = self._operations, self._encode, pyfuse3.readdir_reply
        for name, attributes, after in operations.entries(fh, start_id):
            if not reply(token, name, encode(attributes), after):
                break
            operations.hand_out_entry(fh, name, attributes)

    @answer
    def releasedir(self, fh: FileHandleT) -> None:
        """Close a directory."""
        self._operations.release_directory(fh)

    @answer_late
    async def fsyncdir(self, fh: FileHandleT, datasync: bool) -> None:
        """Make the names durable."""
        await self._loop.in_thread(self._operations.sync_all)


def operation_names() -> Sequence[str]:
    """Return the operations this channel answers, for the test that each raises nothing but FUSEError."""
    return sorted(name for name in vars(Channel) if not name.startswith("_") and name in vars(pyfuse3.Operations))


def run_session(channel: Channel, loop: Loop) -> None:
    """Answer the kernel until the session ends. The session must be mounted."""
    channel.attach(loop)
    # pyfuse3 looks its event loop up here, which is how its own asyncio mode replaces trio.
    vars(pyfuse3)["trio"] = loop.surrogate
    session: Any = pyfuse3.main(min_tasks=1, max_tasks=_TASKS)
    loop.run(session)


_TASKS = 24
"""Requests under way at once; more wait in the kernel. Above the threads of the loop, so that short ones get past blocked ones."""

"""A disk in a file: a FUSE mount with the file ``disk``, whose every write and flush is logged in order of arrival, and the file ``mark``.

1. What is written to ``mark`` enters the same log, so an acknowledgement stands exactly between the writes before and after it.
2. One request is served at a time: the order of the log is the order in which a real disk would have seen the requests.
3. Image and log lie in memory-backed files, so that serving a write never waits for the disk that is being played.

Run as ``python -m tests.powercut.disk MOUNTPOINT IMAGE LOG SIZE``; it ends when the mount is taken down.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from typing import IO, Any

import pyfuse3
import trio

WRITE, FLUSH, MARK = 0, 1, 2
HEADER = struct.Struct("<BQQ")
"""One record of the log: what it is, the offset, the number of bytes that follow."""

_NAMES = {b"disk": 2, b"mark": 3}
_FOREVER = 3600.0


class RecordingDisk(pyfuse3.Operations):  # type: ignore[misc, unused-ignore]
    """The two files."""

    supports_dot_lookup = False

    def __init__(self, image: int, log: IO[bytes], size: int) -> None:
        """Keep the content of the disk in the file `image` and what happens in `log`."""
        super().__init__()
        self._image = image
        self._log = log
        self._size = size

    async def lookup(self, parent_inode: int, name: bytes, ctx: Any) -> pyfuse3.EntryAttributes:
        """Return one of the two files."""
        if name not in _NAMES:
            raise pyfuse3.FUSEError(errno.ENOENT)
        return self._attributes(_NAMES[name])

    async def getattr(self, inode: int, ctx: Any) -> pyfuse3.EntryAttributes:
        """Return the attributes of a file or of the directory."""
        return self._attributes(inode)

    async def setattr(self, inode: int, attr: Any, fields: Any, fh: Any, ctx: Any) -> pyfuse3.EntryAttributes:
        """Leave everything as it is."""
        return self._attributes(inode)

    async def open(self, inode: int, flags: int, ctx: Any) -> pyfuse3.FileInfo:
        """Open a file; writes to ``mark`` pass by the page cache, one request each."""
        return pyfuse3.FileInfo(fh=inode, direct_io=inode == _NAMES[b"mark"])

    async def read(self, fh: int, off: int, size: int) -> bytes:
        """Read the disk."""
        return os.pread(self._image, size, off) if fh == _NAMES[b"disk"] else b""

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        """Log what is written, and for the disk keep it."""
        data = bytes(buf)
        if fh == _NAMES[b"mark"]:
            self._record(MARK, 0, data)
        else:
            os.pwrite(self._image, data, off)
            self._record(WRITE, off, data)
        return len(data)

    async def fsync(self, fh: int, datasync: bool) -> None:
        """Log a flush."""
        if fh == _NAMES[b"disk"]:
            self._record(FLUSH, 0, b"")

    async def flush(self, fh: int) -> None:
        """Do nothing: closing a file is no promise of a disk."""

    async def release(self, fh: int) -> None:
        """Do nothing."""

    def _record(self, what: int, offset: int, data: bytes) -> None:
        self._log.write(HEADER.pack(what, offset, len(data)))
        self._log.write(data)
        self._log.flush()

    def _attributes(self, inode: int) -> pyfuse3.EntryAttributes:
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = inode
        entry.st_mode = stat.S_IFDIR | 0o700 if inode == pyfuse3.ROOT_INODE else stat.S_IFREG | 0o600
        entry.st_size = self._size if inode == _NAMES[b"disk"] else 0
        entry.st_nlink = 1
        entry.entry_timeout = entry.attr_timeout = _FOREVER
        return entry


def main(mountpoint: str, image_path: str, log_path: str, size: int) -> None:
    """Serve the disk until it is unmounted."""
    image = os.open(image_path, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(image, size)
    with open(log_path, "wb") as log:
        options = set(pyfuse3.default_options) | {"fsname=powercut", "allow_other"}
        pyfuse3.init(RecordingDisk(image, log, size), mountpoint, options)
        try:
            trio.run(pyfuse3.main)
        finally:
            pyfuse3.close(unmount=False)
    os.close(image)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))

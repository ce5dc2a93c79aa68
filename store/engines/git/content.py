"""Files that hold content: one per committed content, shared by everybody, and numbered upper files of single branches.

1. A file of the cache is complete when it has its name: it is written under another one first. It is never changed; its descriptor
   can be handed out. It is only a cache: nothing in it is synced, and after a restart of the machine the owner drops all of it.
2. An upper file belongs to one node of one branch and is changed in place. It never shares bytes that anyone else can change.
3. Content is streamed; copies are the kernel's where it can (reflinks, holes kept).
4. Failures of the disk are the store's errors: full is `NoSpace`, too big is `TooLarge`, all else `StoreError`.
"""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from store.contract import Content, Handle, Joined
from store.engines.git.caches import RecentMap
from store.engines.git.packs import Sync, sync_folder
from store.engines.git.steps import step
from store.engines.git.syncs import Syncs
from store.engines.git.vault import Vault
from store.engines.git.writeback import Writeback
from store.errors import NoSpace, NotFound, StoreError, TooLarge

LARGEST_FILE = 1 << 44
"""No file is longer, in bytes, whatever the file system below would hold (tmpfs takes sizes that nothing else can)."""

SMALL = 64 << 10
"""A content up to so many bytes may be held in memory."""

_SMALL_BYTES = 32 << 20
_SEEN = 500_000
_FULL = (errno.ENOSPC, errno.EDQUOT)
_COPY = 1 << 24
_PIECE = 1 << 18
_NO_COPY_RANGE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class disk_errors:
    """Run a block and turn what the disk refuses into the store's errors."""

    __slots__ = ("_subject",)

    def __init__(self, subject: object) -> None:
        """Blame `subject`."""
        self._subject = subject

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if not isinstance(failure, OSError):
            return
        if failure.errno in _FULL:
            raise NoSpace(self._subject, "the disk below the store is full") from failure
        if failure.errno == errno.EFBIG:
            raise TooLarge(self._subject, "the file system below the store holds no file of that size") from failure
        raise StoreError(self._subject, os.strerror(failure.errno or 0)) from failure


def check_size(subject: object, size: int) -> None:
    """Return when a file may be `size` bytes long. Raises `TooLarge`."""
    if size > LARGEST_FILE:
        raise TooLarge(subject, f"no file has more than {LARGEST_FILE} bytes")


class ContentCache:
    """Committed contents as read-only files, made when they are opened; small ones in memory as long as they are used.

    A small content becomes a file when it is read again after memory forgot it: most are read once, soon after they were put.
    """

    def __init__(self, folder: Path, vault: Vault) -> None:
        """Keep the files below `folder`."""
        self._folder = os.fspath(folder)
        self._vault = vault
        self._names = itertools.count()
        self._small: RecentMap[bytes, bytes] = RecentMap(_SMALL_BYTES, len)
        self._forgotten: RecentMap[bytes, bool] = RecentMap(_SEEN)

    def open(self, oid: bytes) -> int:
        """Return a new descriptor that reads a content. Raises `NotFound`, `Corrupt`, `NoSpace`."""
        path = self._path(oid)
        with disk_errors(path):
            try:
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self._fill(oid, Path(path))
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def small(self, oid: bytes) -> bytes | None:
        """Return a content that is at hand or costs less than a file, None for any other. Raises `NotFound`, `Corrupt`."""
        content = self._small.get(oid)
        if content is None and not self._forgotten.get(oid) and self._vault.size(oid) <= SMALL:
            content = self._load(oid)
            self._small.put(oid, content)
            self._forgotten.put(oid, True)
        return content

    def _load(self, oid: bytes) -> bytes:
        try:
            with open(self._path(oid), "rb", buffering=0) as file:
                return file.readall()
        except FileNotFoundError:
            return b"".join(self._vault.chunks(oid))

    def _path(self, oid: bytes) -> str:
        name = oid.hex()
        return f"{self._folder}/{name[:2]}/{name}"

    def _fill(self, oid: bytes, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.{next(self._names)}.tmp")
        try:
            with open(draft, "xb", buffering=0) as file:
                for piece in self._vault.chunks(oid):
                    write_all(file.fileno(), piece)
                os.fchmod(file.fileno(), 0o444)
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)


class UpperFiles:
    """The upper files of one branch, by number."""

    def __init__(self, folder: Path, *, sync: Sync) -> None:
        """Keep the files in `folder`, which is made when it is missing."""
        self._folder = folder
        self._sync = sync
        self._syncs = Syncs()
        self._rooted = False
        folder.mkdir(parents=True, exist_ok=True)

    def create(self) -> tuple[int, int]:
        """Make an empty file and return its number and a descriptor of it. Raises `NoSpace`, `NotFound` when the branch is gone."""
        with disk_errors(self._folder.name):
            while True:
                number = secrets.randbits(48)
                try:
                    return number, os.open(self._path(number), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                except FileExistsError:
                    continue
                except FileNotFoundError:
                    raise NotFound(self._folder.name, "the branch was removed") from None

    def receive(self, content: Content, beginning: bytes = b"") -> int:
        """Make a file of `beginning` and all of a content, and return its number once it is on stable storage. Raises `NoSpace`."""
        number, descriptor = self.create()
        try:
            if isinstance(content, Joined):
                _join(content.handles, descriptor)
            else:
                self._write(descriptor, content, beginning)
            with disk_errors(number):
                step("upper: sync")
                self._sync(descriptor)
            self.sync()
        except BaseException:
            self.remove(number)
            raise
        finally:
            os.close(descriptor)
        return number

    def _write(self, descriptor: int, content: Content, piece: bytes) -> None:
        written, writeback = 0, Writeback(descriptor)
        while piece or (piece := content.read(_PIECE)):
            with disk_errors(descriptor):
                write_all(descriptor, piece)
            written += len(piece)
            writeback.note(written)
            piece = b""

    def open(self, number: int, flags: int = os.O_RDWR) -> int:
        """Return a new descriptor of a file. Raises `FileNotFoundError` when another process removed it meanwhile."""
        return os.open(self._path(number), flags | os.O_CLOEXEC)

    def stat(self, number: int) -> os.stat_result:
        """Return what the disk says of a file. Raises `FileNotFoundError`."""
        return os.stat(self._path(number))

    def truncate(self, number: int, size: int) -> None:
        """Cut or extend a file. Raises `NoSpace`, `TooLarge`."""
        check_size(number, size)
        with disk_errors(number):
            os.truncate(self._path(number), size)

    def set_times(self, number: int, atime_ns: int, mtime_ns: int) -> None:
        """Set the times of a file."""
        with disk_errors(number):
            os.utime(self._path(number), ns=(atime_ns, mtime_ns))

    def remove(self, number: int) -> None:
        """Remove a file; descriptors of it stay good. Repeats do nothing."""
        try:
            os.unlink(self._path(number))
        except FileNotFoundError:
            return

    def sync(self) -> None:
        """Return once the names of all files are on stable storage."""
        self._syncs.wait(self._sync_names)

    def _sync_names(self) -> None:
        step("upper: sync folder")
        with disk_errors(self._folder.name):
            if not self._rooted:
                sync_folder(self._folder.parent, self._sync)
                self._rooted = True
            sync_folder(self._folder, self._sync)

    def sync_files(self, numbers: Iterable[int]) -> None:
        """Return once the content and names of files are on stable storage; files that are gone need none."""
        for number in numbers:
            with suppress(FileNotFoundError), self.reading(number) as descriptor, disk_errors(number):
                step("upper: sync")
                self._sync(descriptor)
        self.sync()

    @contextmanager
    def reading(self, number: int) -> Iterator[int]:
        """Run the block with a descriptor that reads a file. Raises `FileNotFoundError`."""
        descriptor = self.open(number, os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def remove_all(self) -> None:
        """Remove every file and the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number}"


def measure_uppers(folder: Path) -> int:
    """Return the bytes on disk that the files of a folder take, 0 when there is none."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_blocks * 512 for entry in entries)
    except FileNotFoundError:
        return 0


def copy_content(source: int, target: int, size: int) -> None:
    """Make `target`, which is empty, hold the first `size` bytes of `source`, holes left out. Raises `NoSpace`."""
    with disk_errors("copy"):
        position = 0
        while position < size and (start := _seek(source, position, os.SEEK_DATA)) < size:
            end = min(_seek(source, start, os.SEEK_HOLE), size)
            _copy_range(source, target, start, end)
            position = end
        os.ftruncate(target, size)


def _join(handles: Sequence[Handle], target: int) -> None:
    """Make `target`, which is empty, hold the contents of files one after the other."""
    end, writeback = 0, Writeback(target)
    with disk_errors("join"):
        for handle in handles:
            source = handle.fileno()
            size = os.fstat(source).st_size
            _copy_range(source, target, 0, size, end)
            end += size
            writeback.note(end)


def _seek(descriptor: int, position: int, whence: int) -> int:
    """Return where data or a hole begins from `position` on; beyond every size when there is none."""
    try:
        return os.lseek(descriptor, position, whence)
    except OSError as failure:
        if failure.errno != errno.ENXIO:
            raise
        return 1 << 62


def _copy_range(source: int, target: int, start: int, end: int, shift: int = 0) -> None:
    """Copy a range of `source` to where it is in `target`, or `shift` bytes further."""
    while start < end:
        try:
            done = os.copy_file_range(source, target, min(end - start, _COPY), start, start + shift)
        except OSError as failure:
            if failure.errno not in _NO_COPY_RANGE:
                raise
            done = 0
        if done == 0:
            data = os.pread(source, min(end - start, _COPY), start)
            write_all(target, data, start + shift)
            done = len(data)
        if done == 0:
            return
        start += done


def write_all(descriptor: int, data: bytes, offset: int | None = None) -> None:
    """Write all of `data` at an offset, or (None) where the descriptor stands."""
    view = memoryview(data)
    while view:
        done = os.write(descriptor, view) if offset is None else os.pwrite(descriptor, view, offset)
        offset = None if offset is None else offset + done
        view = view[done:]

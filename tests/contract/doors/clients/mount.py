"""The mount, by the system calls that any program makes."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interfaces.faults import Kind
from tests.contract.doors.clients.composed import search_by_reading
from tests.contract.doors.clients.door import Aspect, Difference, Door
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import Operation, Refused, Seen
from tests.contract.doors.site import Held, Site


class Mount:
    """Programs at work below a mountpoint."""

    def __init__(self, site: Site, mountpoint: Path) -> None:
        self._site = site
        self._point = mountpoint
        self.told: list[bytes] = []

    def read(self, path: str) -> bytes:
        with self._telling():
            return (self._point / path).read_bytes()

    def list(self, path: str) -> tuple[str, ...]:
        with self._telling():
            return tuple(sorted(os.listdir(self._point / path)))

    def stat(self, path: str) -> Seen:
        with self._telling():
            found = os.stat(self._point / path)
            return Seen(stat.S_ISDIR(found.st_mode), found.st_size)

    def write(self, path: str, content: bytes) -> None:
        with self._telling():
            (self._point / path).write_bytes(content)

    def create(self, path: str, content: bytes) -> None:
        with self._telling(), (self._point / path).open("xb", buffering=0) as made:
            made.write(content)

    def append(self, path: str, content: bytes) -> None:
        # Python's "ab" makes a file that is not there; adding to one does not.
        with self._telling(), open(os.open(self._point / path, os.O_WRONLY | os.O_APPEND), "wb", buffering=0) as file:
            file.write(content)

    def copy(self, path: str, target: str) -> None:
        with self._telling():
            shutil.copyfile(self._point / path, self._point / target)

    def move(self, path: str, target: str) -> None:
        with self._telling():
            (self._point / path).rename(self._point / target)

    def delete(self, path: str) -> None:
        with self._telling():
            (self._point / path).unlink()

    def search(self, path: str, text: str) -> tuple[str, ...]:
        return search_by_reading(self, path, text)

    def close(self) -> None:
        """Unmount."""
        self._site.call("mount.remove", mountpoint=str(self._point))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            word = errno.errorcode[error.errno or 0]
            self.told.append(word.encode())
            raise Refused(word) from error


WORDS = {
    "EINVAL": frozenset({Kind.INVALID, Kind.INTO_ITSELF, Kind.KEY_REUSED}),
    "EACCES": frozenset({Kind.UNAUTHENTICATED, Kind.DENIED, Kind.GATED, Kind.EXPIRED, Kind.REVOKED}),
    "EROFS": frozenset({Kind.READ_ONLY}),
    "ENOENT": frozenset({Kind.NOT_FOUND}),
    "EEXIST": frozenset({Kind.EXISTS}),
    "ENOTDIR": frozenset({Kind.NOT_A_DIRECTORY}),
    "EISDIR": frozenset({Kind.IS_A_DIRECTORY}),
    "ENOTEMPTY": frozenset({Kind.NOT_EMPTY}),
    "ENAMETOOLONG": frozenset({Kind.NAME_TOO_LONG}),
    "EDQUOT": frozenset({Kind.BUDGET}),
    "ENOSPC": frozenset({Kind.NO_SPACE}),
    "EFBIG": frozenset({Kind.TOO_LARGE}),
    "EBUSY": frozenset({Kind.CONFLICT, Kind.PRECONDITION, Kind.BUSY}),
    "EOPNOTSUPP": frozenset({Kind.UNSUPPORTED}),
    "EPERM": frozenset({Kind.NOT_PERMITTED}),
    "ENODATA": frozenset({Kind.NO_ATTRIBUTE}),
    "ESTALE": frozenset({Kind.STALE}),
    "ELOOP": frozenset({Kind.LOOP}),
    "EMLINK": frozenset({Kind.TOO_MANY_LINKS}),
    "EAGAIN": frozenset({Kind.THROTTLED}),
    "EIO": frozenset({Kind.UNAVAILABLE, Kind.CORRUPT, Kind.INTERNAL}),
}


def _connect(site: Site, held: Held) -> Mount:
    point = site.nas.mounts / held.lease
    point.mkdir()
    site.control.call(site.control.authenticate(held.secret), "mount.add", {"target": held.run, "mountpoint": str(point)})
    return Mount(site, point)


MOUNT = Door(
    "mount",
    _connect,
    WORDS,
    by={Operation.COPY: "reading and writing", Operation.SEARCH: "reading each file"},
    differs=(
        Difference(Aspect.READS, {Standing.READ_ONLY}, {Operation.COPY}, "the file is read before the write of its copy is refused"),
        Difference(Aspect.FILES, {Standing.SPENT}, {Operation.WRITE}, "opening empties the file, before its first byte is refused"),
        Difference(Aspect.FILES, {Standing.SPENT}, {Operation.CREATE}, "an empty file is made, before its first byte is refused"),
    ),
    holds=True,
)

"""The port itself, in this process: what it decides is the truth.

1. `Requests` lets its caller in anew with every operation, as the HTTP family does; `Session` opened its workspace before, as a mount does.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import BytesIO

from interfaces.faults import Fault, Kind
from interfaces.finding import Bounds, Query, search
from interfaces.port import Access, Workspace, walk
from tests.contract.doors.clients.door import Door, one_kind_each
from tests.contract.doors.model import Refused, Seen
from tests.contract.doors.site import Held, Site


class Inside:
    """A caller of the port."""

    def __init__(self, enter: Callable[[], Workspace]) -> None:
        self._enter = enter
        self.told: list[bytes] = []

    def read(self, path: str) -> bytes:
        with self._workspace() as workspace:
            found = walk(workspace, path.encode())
            with closing(workspace.open(found.node, Access())) as handle:
                return handle.read(0, found.size)

    def list(self, path: str) -> tuple[str, ...]:
        with self._workspace() as workspace:
            return tuple(name.decode() for name, _ in workspace.list(walk(workspace, path.encode()).node))

    def stat(self, path: str) -> Seen:
        with self._workspace() as workspace:
            found = walk(workspace, path.encode())
            return Seen(stat.S_ISDIR(found.st_mode), found.size)

    def write(self, path: str, content: bytes) -> None:
        self._publish(path, content)

    def create(self, path: str, content: bytes) -> None:
        self._publish(path, content)

    def append(self, path: str, content: bytes) -> None:
        with self._workspace() as workspace:
            found = walk(workspace, path.encode())
            with closing(workspace.open(found.node, Access(read=False, write=True, append=True))) as handle:
                handle.write(found.size, content)

    def copy(self, path: str, target: str) -> None:
        with self._workspace() as workspace:
            workspace.copy(walk(workspace, path.encode()).node, *_place(workspace, target))

    def move(self, path: str, target: str) -> None:
        with self._workspace() as workspace:
            workspace.rename(*_place(workspace, path), *_place(workspace, target))

    def delete(self, path: str) -> None:
        with self._workspace() as workspace:
            workspace.unlink(*_place(workspace, path))

    def search(self, path: str, text: str) -> tuple[str, ...]:
        with self._workspace() as workspace:
            outcome = search(workspace, Query(text=text, below=path.encode()), Bounds(), time.monotonic)
            if outcome.failures:
                raise outcome.failures[0].fault
            return tuple(match.path.rpartition(b"/")[2].decode() for match in outcome.matches)

    def close(self) -> None:
        """Leave."""

    def _publish(self, path: str, content: bytes) -> None:
        with self._workspace() as workspace:
            workspace.publish(*_place(workspace, path), 0o644, BytesIO(content))

    @contextmanager
    def _workspace(self) -> Iterator[Workspace]:
        try:
            with closing(self._enter()) as workspace:
                yield workspace
        except Fault as fault:
            self.told.append("\n".join([fault.kind.value, fault.message, fault.hint, fault.policy]).encode())
            raise Refused(fault.kind.value) from fault


def _place(workspace: Workspace, path: str) -> tuple[int, bytes]:
    folder, _, name = path.encode().rpartition(b"/")
    return walk(workspace, folder).node, name


def _by_request(site: Site, held: Held) -> Inside:
    return Inside(lambda: site.control.workspace(site.control.authenticate(held.secret), held.branch))


def _by_session(site: Site, held: Held) -> Inside:
    caller = site.control.authenticate(held.secret)
    return Inside(lambda: site.control.workspace(caller, held.branch))


_WORDS = one_kind_each({kind.value: kind for kind in Kind})

REQUESTS = Door("in process", _by_request, _WORDS)
SESSION = Door("in process, held open", _by_session, _WORDS, holds=True)

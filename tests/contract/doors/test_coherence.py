"""What one door acknowledged, every other door shows at its next open or request, whatever it showed before.

A mount's kernel keeps what it was told until it is told otherwise, which takes it milliseconds; every other door has no such excuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count

import pytest

from interfaces.faults import Kind
from tests.contract.doors.clients import DOORS, TRUTHS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.inside import REQUESTS
from tests.contract.doors.model import Client, Refused, Seen
from tests.contract.doors.site import open_site
from tests.e2e.conftest import needs_fuse, wait_until

MATRIX = (REQUESTS, *(door for door in DOORS if door not in TRUTHS))
FOLDER = "work/shared"

pytestmark = [needs_fuse, pytest.mark.slow]


@dataclass(frozen=True, slots=True)
class Room:
    """One branch, and a client of it at each door."""

    clients: Mapping[str, Client]
    numbers: Iterator[int]

    def fresh_path(self) -> str:
        """Return the path of a file that was never there."""
        return f"{FOLDER}/{next(self.numbers)}"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with open_site(tmp_path_factory.mktemp("coherence")) as site, ExitStack() as stack:
        held = site.start()
        clients = {door.name: stack.enter_context(closing(door.connect(site, held))) for door in MATRIX}
        with closing(site.control.workspace(site.control.authenticate(held.secret), held.branch)) as workspace:
            workspace.mkdir(workspace.lookup(1, b"work").node, b"shared", 0o755)
        yield Room(clients, count(1))


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who looks through one door at what another one did."""

    door: Door
    client: Client

    def sees(self, path: str, content: bytes | None) -> None:
        """Return once the door shows this content under a path (None: nothing). Fails when it does not."""
        if self.door.holds:
            wait_until(lambda: self._shows(path, content))
        assert self._shown(path) == content
        assert (path.rpartition("/")[2] in self.client.list(FOLDER)) is (content is not None)
        if content is not None:
            assert self.client.stat(path) == Seen(is_directory=False, size=len(content))

    def _shows(self, path: str, content: bytes | None) -> bool:
        return self._shown(path) == content and (path.rpartition("/")[2] in self.client.list(FOLDER)) is (content is not None)

    def _shown(self, path: str) -> bytes | None:
        try:
            return self.client.read(path)
        except Refused as refused:
            assert Kind.NOT_FOUND in self.door.words[refused.word], refused.word
            return None


@pytest.mark.parametrize("reading", MATRIX, ids=lambda door: f"to {door.name}")
@pytest.mark.parametrize("writing", MATRIX, ids=lambda door: f"from {door.name}")
def test_what_one_door_acknowledged_another_shows(room: Room, writing: Door, reading: Door) -> None:
    writer, reader = room.clients[writing.name], Reader(reading, room.clients[reading.name])
    path, moved = room.fresh_path(), room.fresh_path()
    reader.sees(path, None)
    writer.create(path, b"the first content\n")
    reader.sees(path, b"the first content\n")
    writer.write(path, b"THE FIRST CONTENT\n")
    reader.sees(path, b"THE FIRST CONTENT\n")
    writer.write(path, b"another one, and longer than the first\n")
    reader.sees(path, b"another one, and longer than the first\n")
    writer.append(path, b"with more\n")
    reader.sees(path, b"another one, and longer than the first\nwith more\n")
    writer.move(path, moved)
    reader.sees(path, None)
    reader.sees(moved, b"another one, and longer than the first\nwith more\n")
    writer.delete(moved)
    reader.sees(moved, None)

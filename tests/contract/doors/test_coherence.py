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
from tests.contract.doors.clients import HERE, OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.inside import REQUESTS
from tests.contract.doors.model import Client, Refused, Seen
from tests.contract.doors.site import open_site
from tests.contract.doors.skipping import each_of
from tests.e2e.conftest import wait_until

MATRIX = tuple(door for door in (REQUESTS, *OTHERS) if door in HERE)
FOLDER = "work/list"

pytestmark = pytest.mark.slow


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
        yield Room(clients, count(1))


def everybody_sees(room: Room, path: str, content: bytes | None) -> None:
    """Return once every door shows this content under a path (None: nothing). Fails at the first that does not."""
    for door in MATRIX:
        client = room.clients[door.name]
        if door.holds:
            wait_until(lambda door=door, client=client: shown(door, client, path) == content)
            wait_until(lambda client=client: is_listed(client, path) is (content is not None))
        assert shown(door, client, path) == content, door.name
        assert is_listed(client, path) is (content is not None), door.name
        if content is not None:
            assert client.stat(path) == Seen(is_directory=False, size=len(content)), door.name


def shown(door: Door, client: Client, path: str) -> bytes | None:
    """Return what a door shows under a path, None when it says that nothing is there."""
    try:
        return client.read(path)
    except Refused as refused:
        assert Kind.NOT_FOUND in door.words[refused.word], f"{door.name}: {refused.word}"
        return None


def is_listed(client: Client, path: str) -> bool:
    return path.rpartition("/")[2] in client.list(FOLDER)


@pytest.mark.parametrize("writing", each_of(REQUESTS, *OTHERS))
def test_what_one_door_acknowledged_every_door_shows(room: Room, writing: Door) -> None:
    writer = room.clients[writing.name]
    path, moved = room.fresh_path(), room.fresh_path()
    everybody_sees(room, path, None)
    writer.create(path, b"the first content\n")
    everybody_sees(room, path, b"the first content\n")
    writer.write(path, b"THE FIRST CONTENT\n")
    everybody_sees(room, path, b"THE FIRST CONTENT\n")
    writer.append(path, b"with more\n")
    everybody_sees(room, path, b"THE FIRST CONTENT\nwith more\n")
    writer.write(path, b"shorter\n")
    everybody_sees(room, path, b"shorter\n")
    writer.move(path, moved)
    everybody_sees(room, path, None)
    everybody_sees(room, moved, b"shorter\n")
    writer.delete(moved)
    everybody_sees(room, moved, None)

"""The door on real sockets: over a room, for what has nothing to do with files, and over a real appliance, for files."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from interfaces.faults import Fault, Kind
from interfaces.http import Door
from interfaces.port import ROOT, Access, Attributes, Control, Workspace, walk
from interfaces.web.family import Family, Members
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.house_of_doors import HouseOfDoors, Started, open_house
from tests.interfaces.http.room import SECRET, Room
from tests.serving import serving

LIMITS = Limits(header_seconds=1.0, idle_seconds=1.0, document_bytes=1 << 16, file_bytes=8 << 20, heartbeat_seconds=0.1)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.content)


@dataclass
class Client:
    """A running door and ways to speak to it."""

    port: int
    secret: str

    def ask(self, method: str, target: str, body: bytes | dict[str, Any] | None = None, **headers: str) -> Answer:
        """Send one request; header names are given with underscores."""
        sent = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def head(self, method: str, target: str, *headers: str) -> bytes:
        """Return the head of a request as bytes, for `raw`."""
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.secret}", *headers, "", ""]
        return "\r\n".join(lines).encode()

    def raw(self, data: bytes) -> bytes:
        """Send bytes and return everything until the server ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
            return received


@dataclass
class Site(Client):
    """A door over a room."""

    room: Room


@dataclass
class Home(Client):
    """A door over an appliance, and a run of its own for each test."""

    house: HouseOfDoors
    run: Started
    folder: Path

    @property
    def files(self) -> str:
        """Return the path of the run's files."""
        return f"/v1/branches/{quote(self.run.branch, safe='')}/files"

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """Open the run's branch past the door."""
        caller = self.house.control.authenticate(self.run.secret)
        with closing(self.house.control.workspace(caller, self.run.branch)) as workspace:
            yield workspace

    def put(self, path: bytes, content: bytes) -> None:
        """Put a file past the door, with the directories above it."""
        with self.workspace() as workspace:
            *above, name = path.split(b"/")
            node = ROOT
            for step in above:
                node = _made(workspace, node, step).node
            workspace.publish(node, name, 0o644, io.BytesIO(content))

    def read(self, path: bytes) -> bytes | None:
        """Return a file's content past the door, None when there is none."""
        with self.workspace() as workspace:
            try:
                attributes = walk(workspace, path)
            except Fault as fault:
                assert fault.kind is Kind.NOT_FOUND
                return None
            with closing(workspace.open(attributes.node, Access())) as handle:
                return handle.read(0, attributes.size)

    def open_files(self) -> int:
        """Return how many files of content this process has open."""
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        targets = [os.readlink(link) for link in links if os.path.lexists(link)]
        contents = tuple(str(self.folder / "home" / "store" / name) + "/" for name in ("cas", "up", "lo"))
        return sum(target.startswith(contents) and not target.endswith("/fence") for target in targets)


def _made(workspace: Workspace, parent: int, name: bytes) -> Attributes:
    try:
        return workspace.lookup(parent, name)
    except Fault:
        return workspace.mkdir(parent, name, 0o755)


@contextmanager
def open_door(control: Control, limits: Limits = LIMITS) -> Iterator[int]:
    """Serve a door over `control` while the block runs and give its port."""
    pool = Pool("http", limits.threads, limits.uploads)
    with closing(pool), serving(Family(Members(http=Door(control, version="0", pool=pool, limits=limits))), limits=limits) as url:
        yield int(url.rpartition(":")[2])


@contextmanager
def open_site(limits: Limits = LIMITS) -> Iterator[Site]:
    """Serve a door over a room while the block runs."""
    room = Room()
    with open_door(room, limits) as port:
        yield Site(port, SECRET, room)
        room.draining.set()


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def site(running: Site) -> Site:
    """The running door over a room with no memory of calls."""
    running.room.calls.clear()
    running.room.ready_now = True
    running.secret = SECRET
    return running


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("home")
    with open_house(folder) as house, open_door(house.control) as port:
        yield Home(port, "", house, Started("", "", "", ""), folder)


@pytest.fixture
def home(lived_in: Home) -> Home:
    """The running door over the appliance, with a run that has an empty branch but for what main has."""
    lived_in.run = lived_in.house.start_run()
    lived_in.secret = lived_in.run.secret
    return lived_in

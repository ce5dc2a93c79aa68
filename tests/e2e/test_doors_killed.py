"""Whatever process of the appliance is killed while clients work: they repeat and finish, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.git import GIT
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.clients.mcp import MCP
from tests.contract.doors.clients.s3 import S3
from tests.contract.doors.clients.webdav import WEBDAV
from tests.contract.doors.model import Client, Refused
from tests.contract.doors.site import Held, Site, open_site
from tests.e2e.conftest import needs_fuse, wait_until

AGAIN = frozenset({Kind.UNAVAILABLE, Kind.BUSY, Kind.CONFLICT})
"""What a client may be told while something starts again."""
ROUNDS = 2
BETWEEN = 3
"""How many writes are acknowledged at each door between two kills."""
PAUSE = 0.05
"""How long a writer rests between two files, seconds."""


@dataclass
class Writer:
    """A client that writes one file after the other through a door, and repeats each until it is acknowledged."""

    site: Site
    door: Door
    held: Held
    stopped: threading.Event
    acknowledged: dict[str, bytes] = field(default_factory=dict)
    repeats: int = 0

    def work(self) -> None:
        """Write until it is told to stop."""
        client: Client | None = None
        for number in count():
            path, content = f"work/{self.door.name}-{number}", f"{self.door.name} {number}\n".encode() * 100
            while not self.stopped.is_set():
                try:
                    client = client or self.door.connect(self.site, self.held)
                    client.write(path, content)
                    self.acknowledged[path] = content
                    self.stopped.wait(PAUSE)
                    break
                except (OSError, HTTPException, Fault, Refused) as error:
                    self._must_be_passing(error)
                    self._leave(client)
                    client = None
            if self.stopped.is_set():
                self._leave(client)
                return

    def _must_be_passing(self, error: Exception) -> None:
        self.repeats += 1
        if isinstance(error, Fault):
            assert error.kind in AGAIN, error
        if isinstance(error, Refused) and not self.door.speaks_prose:
            assert self.door.words[error.word] & AGAIN, error

    def _leave(self, client: Client | None) -> None:
        if client is not None:
            client.close()


class Mounted:
    """A program that writes on a mount, which comes back at the same place."""

    def __init__(self, site: Site, held: Held, stopped: threading.Event) -> None:
        self.held = held
        self.place = site.nas.mounts / held.lease
        self.place.mkdir()
        mounted = {"target": held.run, "mountpoint": str(self.place)}
        site.control.call(site.control.authenticate(held.secret), "mount.add", mounted)
        self.stopped = stopped
        self.acknowledged: dict[str, bytes] = {}
        self.repeats = 0

    def work(self) -> None:
        """Write until it is told to stop."""
        for number in count():
            path, content = f"work/mount-{number}", f"mount {number}\n".encode() * 100
            while not self.stopped.is_set():
                try:
                    (self.place / path).write_bytes(content)
                except OSError:
                    self.repeats += 1
                else:
                    self.acknowledged[path] = content
                    break
                finally:
                    self.stopped.wait(PAUSE)
            if self.stopped.is_set():
                return


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path, workers=2) as opened:
        yield opened


def start_writers(site: Site, stopped: threading.Event) -> list[Writer | Mounted]:
    """Return a writer for each door, all on one branch but git's: it would have to fetch what the others write, and never come to push."""
    held = site.start()
    family = [Writer(site, door, held, stopped) for door in (HTTP, WEBDAV, S3, MCP)]
    return [*family, Writer(site, GIT, site.start(), stopped), Mounted(site, held, stopped)]


@contextmanager
def working(writers: list[Writer | Mounted], stopped: threading.Event) -> Iterator[Callable[[], None]]:
    """Run the block while writers work; what it gets waits until each has written more. Fails with whoever failed."""
    with ThreadPoolExecutor(len(writers)) as pool:
        futures = [pool.submit(writer.work) for writer in writers]

        def progress() -> None:
            before = [len(writer.acknowledged) for writer in writers]

            def went_on() -> bool:
                for future in futures:
                    assert future.running(), future.exception()
                return all(len(each.acknowledged) >= past + BETWEEN for each, past in zip(writers, before, strict=True))

            wait_until(went_on, 60.0)

        try:
            yield progress
        finally:
            stopped.set()
        for future in futures:
            future.result()


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def lost(site: Site, writers: list[Writer | Mounted]) -> list[str]:
    """Return the paths that were acknowledged and do not hold what was written."""
    written = [(each.held.branch, path, content) for each in writers for path, content in each.acknowledged.items()]
    return [path for branch, path, content in written if site.nas.get_file(branch, path) != content]


@needs_fuse
def test_workers_and_mounts_are_killed_under_load_and_nobody_loses_anything(site: Site) -> None:
    stopped = threading.Event()
    writers = start_writers(site, stopped)
    with working(writers, stopped) as progress:
        progress()
        for turn in range(ROUNDS):
            before = site.status()
            kill(before["gateways"][turn % 2])
            kill(before["mounts"][0]["pid"])
            wait_until(lambda former=before: has_come_back(site, former), 30.0)
            progress()
    assert sum(writer.repeats for writer in writers) > 0
    assert lost(site, writers) == []


def has_come_back(site: Site, before: dict[str, object]) -> bool:
    """Tell whether every worker and the mount live again, with another process behind what was killed."""
    now = site.status()
    mounted = now["mounts"][0]
    return len(now["gateways"]) == 2 and now["gateways"] != before["gateways"] and mounted["state"] == "mounted"


@needs_fuse
def test_the_daemon_is_killed_under_load_and_everything_is_there_when_it_serves_again(site: Site) -> None:
    stopped = threading.Event()
    writers = start_writers(site, stopped)
    with working(writers, stopped) as progress:
        progress()
        for _ in range(ROUNDS):
            kill(site.status()["pid"])
            site.nas.serve()
            progress()
    assert lost(site, writers) == []
    assert site.nas.json("verify")["ok"]

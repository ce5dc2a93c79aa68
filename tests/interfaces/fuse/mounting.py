"""A store's owner and the mounts of its branches, each served by a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from interfaces.fuse import recover_mountpoint, unmount, wait_usable
from store import Engine, Note, Provenance
from store.errors import NotFound

ROOT = Path(__file__).parents[3]
SECONDS = 20.0


class Served:
    """One mount and the process behind it."""

    def __init__(self, point: Path, process: subprocess.Popen[str], lease_end: Path) -> None:
        self.point = point
        self.process = process
        self._lease_end = lease_end

    def end_lease(self) -> None:
        """Take the lease back."""
        self._lease_end.touch()

    def kill(self) -> None:
        """End the process as a crash does, and leave the dead mount."""
        self.process.kill()
        self.process.wait(SECONDS)
        self._drain()

    def terminate(self) -> str:
        """End the process in order and return what it said last."""
        self.process.send_signal(signal.SIGTERM)
        return self.farewell()

    def farewell(self) -> str:
        """Return the last words of a process that ends."""
        self.process.wait(SECONDS)
        return self._drain().strip()

    def _drain(self) -> str:
        assert self.process.stdout is not None
        words = self.process.stdout.read()
        self.process.stdout.close()
        return words

    def close(self) -> None:
        """End whatever is left of it."""
        if self.process.poll() is None:
            self.terminate()
        recover_mountpoint(self.point)
        unmount(self.point, lazy=True)


class Shop:
    """A store with its owner in this process."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self._folder = folder
        self._numbers = count(1)
        self._served: list[Served] = []

    def serve(self, branch: str) -> Served:
        """Mount a branch, made empty where it is missing, at a mountpoint of its own."""
        self._ensure(branch)
        number = next(self._numbers)
        point, lease_end, log = (self._folder / f"{word} {number}" for word in ("mount", "lease-end", "log"))
        point.mkdir()
        with open(log, "wb") as errors:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.interfaces.fuse.direct",
                    "git",
                    str(self._folder / "store"),
                    branch,
                    str(point),
                    str(lease_end),
                ],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        served = Served(point, process, lease_end)
        self._served.append(served)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", log.read_text()
        wait_usable(point, SECONDS)
        return served

    def commit(self, branch: str) -> None:
        """Commit what changed on a branch."""
        self.engine.commit(branch, Note("work", Provenance("agent"), 1))

    def close(self) -> None:
        """Take down every mount and the store. Fails when a server logged anything."""
        for served in self._served:
            served.close()
        self.engine.close()
        logs = {log.name: log.read_text() for log in self._folder.glob("log*")}
        assert not any(logs.values()), logs

    def _ensure(self, branch: str) -> None:
        try:
            self.engine.branch(branch)
        except NotFound:
            self.engine.create_branch(branch, None, 1)


def becomes(condition: Callable[[], bool]) -> bool:
    """Tell whether a condition comes to hold."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True

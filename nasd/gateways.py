"""Gateway processes: the HTTP family's workers, started, watched, started again when they die.

1. The daemon binds the port once and every worker inherits it: while one restarts, connections wait in the queue of the socket, and
   the other workers take them.
2. Each worker opens the state itself. It holds nothing that another could not continue with.
3. A worker ends when the daemon does, however that ended: its standard input closes. One that a killed daemon left behind is ended by
   the next before it binds the port.
"""

from __future__ import annotations

import json
import logging
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from interfaces.faults import Fault
from nasd.config import Settings
from nasd.processes import Process, Started, start_process

START_SECONDS = 60.0
LONGEST_PAUSE = 10.0
MODULE = "nasd.gateway_process"
log = logging.getLogger("nasd.gateways")


class Gateways:
    """The workers of one listening socket."""

    def __init__(self, folder: Path, log_file: Path, settings: Settings) -> None:
        """Keep track in `folder` of as many workers as the settings want; they log to `log_file`."""
        self._folder = folder
        self._log_file = log_file
        self._spec = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(settings).items()}
        self._count = settings.workers
        self._closing = threading.Event()
        self._started: dict[int, Started] = {}
        self._watchers: list[threading.Thread] = []

    def end_former(self) -> None:
        """End the workers of a daemon that was killed, so that the port is free."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self._folder.glob("*.json"):
            process = Process(**json.loads(path.read_text(encoding="utf-8")))
            process.signal(signal.SIGKILL)
            process.wait_gone(5.0)
            path.unlink(missing_ok=True)

    def start(self, listening: socket.socket) -> None:
        """Start the workers on a listening socket and return when all serve. Raises the fault of one that does not."""
        self._listening = listening
        with ThreadPoolExecutor(self._count, "start-gateway") as together:  # each spends seconds on reading its modules
            list(together.map(self._start, range(self._count)))
        for number in range(self._count):
            watcher = threading.Thread(target=self._keep_alive, args=(number,), name=f"watch-gateway-{number}", daemon=True)
            watcher.start()
            self._watchers.append(watcher)

    def pids(self) -> list[int]:
        """Return the process numbers of the workers that live."""
        return [started.process.pid for _, started in sorted(self._started.items()) if started.process.is_alive()]

    def drain(self, seconds: float) -> None:
        """Have every worker finish what is under way and end, at most about `seconds`."""
        self._closing.set()
        for started in self._started.values():
            started.process.signal(signal.SIGTERM)
        for started in self._started.values():
            if not started.process.wait_gone(seconds):
                log.warning("gateway process %d did not end in time and is killed", started.process.pid)
                started.process.signal(signal.SIGKILL)
        for watcher in self._watchers:
            watcher.join()
        for number in self._started:
            self._path(number).unlink(missing_ok=True)

    def _start(self, number: int) -> None:
        descriptor = self._listening.fileno()
        spec = {"settings": self._spec, "descriptor": descriptor}
        started = start_process(MODULE, spec, self._log_file, seconds=START_SECONDS, descriptors=(descriptor,), hold=True)
        self._path(number).write_text(json.dumps(asdict(started.process)), encoding="utf-8")
        former, self._started[number] = self._started.get(number), started
        if former is not None and former.stdin is not None:
            former.stdin.close()

    def _keep_alive(self, number: int) -> None:
        pause = 0.1
        while not self._closing.is_set():
            while self._started[number].process.is_alive():
                if self._closing.wait(0.1):
                    return
            log.warning("gateway process %d ended; starting it again", self._started[number].process.pid)
            try:
                self._start(number)
                pause = 0.1
            except Fault as fault:
                log.error("cannot start a gateway process again: %s", fault.message)
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"

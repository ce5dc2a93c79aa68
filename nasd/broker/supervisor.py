"""The daemon's half of the broker: the process is started when it is first needed, and again when it died.

1. What was asked and not answered is not asked again: it may have been done. The next question starts the process anew.
2. The process gets the variables that the daemon shed (`nasd.broker.environment`) by inheriting their file; the daemon never reads it.
"""

from __future__ import annotations

import threading
from pathlib import Path

from interfaces.port import Document
from nasd.link import LinkClient
from nasd.processes import Started, start_process

MODULE = "nasd.broker.process"
START_SECONDS = 30.0
STOP_SECONDS = 5.0


class Broker:
    """The broker as the daemon asks it. Any thread may call."""

    def __init__(self, socket: Path, log_file: Path, variables: int | None) -> None:
        """Ask at `socket`; the process logs to `log_file` and inherits the descriptor `variables`."""
        self._socket = socket
        self._log_file = log_file
        self._variables = variables
        self._client = LinkClient(socket)
        self._started: Started | None = None
        self._lock = threading.Lock()

    def ask(self, question: Document) -> Document:
        """Return what the broker answers. Raises its `Fault`, and `Kind.UNAVAILABLE` when it died over it."""
        self._ensure()
        return self._client.ask(question)

    @property
    def pid(self) -> int:
        """Return the process number, 0 when none was needed yet."""
        return self._started.process.pid if self._started else 0

    def close(self) -> None:
        """End the process: what it is at is finished by nobody. Repeats do nothing."""
        with self._lock:
            started, self._started = self._started, None
            if started is None:
                return
            self._client.close()
            assert started.stdin is not None
            started.stdin.close()
            started.process.wait_gone(STOP_SECONDS)

    def _ensure(self) -> None:
        with self._lock:
            if self._started is not None and self._started.process.is_alive():
                return
            if self._started is not None and self._started.stdin is not None:
                self._started.stdin.close()
            self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptors = () if self._variables is None else (self._variables,)
            spec = {"socket": str(self._socket), "variables": self._variables}
            self._started = start_process(MODULE, spec, self._log_file, seconds=START_SECONDS, descriptors=descriptors, hold=True)

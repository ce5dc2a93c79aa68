"""Child processes of the daemon: told what to do on standard input, and reporting one line of JSON when they are ready.

A process is known by its number and its birth, so that a later one with the same number is never taken for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.faults import flatten, revive

_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Process:
    """A child process, of this daemon or of the one before it."""

    pid: int = 0
    born: int = 0

    def is_alive(self) -> bool:
        """Tell whether this very process still runs."""
        return self.pid > 0 and birth_of(self.pid) == self.born != 0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that is gone gets none."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait_gone(self, seconds: float) -> bool:
        """Wait until the process is gone, at most `seconds`, and tell whether it is."""
        deadline = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


@dataclass(frozen=True, slots=True)
class Started:
    """A process that is ready, and what it said; `stdin` is open when it was asked to stay so."""

    process: Process
    report: Document
    stdin: IO[bytes] | None


def start_process(
    module: str, spec: Mapping[str, Any], log: Path, *, seconds: float, descriptors: Sequence[int] = (), hold: bool = False
) -> Started:
    """Start ``python -m module``, give it `spec` with the descriptor to ``report`` to, and return when it is ready.

    With `hold` its standard input stays open for as long as this process lives or until the caller closes it. Raises the fault that the
    process reports, and `Kind.UNAVAILABLE` when it ended or said nothing within `seconds`.
    """
    reader, writer = os.pipe()
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with log.open("ab") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(writer, *descriptors),
                start_new_session=True,
                env=_ENVIRONMENT,
            )
        os.close(writer)
        assert child.stdin is not None
        child.stdin.write(json.dumps({**spec, "report": writer}).encode() + b"\n")
        child.stdin.flush()
        if not hold:
            child.stdin.close()
        report = _read_report(reader, seconds)
    finally:
        os.close(reader)
    threading.Thread(target=child.wait, name="reap", daemon=True).start()
    process = Process(child.pid, birth_of(child.pid))
    if not report.get("ready"):
        process.signal(signal.SIGKILL)
        child.stdin.close()
        raise _failure(report, module, log)
    return Started(process, report, child.stdin if hold else None)


def birth_of(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 when there is none (proc(5), field 22)."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return 0 if fields[0] == "Z" else int(fields[19])
    return 0


def report_to(descriptor: int, message: Document) -> None:
    """Report to the daemon that started this process: ``{"ready": true}``, or the fault that keeps it from being ready."""
    os.write(descriptor, json.dumps(message).encode() + b"\n")


def describe_failure(fault: Fault) -> Document:
    """Return a fault as a process reports it."""
    return {"fault": flatten(fault)}


def _read_report(reader: int, seconds: float) -> Document:
    """Return the line a process reports; an empty mapping when it ended or said nothing in time."""
    collected = b""
    deadline = time.monotonic() + seconds
    while not collected.endswith(b"\n"):
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(reader, 1 << 16) if ready else b""
        if not part:
            return {}
        collected += part
    report: Document = json.loads(collected)
    return report


def _failure(report: Document, module: str, log: Path) -> Fault:
    if fault := report.get("fault"):
        return revive(fault)
    return Fault(
        Kind.UNAVAILABLE, f"the process {module} ended before it was ready", hint=f"see {log.name} in the data directory's log folder"
    )

"""``nas stop``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from interfaces.faults import Fault, Kind
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb

_PERIOD = 0.05


@verb
@click.option("--timeout", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS", help="How long to wait.")
def command(session: Session, timeout: float) -> None:
    """Drain the daemon and wait until it ended."""
    pid = int(session.client.get("/v1/status")["pid"])
    session.client.post("/v1/stop")
    with patience("Waiting for the daemon to end"):
        deadline = time.monotonic() + timeout
        while _is_alive(pid):
            if time.monotonic() > deadline:
                raise Fault(
                    Kind.UNAVAILABLE, f"the daemon (process {pid}) is still draining", hint="wait longer with --timeout, or look at its log"
                )
            time.sleep(_PERIOD)
    session.show({"stopped": True, "pid": pid}, lambda: print("stopped"))


def _is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that ended and waits to be reaped does not (proc(5), field 3 of ``stat``)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"

"""Which run a verb is about when nobody names one.

1. The argument, else ``NAS_RUN``, else the branch that is mounted where the command runs, else the run of the lease it acts with.
2. A guess is never made: when none of these says, the verb asks for a name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import click

from nasd.cli.session import Session

_SOURCE = "agent-nas:"


def run_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ``run``; read it with `find_run`."""
    return click.argument("run", metavar="[RUN|BRANCH]", required=False, envvar="NAS_RUN")(function)


def find_run(session: Session, run: str | None) -> str:
    """Return the run or branch a verb is about. Raises `click.UsageError` when nothing says which."""
    found = (
        run or branch_at(PurePath(Path.cwd()), Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")) or _own_run(session)
    )
    if found is None:
        raise click.UsageError("name a run: an argument, NAS_RUN, a directory inside its mount, or its lease says which")
    return found


def own_lease(session: Session) -> str:
    """Return the lease a verb acts with. Raises `click.UsageError` when it acts with a token."""
    if session.acts_with_lease:
        from nasd.narrowing import lease_of

        return lease_of(session.secret or "")
    raise click.UsageError("name a lease: `nas lease list` shows them")


def branch_at(place: PurePath, mounts: str) -> str | None:
    """Return the branch whose mount holds `place`, the innermost one, by the lines of ``/proc/mounts``. Pure."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        source, point, *_ = line.split(" ")
        point = point.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        if source.startswith(_SOURCE) and place.is_relative_to(point) and (best is None or len(point) > best[0]):
            best = (len(point), source.removeprefix(_SOURCE))
    return best[1] if best else None


def _own_run(session: Session) -> str | None:
    if not session.acts_with_lease:
        return None
    return next((str(run["run"]) for run in session.client.items("/v1/runs")), None)

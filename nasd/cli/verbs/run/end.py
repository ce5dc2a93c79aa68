"""``nas run end``."""

from __future__ import annotations

from nasd.cli.here import find_run, run_argument
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@run_argument
def command(session: Session, run: str | None) -> None:
    """End a run.

    What is left is committed, its mounts go, its lease stops counting, its branch stays.
    """
    document = session.client.post(place("/v1/runs/{run}/end", run=find_run(session, run)))
    session.show_fields(document, "run", "state", "commit", "left_out")

"""What a person at a terminal sees: cards before answers, drawn tables, colours. The terminal is a real one (pty)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.nasd.cli.conftest import Desk, page
from tests.nasd.cli.test_verbs import CARD, GATE, RUN

ROOT = Path(__file__).parents[3]


def at_terminal(desk: Desk, arguments: Sequence[str], typed: bytes = b"") -> tuple[int, str]:
    """Run ``nas`` in a process of its own on a terminal, type, and return its exit code and everything it showed."""
    environment = {
        "NAS_HOME": str(desk.home),
        "XDG_CONFIG_HOME": str(desk.home),
        "PATH": os.environ["PATH"],
        "TERM": "xterm",
        "COLUMNS": "100",
    }
    terminal, side = os.openpty()
    words = [sys.executable, "-m", "nasd.cli.main", *arguments]
    with subprocess.Popen(words, env=environment, stdin=side, stdout=side, stderr=side, cwd=ROOT, start_new_session=True) as child:
        os.close(side)
        os.write(terminal, typed)
        shown = _read_all(terminal)
        os.close(terminal)
    return child.returncode, shown.decode().replace("\r\n", "\n")


def _read_all(terminal: int) -> bytes:
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:
        # A terminal whose last process ended reads as an I/O error on Linux.
        return shown
    return shown


def test_a_person_sees_the_card_and_answers_for_exactly_it(desk: Desk) -> None:
    desk.counter.answers |= {
        "gate.show": {**GATE, "card": CARD},
        "gate.approve": {**GATE, "state": "approved", "result": {"decision": "merged"}},
    }
    code, shown = at_terminal(desk, ["gate", "approve", "gate-1"], b"y\n")
    assert code == 0
    assert shown.index("merge builder/run-1 into main") < shown.index("approve this?") < shown.index("approved")
    assert desk.asked()[-1] == ("gate.approve", {"gate": "gate-1", "digest": "sha256:abc"})


def test_a_person_who_says_no_answers_nothing(desk: Desk) -> None:
    desk.counter.answers["gate.show"] = {**GATE, "card": CARD}
    for typed in (b"n\n", b"\n"):
        code, _ = at_terminal(desk, ["gate", "approve", "gate-1"], typed)
        assert code == 130
    assert {operation for operation, _ in desk.asked()} == {"gate.show"}


def test_a_table_is_drawn_to_the_terminal_and_obeys_no_marks(desk: Desk) -> None:
    run = {name: RUN[name] for name in ("run", "role", "branch", "lease")} | {"state": "active", "created": None, "ended": None}
    desk.counter.answers["run.list"] = page({**run, "purpose": "[red]x[/red] \x1b[2J" + "long " * 30})
    code, shown = at_terminal(desk, ["run", "list"])
    assert code == 0
    assert "PURPOSE" in shown
    assert "[red]" in shown
    assert "\x1b[2J" not in shown
    assert max(map(len, shown.splitlines()[1:])) <= 100


def test_a_diff_has_colours_on_a_terminal(desk: Desk) -> None:
    desk.counter.answers["history.diff"] = page({"kind": "modified", "path": "a", "origin": None, "patch": "@@ -1 +1 @@\n-x\n+y\n"})
    _, shown = at_terminal(desk, ["diff", "run-1"])
    assert "\x1b[31m-x\x1b[m\n\x1b[32m+y\x1b[m" in shown

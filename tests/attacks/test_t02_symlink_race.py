"""T2: a name is one thing when it is checked and another when it is opened. CVE-2025-53109, CVE-2024-32021, CVE-2026-39861."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.attacks.stand import LOOT, Stand
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.model import Refused
from tests.e2e.conftest import needs_fuse

SECONDS = 3.0


def swap(place: Path, stopping: threading.Event) -> None:
    """Make `work/turn` a directory, then a way into what the lease does not reach, and again."""
    turn, good, bad = place / "work" / "turn", place / "work" / "good", place / "work" / "bad"
    good.mkdir()
    (good / "plan.txt").write_bytes(b"harmless")
    bad.symlink_to("../secret")
    while not stopping.is_set():
        for each in (good, bad):
            with suppress(OSError):
                each.rename(turn)
                turn.rename(each)


@needs_fuse
@pytest.mark.parametrize("target", ["../secret", "/etc"])
def test_no_swap_between_check_and_open_reaches_what_the_lease_does_not(stand: Stand, target: str) -> None:
    held = stand.start(paths=["work/**"])
    with stand.mounted(held) as place, closing(HTTP.connect(stand, held)) as web:
        (place / "work" / "straight").symlink_to(target)
        stopping = threading.Event()
        swapper = threading.Thread(target=swap, args=(place, stopping))
        swapper.start()
        try:
            deadline, tried = time.monotonic() + SECONDS, 0
            while time.monotonic() < deadline:
                tried += 1
                with suppress(OSError):
                    assert LOOT not in (place / "work" / "turn" / "plan.txt").read_bytes()
                with suppress(Refused):
                    assert LOOT not in web.read("work/turn/plan.txt")
                with suppress(Refused):
                    assert b"root:" not in web.read("work/straight/passwd")
            assert tried > 20
        finally:
            stopping.set()
            swapper.join()
        with pytest.raises(OSError):
            os.listdir(place / "secret")
    with closing(HTTP.connect(stand, held)) as web:
        for path in ("secret/plan.txt", "planted.txt"):  # what is hidden does not exist; what is seen and not given is denied
            with pytest.raises(Refused):
                web.write(path, b"x")
    assert [denied["path"] for denied in stand.denials(held)] == ["planted.txt"]

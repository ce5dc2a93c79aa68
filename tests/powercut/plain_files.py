"""The smallest scenarios: a file that grows, with and without a sync before each acknowledgement.

They prove the machine, not the product.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.powercut.machine import Acknowledge, Scenario

_LINES = 60


def _prepare(root: Path) -> None:
    (root / "file").write_bytes(b"")


def _work_with(sync: Callable[[int], None]) -> Callable[[Path, Acknowledge], None]:
    def work(root: Path, acknowledge: Acknowledge) -> None:
        descriptor = os.open(root / "file", os.O_WRONLY | os.O_APPEND)
        for line in range(_LINES):
            os.write(descriptor, b"%05d\n" % line * 500)
            sync(descriptor)
            acknowledge(str(line))
        os.close(descriptor)
        os.sync()

    return work


def _check(root: Path, acknowledged: Sequence[str]) -> list[str]:
    content = (root / "file").read_bytes()
    return [f"line {line} is lost" for line in acknowledged if content.count(b"%05d\n" % int(line)) != 500]


SYNCED = Scenario(_prepare, _work_with(os.fsync), _check)
CARELESS = Scenario(_prepare, _work_with(lambda _descriptor: None), _check)

"""Doors as arguments of tests; a mount is skipped, saying why, where this machine has none."""

from __future__ import annotations

import pytest

from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.mount import MOUNT
from tests.e2e.conftest import needs_fuse


def each_of(*doors: Door) -> list[object]:
    """Return doors as the values of a test's argument."""
    return [pytest.param(door, id=door.name, marks=[needs_fuse] if door is MOUNT else []) for door in doors]

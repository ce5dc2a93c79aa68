"""Power cuts run where the machine can play them, and say why where it cannot."""

from __future__ import annotations

import pytest

from tests.powercut.machine import why_not_here


@pytest.fixture(autouse=True)
def _able() -> None:
    why = why_not_here()
    if why is not None:
        pytest.skip(why)

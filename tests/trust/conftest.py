from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trust.samples import open_trust
from trust import Trust


@pytest.fixture
def trust(tmp_path: Path) -> Iterator[Trust]:
    opened = open_trust(tmp_path / "trust")
    yield opened
    opened.close()

"""One served appliance for the whole book; each attack works in runs of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.stand import Stand, open_stand


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with open_stand(tmp_path_factory.mktemp("attacks")) as opened:
        yield opened

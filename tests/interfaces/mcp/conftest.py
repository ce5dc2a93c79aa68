from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house_of_doors import HouseOfDoors, Started, open_house
from tests.interfaces.mcp.rooms import Desk


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HouseOfDoors]:
    folder: Path = tmp_path_factory.mktemp("house")
    with open_house(folder) as opened:
        yield opened


@pytest.fixture
def run(house: HouseOfDoors) -> Started:
    return house.start_run()


@pytest.fixture
def desk(house: HouseOfDoors, run: Started) -> Desk:
    return Desk(house, run.secret)

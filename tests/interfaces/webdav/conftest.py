"""One served appliance for all tests of the door; each test works in a run of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interfaces.webdav.dav import Dav, DavHouse, dav_house
from trust.policy import default_policy

PEOPLE_EDIT = """
  - id: people-edit
    who:
      kinds: [human]
    actions: [write, delete]
    paths: ["**"]
"""


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavHouse]:
    """Return an appliance whose WebDAV door is served."""
    policy = default_policy().replace("\ngrants:\n", f"\ngrants:\n{PEOPLE_EDIT}", 1)
    with dav_house(tmp_path_factory.mktemp("dav"), policy) as served:
        yield served


@pytest.fixture
def dav(door: DavHouse) -> Dav:
    """Return a client in a fresh branch."""
    return door.start()[1]

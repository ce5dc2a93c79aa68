"""Real mounts for the tests: one that a module shares, and ones of its own for a test that ends them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import open_store
from store.service import list_engines
from tests.interfaces.fuse.mounting import Served, Shop


def reason_against_mounts() -> str | None:
    """Return why this machine cannot mount, or None."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no usable /dev/fuse"
    if os.getuid() != 0 and shutil.which("fusermount3") is None:
        return "not root and no fusermount3"
    return list_engines().get("git", "no git engine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a mount, saying why, where none can be made."""
    reason = reason_against_mounts()
    if reason is not None:
        for item in items:
            if "fuse" in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A store with its owner, for mounts of its branches."""
    folder = tmp_path_factory.mktemp("shop")
    engine = open_store(folder / "store", "git")
    shop = Shop(engine, folder)
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def shared(shop: Shop) -> Served:
    """A mount that the tests of a module share."""
    return shop.serve("shared")


@pytest.fixture
def here(shared: Served, request: pytest.FixtureRequest) -> Path:
    """A fresh directory on the shared mount."""
    place = shared.point / request.node.name.replace("/", "_")[:200]
    place.mkdir()
    return place

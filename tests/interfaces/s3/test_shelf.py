"""The versions of a key: entries that one writer at a time changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from interfaces.s3.call import Door
from interfaces.s3.faults import S3Fault
from interfaces.s3.shelf import HOLD_SECONDS, NULL, Shelf, Shelves, Version, version_of
from interfaces.s3.sidecars import Sidecar
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.interfaces.s3.conftest import Shop

BRANCHES = count()


@pytest.fixture
def now() -> list[float]:
    return [1_800_000_000.0]


@pytest.fixture
def shelves(shop: Shop, now: list[float]) -> Iterator[Shelves]:
    """Return the shelves of a branch nobody has, whose clock the test moves; waiting moves it too."""
    tokens = count()

    def nap(seconds: float) -> None:
        now[0] += seconds
        time.sleep(0)

    pool = Pool("shelf", 1, 1)
    control: Any = shop.house.control
    door = Door(control, control.notes("s3"), pool, Limits(), lambda: now[0], lambda size: next(tokens).to_bytes(size, "big"), nap)
    yield Shelves(door, f"test/{next(BRANCHES)}")
    pool.close()


def test_the_newest_comes_first_and_null_replaces_null() -> None:
    shelf = Shelf(b"k")
    for id in ("a", NULL, "b", NULL):
        shelf.put(Version(id, 1))
    assert [version.id for version in shelf.versions] == [NULL, "b", "a"]


def test_a_file_is_the_version_its_sidecar_names_while_there_is_one() -> None:
    shelf = Shelf(b"k", [Version("a", 1)])
    assert version_of(shelf, Sidecar("e", version="a")) == "a"
    assert version_of(shelf, Sidecar("e", version="gone")) == NULL
    assert version_of(shelf, Sidecar("e")) == NULL


def test_what_a_holder_changed_is_kept(shelves: Shelves) -> None:
    version = Version("a", 5, Sidecar("etag", {"content-type": "x"}, {"m": "1"}, version="a"), "commit", 7, (("t", "1"),))
    with shelves.held("é/k".encode()) as shelf:
        shelf.put(version)
    assert shelves.find("é/k".encode()).versions == [version]
    assert shelves.keys() == ["é/k".encode()]
    assert shelves.keys(b"x") == []
    with shelves.held("é/k".encode()) as shelf:
        shelf.drop("a")
    assert shelves.keys() == []


def test_what_fails_inside_keeps_what_was_changed_before_and_lets_go(shelves: Shelves) -> None:
    with pytest.raises(RuntimeError), shelves.held(b"k") as shelf:
        shelf.put(Version("a", 1))
        raise RuntimeError
    with shelves.held(b"k") as shelf:
        assert [version.id for version in shelf.versions] == ["a"]


def test_two_holders_are_one_after_the_other(shelves: Shelves) -> None:
    def add(number: int) -> None:
        with shelves.held(b"k") as shelf:
            shelf.put(Version(str(number), number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert sorted(int(version.id) for version in shelves.find(b"k").versions) == list(range(12))


def test_a_hold_keeps_others_waiting_and_ends_when_its_holder_died(shelves: Shelves, now: list[float]) -> None:
    with shelves.held(b"k") as shelf:
        shelf.put(Version("a", 1))
        with pytest.raises(S3Fault) as caught, shelves.held(b"k"):
            pass
    assert caught.value.code == "SlowDown"
    holding = shelves.held(b"k")
    holding.__enter__()
    now[0] += HOLD_SECONDS
    with shelves.held(b"k") as shelf:
        shelf.put(Version("b", 2))
    with pytest.raises(S3Fault) as caught:
        holding.__exit__(None, None, None)
    assert caught.value.code == "OperationAborted"
    assert [version.id for version in shelves.find(b"k").versions] == ["b", "a"]

"""Keys in a tree come in the order, and under the prefixes, that a flat list of the same keys has."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.port import Workspace
from interfaces.s3.tree import find_object, make_place, prune
from interfaces.s3.walking import Wanted, walk_keys
from tests.interfaces.s3.conftest import Shop

SEGMENT = st.sampled_from(["", "a", "b", "a-", "a.", "ab", "A", ".", "..", "s3~empty", "é", "z" * 260, "s3~file~a"])
KEY = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join).map(str.encode).filter(bool)
KEYS = st.sets(KEY, max_size=12)


@pytest.fixture
def workspaces(shop: Shop, maker: Any) -> Iterator[Any]:
    """Return what opens a workspace on an empty bucket."""
    caller = shop.house.control.authenticate(shop.house.issue_token("maker", "service"))
    opened = []

    def start() -> Workspace:
        opened.append(shop.house.control.workspace(caller, shop.bucket(maker)))
        return opened[-1]

    yield start
    for workspace in opened:
        workspace.close()


def put(workspace: Workspace, key: bytes, content: bytes = b"") -> None:
    place = make_place(workspace, key)
    workspace.publish(place.parent, place.name, 0o644, io.BytesIO(content))


def flat(keys: set[bytes], wanted: Wanted) -> list[bytes]:
    """Return what a flat list of keys answers."""
    found: list[bytes] = []
    for key in sorted(keys):
        if not key.startswith(wanted.prefix) or key <= wanted.after:
            continue
        end = key.find(wanted.delimiter, len(wanted.prefix)) if wanted.delimiter else -1
        told = key[: end + len(wanted.delimiter)] if end >= 0 else key
        if told != wanted.after and told not in found:
            found.append(told)
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    keys=KEYS,
    asks=st.lists(st.tuples(KEY | st.just(b""), KEY | st.just(b""), st.sampled_from([b"", b"/", b"-", b"a"])), min_size=4, max_size=4),
)
def test_a_tree_lists_as_a_flat_list_of_its_keys(workspaces: Any, keys: set[bytes], asks: list[tuple[bytes, bytes, bytes]]) -> None:
    workspace = workspaces()
    for key in keys:
        put(workspace, key, key)
    for prefix, after, delimiter in [(b"", b"", b""), (b"", b"", b"/"), *asks]:
        wanted = Wanted(prefix, after, delimiter)
        assert [found.key for found in walk_keys(workspace, wanted)] == flat(keys, wanted)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(keys=st.lists(KEY, unique=True, max_size=8))
def test_an_object_never_replaces_another_and_all_leave_nothing_behind(workspaces: Any, keys: list[bytes]) -> None:
    workspace = workspaces()
    for key in keys:
        put(workspace, key, key)
    for key in keys:
        standing = find_object(workspace, key).standing
        assert standing is not None
        assert standing.size == len(key)
    for key in keys:
        place = find_object(workspace, key)
        workspace.unlink(place.parent, place.name)
        prune(workspace, place.parent)
    assert workspace.list(1) == []


def test_a_directory_made_by_hand_stays_and_is_a_key_while_it_is_empty(workspaces: Any) -> None:
    workspace = workspaces()
    workspace.mkdir(1, b"made", 0o755)
    assert [found.key for found in walk_keys(workspace, Wanted())] == [b"made/"]
    put(workspace, b"made/x")
    assert [found.key for found in walk_keys(workspace, Wanted())] == [b"made/x"]
    place = find_object(workspace, b"made/x")
    workspace.unlink(place.parent, place.name)
    prune(workspace, place.parent)
    assert [found.key for found in walk_keys(workspace, Wanted())] == [b"made/"]

"""Nodes keep their identity, rows say what they were told, caches keep their bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.engines.git.caches import RecentMap
from store.engines.git.nodes import NOTHING, fresh_row, inherited_row, stable_id
from store.engines.git.objects import GITLINK
from store.engines.git.xattrs import decode_xattrs, encode_xattrs
from store.model import ROOT, EntryKind, NodeId
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry

_PARENTS = st.integers(1, (1 << 63) - 1).map(NodeId)


@given(_PARENTS, st.binary(min_size=1, max_size=255), st.integers(0, 3))
def test_an_untouched_node_has_an_identity_of_its_own(parent: NodeId, name: bytes, salt: int) -> None:
    node = stable_id(parent, name, salt)
    assert node == stable_id(parent, name, salt)
    assert node not in (NOTHING, ROOT)
    assert 0 < node < 1 << 63
    assert node != stable_id(parent, name, salt + 1)
    assert node != stable_id(parent, name + b"x", salt)


@given(st.dictionaries(st.binary(max_size=40), st.binary(max_size=200), max_size=6))
def test_attributes_come_back_as_they_were(xattrs: dict[bytes, bytes]) -> None:
    assert decode_xattrs(encode_xattrs(xattrs)) == xattrs


def test_no_attributes_take_no_room() -> None:
    assert encode_xattrs({}) is None
    assert decode_xattrs(None) == {}


def test_a_node_is_to_its_tree_what_the_tree_says() -> None:
    for mode in (FILE, EXECUTABLE, SYMLINK, DIRECTORY):
        assert inherited_row(NodeId(5), TreeEntry(mode, b"x"), 7).git_mode == mode


def test_a_submodule_shows_as_an_empty_directory() -> None:
    row = inherited_row(NodeId(5), TreeEntry(GITLINK, b"x"), 7)
    assert row.is_directory
    assert row.lower is None


def test_pipes_and_sockets_are_in_no_tree() -> None:
    assert fresh_row(NodeId(5), EntryKind.FIFO, 0o600, 1).git_mode is None
    assert fresh_row(NodeId(5), EntryKind.SOCKET, 0o600, 1).git_mode is None


@given(st.lists(st.integers(0, 30), max_size=200), st.integers(2, 20))
def test_a_recent_map_is_bounded_and_never_wrong(keys: list[int], limit: int) -> None:
    kept: RecentMap[int, str] = RecentMap(limit)
    for key in keys:
        assert kept.get(key) in (None, str(key))
        kept.put(key, str(key))
        assert kept.get(key) == str(key)
        assert len(kept) <= limit + 2


def test_a_recent_map_keeps_what_is_used() -> None:
    kept: RecentMap[int, str] = RecentMap(10)
    kept.put(0, "kept")
    for key in range(1, 100):
        kept.put(key, "passing")
        assert kept.get(0) == "kept"
    kept.drop(0)
    assert kept.get(0) is None

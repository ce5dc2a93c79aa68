"""Rules about set-id bits, owners of fresh nodes and long names."""

from __future__ import annotations

import stat
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.fuse.attributes import Caller, birth_change, check_name, complete_change, drop_set_id, has_set_id
from interfaces.port import AttributeChange

ROOT, USER = Caller(0, 0), Caller(1000, 1000)


@dataclass(frozen=True)
class Node:
    """Attributes as a workspace gives them."""

    st_mode: int
    node: int = 2
    size: int = 0
    links: int = 1
    mtime_ns: int = 0
    ctime_ns: int = 0
    atime_ns: int = 0
    uid: int | None = None
    gid: int | None = None


@given(st.integers(0, 0o7777))
def test_dropping_leaves_no_set_user_id_and_all_permissions(mode: int) -> None:
    left = drop_set_id(stat.S_IFREG | mode)
    assert not left & stat.S_ISUID
    assert left & 0o1777 == mode & 0o1777
    assert bool(left & stat.S_ISGID) == bool(mode & stat.S_ISGID and not mode & stat.S_IXGRP)


def test_only_files_lose_set_id_bits() -> None:
    assert has_set_id(stat.S_IFREG | 0o4755)
    assert not has_set_id(stat.S_IFREG | 0o2745 & ~0o010)
    assert not has_set_id(stat.S_IFDIR | 0o2755)


@pytest.mark.parametrize(
    ("change", "caller", "mode"),
    [
        (AttributeChange(uid=5), ROOT, 0o755),
        (AttributeChange(gid=5), USER, 0o755),
        (AttributeChange(size=0), USER, 0o755),
        (AttributeChange(size=0), ROOT, None),
        (AttributeChange(mode=0o4711, uid=5), ROOT, 0o4711),
        (AttributeChange(mtime_ns=1), USER, None),
    ],
)
def test_a_change_kills_set_id_bits_where_linux_does(change: AttributeChange, caller: Caller, mode: int | None) -> None:
    assert complete_change(Node(stat.S_IFREG | 0o4755), change, caller).mode == mode


def test_a_fresh_node_of_the_mounts_owner_needs_nothing() -> None:
    assert birth_change(Node(stat.S_IFREG | 0o644), USER, USER, None) is None


def test_a_fresh_node_belongs_to_its_maker_and_to_a_set_group_id_directorys_group() -> None:
    made = Node(stat.S_IFREG | 0o644)
    assert birth_change(made, Caller(7, 8), ROOT, None) == AttributeChange(uid=7, gid=8)
    assert birth_change(made, Caller(7, 8), ROOT, 9) == AttributeChange(uid=7, gid=9)
    assert birth_change(Node(stat.S_IFDIR | 0o755), ROOT, ROOT, 9) == AttributeChange(mode=0o2755, gid=9)


def test_names_up_to_255_bytes_pass() -> None:
    check_name(b"x" * 255)
    with pytest.raises(Fault) as caught:
        check_name(b"x" * 256)
    assert caught.value.kind is Kind.NAME_TOO_LONG

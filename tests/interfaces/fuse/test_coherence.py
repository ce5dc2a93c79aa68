"""What the kernel must be told, and what it need not be."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from typing import NamedTuple, cast

import pytest

from interfaces.faults import Fault, Kind
from interfaces.fuse.coherence import Coherence, Notice
from interfaces.fuse.growing import FILES_MAX, LOOKS_MAX, Growing
from interfaces.fuse.known import LARGE, Known
from interfaces.port import ROOT, Workspace
from tests.interfaces.fuse.test_attributes import Node


class Touch(NamedTuple):
    """A change as a workspace names it."""

    parent: int | None
    name: bytes | None
    node: int


class Changes:
    """The part of a workspace that tells of changes."""

    def __init__(self) -> None:
        self.log: list[Touch] = []
        self.forgotten = 0
        self.nodes = {node: Node(stat.S_IFREG | 0o644, node=node) for node in (2, 3)}

    def version(self) -> int:
        return len(self.log)

    def attributes(self, node: int) -> Node:
        if node not in self.nodes:
            raise Fault(Kind.STALE, "gone")
        return self.nodes[node]

    def touched(self, since: int) -> Sequence[Touch] | None:
        return None if since < self.forgotten else self.log[since:]


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def known() -> Known:
    known = Known(default_gid=0)
    for node in (2, 3):
        known.count(Node(stat.S_IFREG | 0o644, node=node))
    return known


@pytest.fixture
def coherence(changes: Changes, known: Known) -> Coherence:
    return Coherence(cast("Workspace", changes), known)


def test_nothing_changed_tells_nothing(coherence: Coherence) -> None:
    assert coherence.collect() == []


def test_ones_own_change_is_not_told(coherence: Coherence, changes: Changes) -> None:
    changes.log.append(Touch(ROOT, b"mine", 2))
    coherence.own()
    assert coherence.collect() == []
    assert not coherence.is_stale(2)


def test_a_call_that_changed_nothing_does_not_hide_somebody_elses_change(coherence: Coherence, changes: Changes) -> None:
    changes.log.append(Touch(None, None, 2))
    before = changes.version()
    coherence.settle(before, 3)
    assert coherence.collect() == [Notice(2)]
    before = changes.version()
    changes.log.append(Touch(None, None, 2))
    coherence.settle(before, 3)
    assert coherence.collect() == [Notice(2)]


def test_a_call_that_may_change_something_makes_its_change_known(coherence: Coherence, changes: Changes) -> None:
    before = changes.version()
    changes.log.append(Touch(None, None, 2))
    coherence.settle(before, 2)
    before = changes.version()
    changes.log.append(Touch(ROOT, b"moved", 2))
    coherence.settle(before, None)
    assert coherence.collect() == []


def test_a_change_elsewhere_drops_the_name_the_node_and_the_directorys_attributes(coherence: Coherence, changes: Changes) -> None:
    changes.log.append(Touch(ROOT, b"theirs", 2))
    assert coherence.collect() == [Notice(ROOT, b"theirs"), Notice(2), Notice(ROOT, pages=False)]
    assert coherence.collect() == []


def test_a_change_hidden_behind_ones_own_is_told(coherence: Coherence, changes: Changes) -> None:
    changes.log += [Touch(ROOT, b"theirs", 2), Touch(ROOT, b"mine", 3)]
    coherence.own()
    assert Notice(ROOT, b"theirs") in coherence.collect()


def test_a_changed_content_makes_the_next_open_distrust_the_cache_once(coherence: Coherence, changes: Changes) -> None:
    changes.log.append(Touch(None, None, 2))
    assert coherence.collect() == [Notice(2)]
    assert coherence.is_stale(2)
    assert not coherence.is_stale(2)
    assert not coherence.is_stale(3)


def test_a_file_that_grows_elsewhere_is_told_at_every_step(coherence: Coherence, changes: Changes) -> None:
    changes.log.append(Touch(None, None, 2))
    coherence.collect()
    assert coherence.look_at_growing() == []
    for size in (5, 9):
        changes.nodes[2] = Node(stat.S_IFREG | 0o644, node=2, size=size)
        assert coherence.look_at_growing() == [Notice(2)]
        assert coherence.is_stale(2)
        assert coherence.look_at_growing() == []


def test_a_file_is_left_once_it_rests_or_is_gone(changes: Changes) -> None:
    growing = Growing(cast("Workspace", changes))
    growing.note([2, 3])
    del changes.nodes[3]
    for _ in range(LOOKS_MAX + 2):
        assert growing.collect() == []
    changes.nodes[2] = Node(stat.S_IFREG | 0o644, node=2, size=5)
    changes.nodes[3] = Node(stat.S_IFREG | 0o644, node=3, size=5)
    assert growing.collect() == []


def test_only_the_latest_files_are_looked_at(changes: Changes) -> None:
    growing = Growing(cast("Workspace", changes))
    nodes = range(10, 10 + 2 * FILES_MAX)
    changes.nodes = {node: Node(stat.S_IFREG, node=node) for node in nodes}
    growing.note(nodes)
    changes.nodes = {node: Node(stat.S_IFREG, node=node, size=1) for node in nodes}
    assert growing.collect() == list(nodes[-FILES_MAX:])


def test_what_the_kernel_does_not_hold_is_not_told(coherence: Coherence, changes: Changes) -> None:
    changes.log += [Touch(77, b"below", 78), Touch(None, None, 79)]
    assert coherence.collect() == []


def test_when_everything_may_have_changed_all_goes_and_names_go_first(coherence: Coherence, changes: Changes) -> None:
    coherence.tell_root_name(b"told")
    changes.log += [Touch(None, None, 99)] * 3
    changes.forgotten = 3
    assert coherence.collect() == [Notice(ROOT, b"told"), Notice(ROOT), Notice(2), Notice(3)]
    assert coherence.is_stale(3)


def test_changes_are_counted_so_that_listings_know_their_age(coherence: Coherence, changes: Changes) -> None:
    before = coherence.mutations
    coherence.own()
    changes.log.append(Touch(None, None, 2))
    coherence.collect()
    assert coherence.mutations == before + 2


def test_a_node_is_held_until_all_its_references_are_given_back(known: Known) -> None:
    known.count(Node(stat.S_IFREG, node=2))
    known.forget([(2, 1)])
    assert 2 in known
    known.forget([(2, 1), (3, 1), (ROOT, 5), (404, 1)])
    assert known.nodes() == [ROOT]


def test_large_files_and_set_id_bits_are_noticed_and_forgotten(known: Known) -> None:
    known.note(Node(stat.S_IFREG | 0o4755, node=2, size=LARGE))
    assert (2 in known.large, 2 in known.set_id) == (True, True)
    known.note(Node(stat.S_IFREG | 0o755, node=2, size=LARGE - 1))
    assert (2 in known.large, 2 in known.set_id) == (False, False)
    known.note(Node(stat.S_IFREG | 0o4755, node=3, size=LARGE))
    known.forget([(3, 1)])
    assert (3 in known.large, 3 in known.set_id) == (False, False)


def test_entries_of_a_set_group_id_directory_inherit_its_group(known: Known) -> None:
    known.note(Node(stat.S_IFDIR | 0o2755, node=2, gid=42))
    known.note(Node(stat.S_IFDIR | 0o2755, node=3))
    assert [known.inherited_group(node) for node in (ROOT, 2, 3)] == [None, 42, 0]
    known.note(Node(stat.S_IFDIR | 0o755, node=2, gid=42))
    assert known.inherited_group(2) is None

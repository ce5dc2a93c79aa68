"""Walks over the graph of commits, compared with what brute force finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.engines.git.ancestry import Generation, find_merge_bases, is_ancestor, reach, walk

Graph = dict[bytes, Generation]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a graph whose commits are numbered after their parents, with clocks that may lie."""
    graph: Graph = {}
    for number in range(draw(st.integers(1, 14))):
        known = sorted(graph)
        parents = draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
        graph[b"%02d" % number] = Generation(tuple(parents), draw(st.integers(0, 5)))
    return graph


def ancestors(graph: Graph, start: bytes) -> set[bytes]:
    found = {start}
    for parent in graph[start].parents:
        found |= ancestors(graph, parent)
    return found


@given(graphs(), st.data())
def test_merge_bases_are_the_common_ancestors_below_no_other(graph: Graph, data: st.DataObject) -> None:
    one, other = (data.draw(st.sampled_from(sorted(graph))) for _ in range(2))
    common = ancestors(graph, one) & ancestors(graph, other)
    best = {each for each in common if not any(each != rival and each in ancestors(graph, rival) for rival in common)}
    found = find_merge_bases(graph.__getitem__, one, other)
    assert set(found) == best
    assert len(found) == len(best)
    assert [graph[each].when for each in found] == sorted((graph[each].when for each in found), reverse=True)


@given(graphs(), st.data())
def test_ancestry_is_what_can_be_reached(graph: Graph, data: st.DataObject) -> None:
    one, other = (data.draw(st.sampled_from(sorted(graph))) for _ in range(2))
    assert is_ancestor(graph.__getitem__, one, other) == (one in ancestors(graph, other))
    assert reach(graph.__getitem__, one) == ancestors(graph, one)


@given(graphs())
def test_a_walk_gives_every_commit_once_and_before_its_parents(graph: Graph) -> None:
    start = max(graph)
    order = list(walk(graph.__getitem__, start))
    assert sorted(order) == sorted(ancestors(graph, start))
    for place, oid in enumerate(order):
        assert all(parent in order[place + 1 :] for parent in graph[oid].parents)


def test_a_walk_gives_the_newest_first_where_nothing_else_decides() -> None:
    graph = {b"a": Generation((), 1), b"b": Generation((b"a",), 5), b"c": Generation((b"a",), 3), b"d": Generation((b"b", b"c"), 9)}
    assert list(walk(graph.__getitem__, b"d")) == [b"d", b"b", b"c", b"a"]

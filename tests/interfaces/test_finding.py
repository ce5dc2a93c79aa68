"""Searching a branch over a real appliance: what is found, what it costs, and that an error never looks like nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.finding import Bounds, Outcome, Query, search
from interfaces.matching import WINDOW, Needle, Pattern, cut_excerpt
from interfaces.port import Workspace
from tests.nasd.conftest import House, build_house
from trust.model import Action, BudgetKind


def still() -> float:
    return 0.0


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "reference")
    yield built
    built.appliance.close()


def fill(house: House, files: dict[str, bytes], **lease: object) -> Workspace:
    run, secret = house.start(**lease)
    house.write(run, files)
    return house.workspace(run, secret)


def lines(outcome: Outcome) -> list[tuple[bytes, int, str]]:
    return [(match.path, match.line, match.excerpt) for match in outcome.matches]


def paths(outcome: Outcome) -> list[bytes]:
    return [match.path for match in outcome.matches]


def follow(workspace: Workspace, query: Query, bounds: Bounds) -> tuple[list[tuple[bytes, int, str]], int]:
    """Return every match over all pages, and how many pages there were."""
    found: list[tuple[bytes, int, str]] = []
    cursor, pages = "", 0
    while True:
        outcome = search(workspace, query, bounds, still, cursor=cursor)
        found += lines(outcome)
        pages += 1
        assert pages < 1000, "a page must get further"
        if not outcome.truncated:
            return found, pages
        assert outcome.cursor != cursor
        cursor = outcome.cursor


def test_names_are_found_by_a_pattern_at_any_depth_or_anchored(house: House) -> None:
    workspace = fill(house, {"deep/er/c.py": b""})
    assert paths(search(workspace, Query(glob="*.py"), Bounds(), still)) == [b"deep/er/c.py", b"src/a.py", b"src/b.py"]
    assert paths(search(workspace, Query(glob="src/*"), Bounds(), still)) == [b"src/a.py", b"src/b.py"]
    assert paths(search(workspace, Query(glob="*", below=b"deep"), Bounds(), still)) == [b"deep/er", b"deep/er/c.py"]
    assert paths(search(workspace, Query(glob="deep/**/c.*"), Bounds(), still)) == [b"deep/er/c.py"]


def test_text_is_found_with_its_line_and_an_excerpt(house: House) -> None:
    workspace = fill(house, {"notes.txt": b"one\ntwo Needle here\r\nthree\nneedle"})
    assert lines(search(workspace, Query("Needle"), Bounds(), still)) == [(b"notes.txt", 2, "two Needle here")]
    folded = search(workspace, Query("nEEDLE", ignore_case=True), Bounds(), still)
    assert lines(folded) == [(b"notes.txt", 2, "two Needle here"), (b"notes.txt", 4, "needle")]


def test_a_single_file_can_be_searched(house: House) -> None:
    workspace = fill(house, {})
    assert lines(search(workspace, Query("b =", below=b"src/b.py"), Bounds(), still)) == [(b"src/b.py", 1, "b = 1")]
    with pytest.raises(Fault) as missing:
        search(workspace, Query("x", below=b"nowhere"), Bounds(), still)
    assert missing.value.kind is Kind.NOT_FOUND


def test_binary_files_are_skipped_and_counted(house: House) -> None:
    workspace = fill(house, {"image": b"\x89PNG\0needle", "text": b"needle\n"})
    outcome = search(workspace, Query("needle"), Bounds(), still)
    assert (paths(outcome), outcome.binary) == ([b"text"], 1)


def test_what_a_lease_cannot_see_is_not_found(house: House) -> None:
    workspace = fill(house, {}, paths=("src/**",))
    assert search(workspace, Query("plan"), Bounds(), still).matches == ()
    assert paths(search(workspace, Query(), Bounds(), still)) == [b"src", b"src/a.py", b"src/b.py"]
    assert search(workspace, Query("plan"), Bounds(), still).failed == 0


def test_a_file_that_may_not_be_read_is_reported_and_the_rest_is_searched(house: House) -> None:

    workspace = fill(house, {}, actions=frozenset({Action.LIST}))
    outcome = search(workspace, Query("a"), Bounds(failures=2), still)
    assert outcome.matches == ()
    assert (outcome.failed, outcome.files) == (6, 0)
    assert [failure.fault.kind for failure in outcome.failures] == [Kind.DENIED, Kind.DENIED]


def test_every_file_that_is_read_costs_a_read_and_a_spent_budget_gives_what_was_found(house: House) -> None:
    run, secret = house.start(budgets={BudgetKind.READS: 2}, paths=("src/**", "docs/**"))
    workspace = house.workspace(run, secret)
    outcome = search(workspace, Query("1"), Bounds(), still)
    assert (paths(outcome), outcome.stopped) == ([b"docs/one.md", b"src/a.py"], "budget-spent")
    with pytest.raises(Fault) as spent:
        search(workspace, Query("1"), Bounds(), still, cursor=outcome.cursor)
    assert spent.value.kind is Kind.BUDGET


def test_a_revoked_lease_ends_the_search_with_its_fault(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    house.trust.revoke_lease(run.lease, "enough", house.appliance.now())
    with pytest.raises(Fault) as ended:
        search(workspace, Query("1"), Bounds(), still)
    assert ended.value.kind is Kind.REVOKED


def test_a_lease_revoked_in_the_middle_ends_the_search_with_its_fault(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)

    def revoke() -> float:
        house.trust.revoke_lease(run.lease, "enough", house.appliance.now())
        return 0.0

    with pytest.raises(Fault) as ended:
        search(workspace, Query("1"), Bounds(), revoke)
    assert ended.value.kind is Kind.REVOKED


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (Bounds(names=1), "names"),
        (Bounds(files=1), "files"),
        (Bounds(bytes=1), "bytes"),
        (Bounds(seconds=0), "seconds"),
    ],
)
def test_each_bound_stops_with_its_name_and_the_pages_give_what_one_search_gives(house: House, bounds: Bounds, reason: str) -> None:
    files = {f"d{i % 3}/f{i}": b"x needle\n" * (i % 4) for i in range(12)}
    workspace = fill(house, files)
    whole, pages = follow(workspace, Query("needle"), Bounds())
    assert pages == 1
    assert search(workspace, Query("needle"), bounds, still).stopped == reason
    found, pages = follow(workspace, Query("needle"), bounds)
    assert pages > 1
    assert found == whole


def test_pages_of_matches_continue_in_the_middle_of_a_file(house: House) -> None:
    content = b"".join(b"needle %d\n" % number if number % 3 == 0 else b"-" * 900 + b"\n" for number in range(2000))
    workspace = fill(house, {"big": content, "small": b"needle\n"})
    assert len(content) > 3 * WINDOW
    whole, _ = follow(workspace, Query("needle", limit=1000), Bounds())
    found, pages = follow(workspace, Query("needle", limit=7), Bounds())
    assert found == whole
    assert [line for path, line, _ in whole if path == b"big"] == list(range(1, 2001, 3))
    assert pages == -(-len(whole) // 7)


def test_a_match_across_the_seam_of_a_very_long_line_is_found_once(house: House) -> None:
    workspace = fill(house, {"long": b"a" * (WINDOW - 3) + b"needle" + b"b" * WINDOW + b"\nneedle\n"})
    found = search(workspace, Query("needle"), Bounds(), still)
    assert [(match.path, match.line) for match in found.matches] == [(b"long", 1), (b"long", 2)]


def test_a_page_continues_although_its_directory_is_gone(house: House) -> None:
    run, secret = house.start()
    house.write(run, {"m/1": b"needle", "m/2": b"needle", "z": b"needle"})
    workspace = house.workspace(run, secret)
    first = search(workspace, Query("needle", limit=1), Bounds(), still)
    assert paths(first) == [b"m/1"]
    house.write(run, {"m/1": None, "m/2": None})
    assert paths(search(workspace, Query("needle", limit=5), Bounds(), still, cursor=first.cursor)) == [b"z"]


@pytest.mark.parametrize(
    "query", [Query("a\nb"), Query("x" * 1001), Query(glob=""), Query(glob="x" * 1001), Query(limit=0), Query(limit=9999)]
)
def test_a_query_that_means_nothing_is_refused(house: House, query: Query) -> None:
    with pytest.raises(Fault) as refused:
        search(fill(house, {}), query, Bounds(), still)
    assert refused.value.kind is Kind.INVALID


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_cursor_is_continued_or_refused(text: str) -> None:
    class Empty:
        def attributes(self, node: int) -> object:
            raise Fault(Kind.NOT_FOUND, "nothing is here")

    with pytest.raises(Fault) as told:
        search(Empty(), Query(), Bounds(), still, cursor=text)  # type: ignore[arg-type]
    assert told.value.kind in {Kind.INVALID, Kind.NOT_FOUND}


@given(st.lists(st.text("ab\n", max_size=6), max_size=8), st.text("ab", min_size=1, max_size=3), st.booleans())
def test_lines_are_those_that_contain_the_text(parts: list[str], text: str, ignore_case: bool) -> None:
    content = "\n".join(parts).encode()
    expected = [number for number, line in enumerate(content.split(b"\n")) if text.encode() in line]
    found = list(Needle(text, ignore_case=ignore_case).lines(content))
    assert [number for number, *_ in found] == expected
    assert all(text.encode() in content[start:end] for _, start, _, end in found)


@given(
    st.text(st.sampled_from("ab/*?[]!-"), min_size=1, max_size=20), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5)
)
def test_any_pattern_is_read_and_what_fits_was_reachable_at_every_step(glob: str, names: list[str]) -> None:
    pattern = Pattern(glob)
    states = pattern.start
    for name in names:
        states = pattern.step(states, name.encode())
    assert pattern.step(frozenset(), b"a") == frozenset()
    if pattern.fits(states):
        assert states


def test_a_hostile_pattern_costs_no_more_than_its_length() -> None:
    pattern = Pattern("/".join(["**"] * 200) + "/" + "*a" * 30 + "b")
    states = pattern.start
    for _ in range(100):
        states = pattern.step(states, b"a" * 200)
        assert len(states) <= 202
    assert not pattern.fits(states)


def test_an_excerpt_is_bounded_and_begins_with_a_whole_character() -> None:
    line = "é".encode() * 500 + b"needle" + b"\xff" * 500
    excerpt = cut_excerpt(line, 1000, 100)
    assert len(excerpt) == 100
    assert excerpt.startswith("é")
    assert "needle" in excerpt

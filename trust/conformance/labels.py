"""The ledger of labels: rows are replaced, found by path, content and directory, and joined for commits and runs."""

from __future__ import annotations

from trust.conformance.bench import Bench, Check, expect
from trust.labels import DEFAULT, WORST, Label, Origin, Sensitivity
from trust.model import Labelled, Mark

_EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
_SENSITIVE = Label(Origin.INTERNAL, Sensitivity.SENSITIVE)


def labels_of_bytes_are_kept(bench: Bench) -> None:
    """A row is of one path and one content; storing it again replaces it."""
    rows = bench.engine.labels
    expect(rows.empty() and rows.find(b"a", b"1") is None, "nothing is labelled at first")
    first, second = Labelled(b"d/\xff", b"1", _EXTERNAL), Labelled(b"e", b"1", _SENSITIVE, endorsed=True)
    with bench.engine.transaction():
        rows.put([first, second])
    expect(not rows.empty() and rows.find(b"d/\xff", b"1") == first, "a row comes back as it went in")
    expect(rows.find(b"d/\xff", b"2") is None and rows.find(b"d", b"1") is None, "other bytes and other paths have no row")
    expect(list(rows.of_content(b"1")) == [first, second], "rows are found by content, ordered by path")
    with bench.engine.transaction():
        rows.put([Labelled(b"d/\xff", b"1", WORST)])
    expect(bench.reopen().labels.find(b"d/\xff", b"1") == Labelled(b"d/\xff", b"1", WORST), "a row takes the place of another")


def labels_below_a_directory_are_joined(bench: Bench) -> None:
    """What is strictly below a directory counts, whatever bytes its names have; a name that only begins alike does not."""
    rows = bench.engine.labels
    with bench.engine.transaction():
        rows.put([Labelled(b"d/\xff/x", b"1", _EXTERNAL), Labelled(b"d-e/x", b"1", WORST), Labelled(b"d0", b"1", WORST)])
    expect(rows.below(b"d") == _EXTERNAL, "what is below is joined")
    expect(rows.below(b"d/\xff") == _EXTERNAL and rows.below(b"c") is None, "a directory without labelled paths has no label")
    expect(rows.below(b"") == WORST, "everything is below the root")
    with bench.engine.transaction():
        rows.put([Labelled(b"\xff" * 200, b"1", WORST)])
    expect(rows.below(b"\xff" * 199) is None, "a longer name is not below")


def marks_are_kept(bench: Bench) -> None:
    """A pattern has one mark."""
    rows = bench.engine.labels
    with bench.engine.transaction():
        rows.put_mark(Mark("b/**", _EXTERNAL))
        rows.put_mark(Mark("a", _SENSITIVE))
        rows.put_mark(Mark("b/**", WORST))
    expect(list(rows.marks()) == [Mark("a", _SENSITIVE), Mark("b/**", WORST)], "marks come ordered by pattern, the last of each")
    with bench.engine.transaction():
        expect(rows.remove_mark("a") and not rows.remove_mark("a"), "a mark is removed once")
    expect([mark.pattern for mark in rows.marks()] == ["b/**"], "the others stay")


def commits_and_taints_only_rise(bench: Bench) -> None:
    """Joining keeps the higher half of each."""
    rows = bench.engine.labels
    expect(rows.taint("r") == DEFAULT and not rows.commits(), "nobody is tainted at first")
    with bench.engine.transaction():
        for label in (_EXTERNAL, _SENSITIVE, DEFAULT):
            rows.raise_taint("r", label)
            rows.put_commit("c", label)
    expect(rows.taint("r") == WORST and rows.taint("s") == DEFAULT, "a taint is the join of what it was given")
    expect(rows.commits() == {"c": WORST}, "and so is what a commit brought")


CHECKS: tuple[Check, ...] = (
    labels_of_bytes_are_kept,
    labels_below_a_directory_are_joined,
    marks_are_kept,
    commits_and_taints_only_rise,
)
"""The checks of this module."""

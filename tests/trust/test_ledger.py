"""The ledger: labels that only rise, follow bytes, and are lowered by nothing but an endorsement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trust.samples import open_trust
from trust import Trust
from trust.errors import PatternInvalid
from trust.labels import DEFAULT, WORST, Label, Origin, Sensitivity, join
from trust.policy import CompiledPolicy, compile_policy

EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
SENSITIVE = Label(Origin.INTERNAL, Sensitivity.SENSITIVE)
POLICY = """
version: 1
roles: {owner: [ana]}
labels:
  - {paths: ["inbox/**"], origin: external}
  - {paths: ["secrets/**"], sensitivity: sensitive, names: true}
  - {paths: ["site/**"], origin: owner, sensitivity: public}
"""
LONG, SHORT = b"a" * 40, b"b" * 40


@pytest.fixture
def trust(tmp_path: Path) -> Iterator[Trust]:
    opened = open_trust(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def policy() -> CompiledPolicy:
    return compile_policy(POLICY, "policy.yaml")


@pytest.mark.parametrize(
    ("path", "label"),
    [
        (b"src/a.py", DEFAULT),
        (b"inbox/mail", EXTERNAL),
        (b"secrets", SENSITIVE),
        (b"secrets/deep/key", SENSITIVE),
        (b"site/index.html", Label(Origin.OWNER, Sensitivity.PUBLIC)),
    ],
)
def test_a_path_has_the_label_that_the_policy_gives_it(trust: Trust, policy: CompiledPolicy, path: bytes, label: Label) -> None:
    assert trust.ledger.label(policy, path, LONG) == label


def test_a_mark_raises_what_the_policy_says_until_it_is_taken_away(trust: Trust, policy: CompiledPolicy) -> None:
    trust.ledger.mark("secrets/**", EXTERNAL)
    assert trust.ledger.label(policy, b"secrets/key", b"") == WORST
    trust.ledger.mark("secrets/**", DEFAULT)
    assert trust.ledger.label(policy, b"secrets/key", b"") == WORST, "a second mark joins the first"
    assert trust.ledger.unmark("secrets/**") and not trust.ledger.unmark("secrets/**")
    assert trust.ledger.label(policy, b"secrets/key", b"") == SENSITIVE


def test_a_mark_on_something_that_is_no_pattern_is_refused(trust: Trust) -> None:
    with pytest.raises(PatternInvalid):
        trust.ledger.mark("../x", EXTERNAL)


def test_what_was_noted_of_bytes_counts_for_these_bytes_at_that_path(trust: Trust, policy: CompiledPolicy) -> None:
    trust.ledger.note([(b"src/a.py", LONG, EXTERNAL)], "c1")
    assert trust.ledger.label(policy, b"src/a.py", LONG) == EXTERNAL
    assert trust.ledger.label(policy, b"src/a.py", SHORT) == DEFAULT
    assert trust.ledger.label(policy, b"src/b.py", LONG) == DEFAULT
    assert trust.ledger.labelled_commits() == {"c1": EXTERNAL}


def test_bytes_are_recognised_under_another_path_unless_there_are_too_few_of_them(trust: Trust) -> None:
    trust.ledger.note([(b"src/a.py", LONG, EXTERNAL)], "c1")
    assert trust.ledger.carried([(LONG, 32)]) == EXTERNAL
    assert trust.ledger.carried([(LONG, 31)]) == DEFAULT
    assert trust.ledger.carried([(SHORT, 4000)]) == DEFAULT


def test_an_endorsement_stands_for_exactly_these_bytes_and_against_later_notes(trust: Trust, policy: CompiledPolicy) -> None:
    trust.ledger.note([(b"inbox/mail", LONG, WORST)], "c1")
    trust.ledger.endorse(b"inbox/mail", LONG, DEFAULT)
    trust.ledger.note([(b"inbox/mail", LONG, WORST)], "c2")
    assert trust.ledger.label(policy, b"inbox/mail", LONG) == DEFAULT
    assert trust.ledger.label(policy, b"inbox/mail", SHORT) == EXTERNAL


def test_the_label_of_a_directory_is_above_everything_in_it(trust: Trust, policy: CompiledPolicy) -> None:
    trust.ledger.note([(b"src/a/b.py", LONG, EXTERNAL)], "c1")
    assert trust.ledger.label_below(policy, b"src") == EXTERNAL
    assert trust.ledger.label_below(policy, b"src/a") == EXTERNAL
    assert trust.ledger.label_below(policy, b"src/ab") == DEFAULT
    assert trust.ledger.label_below(policy, b"") == WORST


def test_names_taint_only_where_the_policy_says_so(policy: CompiledPolicy) -> None:
    assert policy.label_of_names(b"secrets") == SENSITIVE
    assert policy.label_of_names(b"inbox") == DEFAULT


def test_a_taint_rises_for_every_process_and_never_falls(trust: Trust, tmp_path: Path) -> None:
    before = trust.epoch()
    assert trust.ledger.taint("r1") == DEFAULT
    assert trust.ledger.raise_taint("r1", EXTERNAL) == EXTERNAL
    assert trust.epoch() > before
    again = trust.epoch()
    assert trust.ledger.raise_taint("r1", DEFAULT) == EXTERNAL
    assert trust.epoch() == again, "what changes nothing ends no decision"
    other = Trust.open(tmp_path)
    assert other.ledger.raise_taint("r1", SENSITIVE) == WORST
    other.close()
    assert trust.ledger.taint("r1") == WORST and trust.ledger.taint("r2") == DEFAULT


labels = st.builds(Label, st.sampled_from(Origin), st.sampled_from(Sensitivity))
noted = st.lists(st.tuples(st.sampled_from([b"a", b"d/a"]), st.sampled_from([LONG, SHORT]), labels), max_size=8)


@settings(max_examples=25, deadline=None)
@given(noted)
def test_notes_only_ever_raise(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[bytes, bytes, Label]]) -> None:
    trust = open_trust(tmp_path_factory.mktemp("trust"))
    policy = compile_policy(POLICY, "policy.yaml")
    expected: dict[tuple[bytes, bytes], Label] = {}
    try:
        for path, content, label in rows:
            trust.ledger.note([(path, content, label)], "c")
            expected[path, content] = join(expected.get((path, content), label), label)
            for (known, bytes_of), joined in expected.items():
                assert trust.ledger.label(policy, known, bytes_of) == join(DEFAULT, joined)
    finally:
        trust.close()

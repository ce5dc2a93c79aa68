"""Labels: the laws of the join, the words, and the Rule of Two."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.labels import CLEAN, DEFAULT, WORST, Label, Origin, Sensitivity, breaks_rule_of_two, join, join_all, parse_label

ALL = [Label(origin, sensitivity) for origin, sensitivity in itertools.product(Origin, Sensitivity)]
labels = st.sampled_from(ALL)


@given(labels, labels, labels)
def test_a_join_does_not_depend_on_order_or_repetition(one: Label, other: Label, third: Label) -> None:
    assert join(one, other) == join(other, one)
    assert join(join(one, other), third) == join(one, join(other, third))
    assert join(one, one) == one


@given(labels, labels)
def test_a_join_is_the_least_label_that_both_are_within(one: Label, other: Label) -> None:
    joined = join(one, other)
    assert one.within(joined) and other.within(joined)
    assert all(joined.within(bound) for bound in ALL if one.within(bound) and other.within(bound))


@given(st.lists(labels))
def test_joining_nothing_is_clean_and_the_worst_takes_all(several: list[Label]) -> None:
    assert join_all([]) == CLEAN
    assert join_all([*several, WORST]) == WORST
    assert join_all(several, CLEAN) == join_all(reversed(several))


@pytest.mark.parametrize("label", ALL)
def test_a_label_is_spelled_in_two_words_and_read_again(label: Label) -> None:
    origin, sensitivity = str(label).split("/")
    assert parse_label(origin, sensitivity) == label


def test_a_missing_word_is_taken_from_elsewhere_and_a_strange_one_is_refused() -> None:
    assert parse_label("external", None) == Label(Origin.EXTERNAL, DEFAULT.sensitivity)
    with pytest.raises(ValueError, match="'secret' is no label"):
        parse_label(None, "secret")


@given(labels, st.booleans())
def test_the_rule_of_two_breaks_for_all_three_and_for_nothing_less(label: Label, outward: bool) -> None:
    three = (label.origin is Origin.EXTERNAL) + (label.sensitivity is Sensitivity.SENSITIVE) + outward
    assert breaks_rule_of_two(label, outward) == (three == 3)

"""The If header: read completely or refused, and judged by lists of assertions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.webdav.states import MAX_LENGTH, Assertion, Belief, State, holds, parse_if, submitted_tokens

LOCKED = State('"e"', frozenset({"urn:uuid:1"}))


def judge(text: str, **states: State) -> bool:
    return holds(parse_if(text), lambda address: states.get(address, State()) if address else LOCKED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(<urn:uuid:1>)", True),
        ("(<urn:uuid:2>)", False),
        ('(["e"])', True),
        ('(["f"])', False),
        ('([W/"e"])', False),
        ('(<urn:uuid:1> ["e"])', True),
        ('(<urn:uuid:1> ["f"])', False),
        ('(<urn:uuid:1> ["f"]) (["e"])', True),
        ("(Not <DAV:no-lock>)", True),
        ("(NOT <urn:uuid:1>)", False),
        ('(Not["f"])', True),
        ('(<urn:uuid:1>)(Not <DAV:no-lock> ["f"])', True),
        ("<other> (<urn:uuid:1>)", False),
        ("<other> (Not <urn:uuid:1>)", True),
    ],
)
def test_a_header_holds_when_one_list_holds(text: str, expected: bool) -> None:
    assert judge(text) is expected


def test_a_tag_says_of_what_a_list_speaks() -> None:
    text = "<http://nas/a> (<urn:a>) (<urn:b>) <http://nas/b> (<urn:c>)"
    beliefs = parse_if(text)
    assert [belief.address for belief in beliefs] == ["http://nas/a", "http://nas/a", "http://nas/b"]
    assert judge(text, **{"http://nas/a": State("", frozenset({"urn:b"}))})


def test_every_token_counts_as_submitted() -> None:
    beliefs = parse_if('<a> (<urn:1> ["x"]) <b> (Not <urn:2>)')
    assert submitted_tokens(beliefs) == {"urn:1", "urn:2"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "()",
        "(",
        "(<a>",
        "<a>",
        "<a> <b> (<c>)",
        "(<a>) <b> (<c>)",
        "(Not)",
        "(Not Not <a>)",
        "(a)",
        "([e])",
        "(<a>) x",
        '["e"]',
        "(<a b>)",
        "((<a>))",
        "(" * 100,
        "(<a>)" * 4000,
    ],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Fault) as caught:
        parse_if(text)
    assert caught.value.kind is Kind.INVALID


ASSERTIONS = st.builds(
    lambda what, token, negated: Assertion(token=token, negated=negated) if what else Assertion(etag=f'"{token}"', negated=negated),
    st.booleans(),
    st.text("abcdef:-", min_size=1, max_size=8),
    st.booleans(),
)
LISTS = st.lists(ASSERTIONS, min_size=1, max_size=4).map(tuple)


def spell(assertions: tuple[Assertion, ...]) -> str:
    return "(" + " ".join(("Not " if c.negated else "") + (f"<{c.token}>" if c.token else f"[{c.etag}]") for c in assertions) + ")"


@given(st.lists(LISTS, min_size=1, max_size=5))
def test_a_header_without_tags_is_read_as_it_was_written(lists: list[tuple[Assertion, ...]]) -> None:
    assert parse_if(" ".join(map(spell, lists))) == tuple(Belief("", assertions) for assertions in lists)


@given(st.lists(st.tuples(st.sampled_from(["http://nas/a", "/b"]), LISTS), min_size=1, max_size=5))
def test_a_header_with_tags_is_read_as_it_was_written(lists: list[tuple[str, tuple[Assertion, ...]]]) -> None:
    text = " ".join(f"<{address}> {spell(assertions)}" for address, assertions in lists)
    assert parse_if(text) == tuple(Belief(address, assertions) for address, assertions in lists)


@given(st.text() | st.text('()<>[]" notNOT:abW/'))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        assert parse_if(text)
    except Fault as fault:
        assert fault.kind is Kind.INVALID


def test_a_long_header_is_refused_unread() -> None:
    with pytest.raises(Fault, match="too long"):
        parse_if("(" + "<a>" * MAX_LENGTH + ")")

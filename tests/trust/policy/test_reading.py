from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.policy.reading import MAX_DEPTH, MAX_LENGTH, read_document


def findings(text: str) -> list[str]:
    return [str(diagnostic) for diagnostic in read_document(text, "p.yaml").diagnostics]


def test_values_and_keys_remember_where_they_stood() -> None:
    located = read_document("a: 1\nb:\n  - x\n  - {c: y}\n", "p.yaml")
    assert located.value == {"a": 1, "b": ["x", {"c": "y"}]}
    assert str(located.position(("a",))) == "p.yaml:1:1"
    assert str(located.position(("b", 1, "c"))) == "p.yaml:4:6"
    assert str(located.position(("b", 1, "missing"))) == "p.yaml:4:5"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("007", "007"),
        ("0x1f", "0x1f"),
        ("1.5", "1.5"),
        ("12:30", "12:30"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("'true'", "true"),
        ('"12"', "12"),
        ("2026-01-01", "2026-01-01"),
        ("²", "²"),
        ("9" * 19, "9" * 19),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    assert read_document(f"k: {text}", "p").value == {"k": value}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: 1\nb: 2\na: 3\n", "p.yaml:3:1: 'a' is given twice"),
        ("a: &x 1\nb: *x\n", "p.yaml:1:4: anchors and aliases"),
        ("a: !!python/object:os.system x\n", "p.yaml:1:4: tag"),
        ("? [a]\n: 1\n", "p.yaml:1:3: a key must be text"),
        ("a: [1\n", "p.yaml:2:1: not readable as YAML"),
        ("a: 1\n---\nb: 2\n", "p.yaml:2:1: not readable as YAML"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper"),
        ("#" * (MAX_LENGTH + 1), "longer than"),
    ],
)
def test_two_readers_can_not_see_two_documents(text: str, finding: str) -> None:
    assert any(finding in each for each in findings(text)), findings(text)


def test_an_alias_bomb_is_refused_before_it_is_built() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert read_document("\n".join(["a0: &a0 x", *levels]), "p").value is None


@given(st.text(alphabet=st.sampled_from(list("ab:-[]{}&*!|>'\"#%@`?,\n\t \0\ud800é0")), max_size=60))
def test_any_text_gives_a_value_or_a_finding(text: str) -> None:
    located = read_document(text, "p")
    assert all(each.position.line >= 1 and each.position.column >= 1 for each in located.diagnostics)
    assert located.value is None or not located.diagnostics or isinstance(located.value, dict | list)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(0, 9**9), st.text("ab", min_size=1)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("cd", min_size=1), inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_is_read_as_itself(value: object) -> None:
    located = read_document(json.dumps({"k": value}), "p")
    assert (located.value, located.diagnostics) == ({"k": value}, [])

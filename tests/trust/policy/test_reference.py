"""The reference page of the policy says what the schema says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trust.policy
from trust.model import Action, BudgetKind, PrincipalKind
from trust.policy import check_policy, policy_schema
from trust.policy.checking import _CODES
from trust.policy.quantities import DURATION_UNITS, SIZE_UNITS

PAGE = (Path(__file__).parents[3] / "docs/reference/policy.md").read_text()


def keys(schema: Any) -> Iterator[str]:
    """Yield every key and every word of a list of words in a schema."""
    if isinstance(schema, dict):
        yield from (name for name in schema.get("properties", {}) if name != "default")
        yield from (word for word in schema.get("enum", []))
        for value in schema.values():
            yield from keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from keys(value)


@pytest.mark.parametrize("word", sorted(set(keys(policy_schema()))))
def test_every_word_of_the_schema_is_explained(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_the_schema_knows_the_words_of_the_model() -> None:
    definitions = policy_schema()["$defs"]
    assert definitions["action"]["enum"] == [action.value for action in Action]
    assert set(definitions["who"]["properties"]["kinds"]["items"]["enum"]) == {kind.value for kind in PrincipalKind}
    assert set(definitions["limits"]["properties"]["budgets"]["properties"]) == {kind.value for kind in BudgetKind}


def test_every_unit_is_named() -> None:
    assert all(f"`{unit}`" in PAGE for unit in (*SIZE_UNITS, *DURATION_UNITS) if unit)


def test_the_examples_compile() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    whole = [example if "version:" in example else f"version: 1\nroles: {{owner: [ana]}}\n{example}" for example in examples]
    assert whole and [finding for example in whole for finding in check_policy(example, "policy.md")] == []


def codes() -> set[str]:
    """Return every code that a finding can have."""
    source = "".join(path.read_text() for path in sorted(Path(trust.policy.__file__).parent.glob("*.py")))
    named = re.findall(r'(?:_error|_warning|\bnote|_note)\(\s*"([a-z-]+)"', source)
    return {*named, *_CODES.values(), "out-of-bounds", "missing-key", "unknown-key"}


def test_every_code_of_a_finding_is_explained() -> None:
    assert len(codes()) > 35
    assert [code for code in sorted(codes()) if f"`{code}`" not in PAGE] == []

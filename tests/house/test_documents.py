"""The documents speak of what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CITED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+?)(?:#[^)]*)?\)")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", ["claims.md", "spec.md"])
def test_every_test_a_page_names_exists(page: str) -> None:
    cited = CITED.findall((ROOT / "docs" / page).read_text())
    assert cited
    missing = [
        f"{path}::{name}"
        for path, name in cited
        if not (ROOT / path).exists() or (name and f"def {name}(" not in (ROOT / path).read_text())
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    pages = [page.name for page in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert [name for name in pages if f"({name})" not in index] == []


def test_every_rule_of_the_specification_has_one_number_and_a_test() -> None:
    text = (ROOT / "docs" / "spec.md").read_text()
    rules = re.findall(r"^- \*\*([A-Z]\d+)\*\*", text, re.MULTILINE)
    tested = [rule for row in re.findall(r"^\| ([A-Z]\d+(?:, [A-Z]\d+)*) \| .*\S", text, re.MULTILINE) for rule in row.split(", ")]
    assert len(rules) > 40
    assert sorted(tested) == sorted(set(rules)) == sorted(rules)


def test_the_readme_can_be_read_at_once() -> None:
    assert 90 <= len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_architecture_fits_in_a_head() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text().splitlines()) <= 250

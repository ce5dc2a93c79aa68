"""The generated pages are current and complete, and the API they describe is a valid one."""

from __future__ import annotations

from pathlib import Path

import pytest
from openapi_spec_validator import validate

from interfaces.faults import Kind
from interfaces.http import describe_api
from nasd.cli.pages import render_pages, write_pages
from nasd.operations import all_operations

FOLDER = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", ["cli.md", "http.md"])
def test_a_generated_page_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == render_pages()[name], "run: python -m nasd.cli.pages docs/reference"


def test_the_pages_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(render_pages())


def test_every_operation_and_every_kind_of_failure_is_on_the_page() -> None:
    page = render_pages()["http.md"]
    assert all(f"\n### {name}\n" in page for name in all_operations())
    assert all(f"| `{kind.value}` |" in page for kind in Kind)


def test_the_description_of_every_operation_is_valid() -> None:
    validate(describe_api({name: operation.document() for name, operation in all_operations().items()}, "0"))

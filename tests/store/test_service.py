from __future__ import annotations

from pathlib import Path

import pytest

import store.engines
from store import list_engines, open_store
from store.errors import Unsupported

ENGINE = """
from store.engines.reference import open_engine

def probe():
    return {why!r}
"""


def add_engine(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str | None) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(ENGINE.format(why=why))
    monkeypatch.setattr(store.engines, "__path__", [*store.engines.__path__, str(folder)])


def test_an_engine_is_found_by_being_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_engine(tmp_path, monkeypatch, "dropped_in", None)
    assert list_engines()["dropped_in"] is None
    assert open_store(tmp_path, "dropped_in").branches() == []


def test_an_engine_that_cannot_run_here_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_engine(tmp_path, monkeypatch, "elsewhere", "needs another kernel")
    with pytest.raises(Unsupported, match="elsewhere: needs another kernel"):
        open_store(tmp_path, "elsewhere")


def test_an_engine_that_does_not_exist_names_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="reference"):
        open_store(tmp_path, "punched-cards")


def test_the_clock_of_the_caller_dates_the_files(tmp_path: Path) -> None:
    engine = open_store(tmp_path, "reference", clock=lambda: 42)
    engine.create_branch("main", None, 0)
    assert engine.working("main").create(store.ROOT, b"f", 0o644).mtime_ns == 42

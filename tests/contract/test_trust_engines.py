from __future__ import annotations

from pathlib import Path

import pytest

from trust.conformance import CHECKS, Bench, Check
from trust.engines import engine_names, open_engine
from trust.errors import Unknown


@pytest.mark.parametrize("engine", engine_names())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_engine_of_trust_keeps_its_promise(engine: str, check: Check, tmp_path: Path) -> None:
    bench = Bench(engine, tmp_path / "trust")
    try:
        check(bench)
    finally:
        bench.engine.close()


def test_every_folder_of_engines_is_an_engine() -> None:
    assert "sqlite" in engine_names()


def test_an_engine_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(Unknown, match="there are: sqlite"):
        open_engine("postgres", tmp_path)

from __future__ import annotations

from pathlib import Path

import pytest

from store.conformance import Bench, Subject
from store.conformance.bench import Check
from store.conformance.concurrency import CHECKS
from tests.contract.stores import every_engine


@pytest.mark.parametrize("engine", every_engine())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_lost_or_torn_while_others_work(engine: str, check: Check, tmp_path: Path) -> None:
    subject = Subject(engine, tmp_path / "store")
    bench = Bench(subject, subject.open())
    try:
        check(bench)
    finally:
        bench.engine.close()

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from store.conformance.crash import cut_everywhere, expect_states, find_steps
from store.conformance.scenario import play
from store.service import open_store
from tests.contract.stores import every_engine


@pytest.mark.parametrize("engine", every_engine())
def test_a_process_that_ends_at_any_step_leaves_old_or_new_and_never_between(engine: str, tmp_path: Path) -> None:
    if find_steps(engine) is None:
        pytest.skip(f"{engine}: keeps nothing that a crash could leave half done")
    assert cut_everywhere(engine, tmp_path) > 20


def test_the_scenario_changes_something_at_most_calls(tmp_path: Path) -> None:
    states = expect_states(tmp_path)
    changing = sum(before != after for before, after in itertools.pairwise(states))
    assert changing > 20
    assert len(states) == 1 + sum(1 for _ in play(open_store(tmp_path, "reference")))

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from store.conformance.crash import cut_everywhere, expect_states, find_steps
from store.conformance.scenario import Scenario, play, play_large
from store.service import open_store
from tests.contract.stores import every_engine


@pytest.mark.slow
@pytest.mark.parametrize("engine", every_engine())
@pytest.mark.parametrize(("scenario", "least"), [(play, 50), (play_large, 10)], ids=["small", "large"])
def test_a_process_that_ends_at_any_step_leaves_old_or_new_and_never_between(
    engine: str, scenario: Scenario, least: int, tmp_path: Path
) -> None:
    if find_steps(engine) is None:
        pytest.skip(f"{engine}: keeps nothing that a crash could leave half done")
    assert cut_everywhere(engine, tmp_path, scenario) > least


def test_the_scenario_changes_something_at_most_calls(tmp_path: Path) -> None:
    states = expect_states(tmp_path, play)
    changing = sum(before != after for before, after in itertools.pairwise(states))
    assert changing > 20
    assert len(states) == 1 + sum(1 for _ in play(open_store(tmp_path, "reference")))

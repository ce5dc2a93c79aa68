"""Everything the git engine acknowledged is there after every power cut; an engine that syncs nothing loses some of it."""

from __future__ import annotations

import pytest

from tests.powercut.machine import cut_power, recorded

pytestmark = [pytest.mark.root, pytest.mark.fuse, pytest.mark.slow]


def test_every_acknowledged_effect_survives_every_cut(thorough: bool) -> None:
    cuts = 40 if thorough else 10
    scenario = "tests.powercut.git_store:STORE"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=cuts, seed=2)
    assert (outcome.cuts, outcome.problems) == (cuts, {})


def test_without_syncs_some_are_lost() -> None:
    scenario = "tests.powercut.git_store:CARELESS"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=5, seed=2)
    assert outcome.clean < outcome.cuts

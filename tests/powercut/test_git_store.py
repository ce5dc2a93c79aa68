"""Everything the git engine acknowledged is there after every power cut; an engine that syncs nothing loses some of it."""

from __future__ import annotations

import pytest

from tests.powercut.machine import cut_power, recorded

pytestmark = [pytest.mark.root, pytest.mark.fuse, pytest.mark.slow]


def test_every_acknowledged_effect_survives_forty_cuts() -> None:
    scenario = "tests.powercut.git_store:STORE"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=40, seed=2)
    assert (outcome.cuts, outcome.problems) == (40, {})


def test_without_syncs_some_are_lost() -> None:
    scenario = "tests.powercut.git_store:CARELESS"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=5, seed=2)
    assert outcome.clean < outcome.cuts

"""The machine loses what was not synced, and nothing else."""

from __future__ import annotations

import pytest

from tests.powercut.machine import cut_power, recorded

pytestmark = [pytest.mark.root, pytest.mark.fuse]


def test_what_was_synced_survives_every_cut() -> None:
    scenario = "tests.powercut.plain_files:SYNCED"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=10, seed=1)
    assert (outcome.cuts, outcome.problems) == (10, {})


def test_what_was_not_synced_is_lost_by_some() -> None:
    scenario = "tests.powercut.plain_files:CARELESS"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=10, seed=1)
    assert outcome.clean < outcome.cuts

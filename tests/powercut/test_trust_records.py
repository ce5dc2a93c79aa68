"""Every intent that was recorded is in the chain after every power cut, and the chain verifies."""

from __future__ import annotations

import pytest

from tests.powercut.machine import cut_power, recorded

pytestmark = [pytest.mark.root, pytest.mark.fuse, pytest.mark.slow]


def test_every_recorded_intent_survives_every_cut(thorough: bool) -> None:
    cuts = 20 if thorough else 6
    scenario = "tests.powercut.trust_records:RECORDS"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=cuts, seed=5)
    assert (outcome.cuts, outcome.problems) == (cuts, {})

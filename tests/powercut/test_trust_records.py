"""Every intent that was recorded is in the chain after every power cut, and the chain verifies."""

from __future__ import annotations

import pytest

from tests.powercut.machine import cut_power, recorded

pytestmark = [pytest.mark.root, pytest.mark.fuse, pytest.mark.slow]


def test_every_recorded_intent_survives_twenty_cuts() -> None:
    scenario = "tests.powercut.trust_records:RECORDS"
    with recorded(scenario) as recording:
        outcome = cut_power(recording, scenario, cuts=20, seed=5)
    assert (outcome.cuts, outcome.problems) == (20, {})

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from store.conformance.machine import build_machine
from tests.contract.stores import every_engine

PATIENT = settings(max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@pytest.mark.parametrize("engine", every_engine())
def test_random_work_gives_what_the_reference_gives(engine: str) -> None:
    run_state_machine_as_test(build_machine(engine), settings=PATIENT)

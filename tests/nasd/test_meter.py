"""Budgets: reserved in steps, never overspent, given back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from interfaces.faults import Fault, Kind
from nasd.meter import Meter
from tests.nasd.conftest import House
from trust.model import BudgetKind, LeaseId


def meters(house: House, count: int, **budgets: int) -> tuple[list[Meter], LeaseId]:
    run, _ = house.start(budgets={BudgetKind(name): amount for name, amount in budgets.items()})
    lease = house.trust.lease(LeaseId(run.lease))
    return [Meter(house.trust, lease) for _ in range(count)], lease.id


def test_many_meters_of_one_lease_never_spend_more_than_there_is(house: House) -> None:
    workers, lease = meters(house, 4, reads=1000)
    spent = [0] * 4
    barrier = threading.Barrier(4)

    def spend(index: int) -> None:
        barrier.wait()
        try:
            while True:
                workers[index].spend(BudgetKind.READS, 3)
                spent[index] += 3
        except Fault as fault:
            assert fault.kind is Kind.BUDGET

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(spend, range(4)))
    for worker in workers:
        worker.settle()
    left = house.trust.left(lease)[BudgetKind.READS]
    assert sum(spent) + left == 1000
    assert left < 3 * 4


def test_the_last_unit_can_be_spent(house: House) -> None:
    (meter,), lease = meters(house, 1, bytes_read=10)
    meter.spend(BudgetKind.BYTES_READ, 10)
    with pytest.raises(Fault):
        meter.spend(BudgetKind.BYTES_READ, 1)
    meter.settle()
    assert house.trust.left(lease)[BudgetKind.BYTES_READ] == 0


def test_what_did_not_happen_is_given_back(house: House) -> None:
    (meter,), lease = meters(house, 1, bytes_written=100)
    meter.spend(BudgetKind.BYTES_WRITTEN, 60)
    meter.give_back(BudgetKind.BYTES_WRITTEN, 60)
    meter.spend(BudgetKind.BYTES_WRITTEN, 100)
    meter.settle()
    assert house.trust.left(lease)[BudgetKind.BYTES_WRITTEN] == 0


def test_kinds_without_a_budget_are_counted(house: House) -> None:
    (meter,), lease = meters(house, 1, bytes_written=100)
    meter.spend(BudgetKind.READS, 7)
    meter.settle()
    assert house.trust.lease(lease).used[BudgetKind.READS] == 7
    assert meter.left(BudgetKind.READS) is None


def test_nobody_is_charged_without_a_lease(house: House) -> None:
    meter = Meter(house.trust, None)
    meter.spend(BudgetKind.READS, 10**12)
    meter.settle()
    assert meter.left(BudgetKind.READS) is None

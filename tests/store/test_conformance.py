"""The suites must be able to fail: each fault put into the reference engine is found by the suite it is meant for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from store.conformance import Bench, BrokenPromise, Subject, concurrency, promises
from store.conformance.bench import Check, put_file, refused, same
from store.conformance.crash import Cut, check_after, expect_states
from store.conformance.machine import build_machine
from store.conformance.scenario import play
from store.conformance.side_by_side import SideBySide
from store.engines.reference import nodes, rules, working
from store.engines.reference.engine import ReferenceEngine
from store.engines.reference.handles import MemoryHandle
from store.engines.reference.layer import Layer
from store.errors import NotFound, StoreError
from store.model import AttributeChange

Fault = Callable[[pytest.MonkeyPatch], None]


def every_head_is_expected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReferenceEngine, "_expect", lambda self, name, expected: self._line(name))


def every_name_can_be_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nodes, "versionable", lambda name, *, symlink=False: True)


def every_name_is_valid(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rules, "explain_name", lambda name: None)


def no_twins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Layer, "twins", lambda self, before: [])


def no_renames(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Layer, "renames", lambda self: {})


def writes_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryHandle, "write", lambda self, offset, data: len(data))


def times_stand_still(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(working.MemoryWorking, "_stamp", lambda self, *directories: 1)


def modes_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    change: Any = working.MemoryWorking.set_attributes
    patch.setattr(working.MemoryWorking, "set_attributes", lambda self, node, wanted: change(self, node, AttributeChange(size=wanted.size)))


def protection_is_ignored(patch: pytest.MonkeyPatch) -> None:
    create: Any = ReferenceEngine.create_branch
    patch.setattr(ReferenceEngine, "create_branch", lambda self, name, at, now, *, protected=False: create(self, name, at, now))


def deleted_branches_live_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(working.MemoryWorking, "_check_alive", lambda self: None)


def nothing_is_touched(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Layer, "touched", lambda self, since: [])


def everything_is_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReferenceEngine, "unmerged", lambda self, name, target: False)


FAULTS = [
    every_head_is_expected,
    every_name_can_be_committed,
    every_name_is_valid,
    no_twins,
    no_renames,
    writes_are_lost,
    times_stand_still,
    modes_are_forgotten,
    protection_is_ignored,
    deleted_branches_live_on,
    nothing_is_touched,
    everything_is_merged,
]


def broken(checks: tuple[Check, ...], folder: Path) -> list[str]:
    """Return the names of the checks that fail."""
    found = []
    for check in checks:
        subject = Subject("reference", folder)
        try:
            check(Bench(subject, subject.open()))
        except (BrokenPromise, StoreError, TypeError):
            found.append(check.__name__)
    return found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_broken_promise_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fault(monkeypatch)
    assert broken(promises.CHECKS, tmp_path)


def test_an_engine_without_a_fault_breaks_no_promise(tmp_path: Path) -> None:
    assert broken(promises.CHECKS, tmp_path) == []


def test_a_merge_without_compare_and_set_is_found_by_those_at_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    every_head_is_expected(monkeypatch)
    read: Any = ReferenceEngine.branch
    stale: dict[str, Any] = {}
    monkeypatch.setattr(ReferenceEngine, "branch", lambda self, name: stale.setdefault(name, read(self, name)))
    assert "merges_into_one_branch_all_arrive" in broken(concurrency.CHECKS, tmp_path)


def test_the_state_machine_finds_a_lost_truncation(monkeypatch: pytest.MonkeyPatch) -> None:
    change: Any = working.MemoryWorking.set_attributes
    work: Any = SideBySide.work
    reference: list[Any] = []

    def forget_size(self: working.MemoryWorking, node: int, wanted: AttributeChange) -> object:
        whole = self._layer is reference[0]._layer
        return change(self, node, wanted if whole else AttributeChange(mode=wanted.mode))

    def remember(self: SideBySide, call: Any) -> None:
        reference[:] = [self.reference.working(self.current)]
        work(self, call)

    monkeypatch.setattr(SideBySide, "work", remember)
    monkeypatch.setattr(working.MemoryWorking, "set_attributes", forget_size)
    quick = settings(
        max_examples=200,
        stateful_step_count=30,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(BrokenPromise):
        run_state_machine_as_test(build_machine("reference"), settings=quick)


def test_a_state_between_old_and_new_is_found_after_a_crash(tmp_path: Path) -> None:
    states = expect_states(tmp_path, play)
    subject = Subject("reference", tmp_path)
    check_after(subject, Cut((), False, "opening"), states)
    with pytest.raises(BrokenPromise, match="after 'write'"):
        check_after(subject, Cut(("create main", "write"), False, "commit"), states)


def test_a_check_that_meets_no_refusal_says_so() -> None:
    with pytest.raises(BrokenPromise, match="NotFound"), refused(NotFound):
        pass
    with pytest.raises(BrokenPromise, match="the answer: found 1, expected 2"):
        same(1, 2, "the answer")


def test_a_bench_writes_where_it_says(tmp_path: Path) -> None:
    bench = Bench(Subject("reference", tmp_path), Subject("reference", tmp_path).open())
    working_layer, head = bench.grow({b"a/b": b"1"})
    put_file(working_layer, b"a/c", b"2")
    assert bench.commit().id != head

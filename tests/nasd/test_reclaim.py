"""Garbage collection removes what is provably merged or long past its time, and nothing else."""

from __future__ import annotations

import pytest

from nasd.runs import Run
from store.errors import NotFound
from tests.nasd.conftest import House

DAY = 86400


def exists(house: House, run: Run) -> bool:
    try:
        house.appliance.engine.branch(run.branch)
    except NotFound:
        return False
    return True


def collect(house: House, *, dry_run: bool = False) -> dict[str, object]:
    return house.reclaim.collect(house.owner, dry_run=dry_run)


def ended(house: House, files: dict[str, bytes | None]) -> Run:
    run, _ = house.start()
    house.write(run, files)
    house.runs.end(run, house.owner)
    return house.runs.find(run.run)


def test_an_active_run_stays_even_when_everything_in_it_is_merged(house: House) -> None:
    run, _ = house.start()
    collect(house)
    assert exists(house, run)


def test_a_merged_branch_goes_when_its_run_has_ended(house: House) -> None:
    run, _ = house.start()
    house.write(run, {"src/a.py": b"merged\n"})
    house.proposals.propose(run, house.owner, "x")
    house.runs.end(run, house.owner)
    document = collect(house)
    assert [item["run"] for item in document["removed"]] == [run.run]  # type: ignore[attr-defined]
    assert not exists(house, run)
    assert house.runs.find(run.run).state == "removed"


def test_a_squashed_merge_counts_as_merged(house: House) -> None:
    work = ended(house, {"src/new.py": b"same content\n"})
    other, _ = house.start()
    house.write(other, {"src/new.py": b"same content\n"})
    house.proposals.propose(other, house.owner, "the same by another way")
    collect(house)
    assert not exists(house, work)


def test_unmerged_work_goes_to_the_trash_after_its_time_and_from_there_after_the_trash_period(house: House) -> None:
    run = ended(house, {"only-here.txt": b"precious\n"})
    collect(house)
    assert exists(house, run)
    house.pass_time(14 * DAY)
    assert [item["run"] for item in collect(house)["trashed"]] == [run.run]  # type: ignore[attr-defined]
    assert exists(house, run), "in the trash it can still be restored"
    house.pass_time(7 * DAY - 1)
    collect(house)
    assert exists(house, run)
    house.pass_time(1)
    assert [item["run"] for item in collect(house)["removed"]] == [run.run]  # type: ignore[attr-defined]
    assert not exists(house, run)


def test_uncommitted_work_is_kept_whatever_its_age(house: House) -> None:
    run = ended(house, {"one.txt": b"1"})
    house.write(run, {"late.txt": b"written after the end"})
    house.pass_time(400 * DAY)
    document = collect(house)
    assert exists(house, run)
    assert [item["why"] for item in document["kept"]] == ["it holds uncommitted work"]  # type: ignore[attr-defined]


def test_a_dry_run_says_the_same_and_changes_nothing(house: House) -> None:
    run, _ = house.start()
    house.write(run, {"src/a.py": b"merged\n"})
    house.proposals.propose(run, house.owner, "x")
    house.runs.end(run, house.owner)
    records = house.trust.head()
    foretold = collect(house, dry_run=True)
    assert exists(house, run)
    assert house.trust.head() == records
    done = collect(house)
    assert [item["branch"] for item in foretold["removed"]] == [item["branch"] for item in done["removed"]]  # type: ignore[attr-defined]


def test_a_removal_is_recorded_before_it_happens(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    house.runs.end(run, house.owner)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(house.appliance.engine, "delete_branch", fail)
    with pytest.raises(OSError, match="No space"):
        collect(house)
    kinds = [(record.kind, record.phase.value) for record in house.trust.records()][-2:]
    assert kinds == [("branch.remove", "intent"), ("branch.remove", "outcome")]

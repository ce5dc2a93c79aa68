"""Buckets as operations: what they are called, who makes them, what they leave behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from nasd.notes import DoorNotes
from nasd.operations import all_operations
from nasd.operations.buckets import explain_bucket_name
from tests.nasd.conftest import START, House
from trust.model import Identity, LeaseId

OPERATIONS = all_operations()


def call(house: House, identity: Identity, operation: str, **arguments: object) -> dict[str, object]:
    return OPERATIONS[operation].handle(house.desk, identity, arguments)


@pytest.mark.parametrize("name", ["abc", "a.b", "a-b", "0ab", "x" * 63, "1.2.3"])
def test_a_name_that_s3_allows_is_one(name: str) -> None:
    assert explain_bucket_name(name) is None


@pytest.mark.parametrize(
    "name", ["", "ab", "x" * 64, "Abc", "a_b", "-ab", "ab-", ".ab", "ab.", "a..b", "a.-b", "a-.b", "1.2.3.4", "a/b", "é" * 3]
)
def test_a_name_that_s3_does_not_allow_is_explained(name: str) -> None:
    assert explain_bucket_name(name)


@given(st.text(max_size=70))
def test_a_name_that_passes_is_plain(name: str) -> None:
    if explain_bucket_name(name) is None:
        assert name.isascii()
        assert name == name.lower()
        assert 3 <= len(name) <= 63


def test_a_person_makes_a_bucket_of_the_role_bucket(house: House) -> None:
    made = call(house, house.owner, "bucket.create", bucket="results")
    run = house.runs.find(str(made["run"]))
    assert (run.role, run.owner, run.bucket, made["kind"]) == ("bucket", "owner", "results", "bucket")
    assert list(house.appliance.engine.working(run.branch).list(1)) == []


def test_a_bucket_and_its_run_are_made_together_or_not_at_all(house: House) -> None:
    before = [run.run for run in house.runs.all()]
    call(house, house.owner, "bucket.create", bucket="results")
    for taken in ("main", house.runs.all()[-1].run):
        with pytest.raises(Fault) as caught:
            call(house, house.owner, "bucket.create", bucket=taken)
        assert caught.value.kind is Kind.EXISTS
    assert len(house.runs.all()) == len(before) + 1


def test_a_bucket_is_found_by_every_name_of_its_branch(house: House) -> None:
    run = house.runs.find(str(call(house, house.owner, "bucket.create", bucket="results")["run"]))
    assert {house.desk.branch(house.owner, name) for name in ("results", run.run, run.branch)} == {run.branch}
    assert call(house, house.owner, "bucket.show", bucket=run.run)["bucket"] == "results"


def test_a_deleted_bucket_leaves_no_name_and_no_notes(house: House) -> None:
    run = house.runs.find(str(call(house, house.owner, "bucket.create", bucket="results")["run"]))
    call(house, house.owner, "bucket.set", bucket="results", versioning="Enabled")
    notes = DoorNotes(house.trust, "s3")
    assert notes.find(f"bucket/{run.branch}")[1] == {"versioning": "Enabled"}
    notes.put(f"upload/{run.branch}/u", {}, 0)
    call(house, house.owner, "bucket.delete", bucket="results")
    assert notes.keys(f"bucket/{run.branch}") == []
    assert notes.keys(f"upload/{run.branch}") == []
    assert house.runs.find(run.run).state == "ended"
    assert house.runs.behind("results") is None


def test_a_bucket_with_files_or_versions_is_kept(house: House) -> None:
    run = house.runs.find(str(call(house, house.owner, "bucket.create", bucket="results")["run"]))
    house.write(run, {"k": b"x"})
    with pytest.raises(Fault) as caught:
        call(house, house.owner, "bucket.delete", bucket="results")
    assert caught.value.kind is Kind.NOT_EMPTY
    house.write(run, {"k": None})
    DoorNotes(house.trust, "s3").put(f"version/{run.branch}/k", {"versions": []}, 0)
    with pytest.raises(Fault) as caught:
        call(house, house.owner, "bucket.delete", bucket="results")
    assert caught.value.kind is Kind.NOT_EMPTY


def test_a_lease_makes_no_buckets_and_deletes_none(house: House) -> None:
    _, secret = house.start()
    for operation in ("bucket.create", "bucket.delete"):
        with pytest.raises(Fault):
            call(house, house.holder(secret), operation, bucket="results")
    assert house.runs.of_bucket("results") is None


def test_each_sees_the_buckets_that_exist_for_them(house: House) -> None:
    call(house, house.owner, "bucket.create", bucket="results")
    run, secret = house.start()
    seen = {item["bucket"] for item in call(house, house.holder(secret), "bucket.list")["items"]}  # type: ignore[union-attr]
    assert seen == {"main", run.run}
    house.appliance.engine.create_snapshot("before", house.appliance.engine.branch("main").head, 1)
    seen = {item["bucket"] for item in call(house, house.owner, "bucket.list")["items"]}  # type: ignore[union-attr]
    assert seen == {"main", run.run, "results", "before"}


def test_a_narrowed_lease_leaves_the_settings_of_the_whole_bucket_alone(house: House) -> None:
    run, secret = house.start()
    whole = house.trust.lease(LeaseId(run.lease))
    _, sub = house.trust.narrow_lease(whole.id, replace(whole.scope, paths=("src/**",)), int(START))
    with pytest.raises(Fault) as caught:
        call(house, house.holder(sub), "bucket.set", bucket=run.branch, versioning="Enabled")
    assert caught.value.kind is Kind.DENIED
    assert call(house, house.holder(secret), "bucket.set", bucket=run.branch, versioning="Enabled")["run"] == run.run

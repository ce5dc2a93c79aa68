"""Old records leave for sealed files and are given up after their time; people take a body away; crashes in between are finished."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.operations import all_operations
from nasd.retention import Retention
from tests.nasd.conftest import House, build_house
from trust.merkle import TILE
from trust.model import Identity

DAY = 86400


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "reference")
    yield built
    built.appliance.close()


def record(house: House, count: int) -> None:
    with house.trust.transaction():
        for number in range(count):
            house.trust.state("seen", None, {"n": number}, house.appliance.now())


def retention(house: House, **settings: float) -> Retention:
    return Retention(replace(house.appliance, settings=replace(house.appliance.settings, **settings)))


def ask(house: House, operation: str, identity: Identity, **arguments: object) -> dict:  # type: ignore[type-arg]
    return dict(all_operations()[operation].handle(house.desk, identity, arguments))


def test_nothing_is_sealed_or_given_up_unless_a_setting_says_so(house: House) -> None:
    record(house, 3 * TILE)
    house.pass_time(1000 * DAY)
    retention(house).tick()
    assert house.trust.evidence.segments() == [] and house.records("record.seal") == []


def test_old_records_are_sealed_and_later_given_up_and_the_record_says_so(house: House) -> None:
    record(house, 3 * TILE)
    keeping = retention(house, record_age=30 * DAY, record_kept=60 * DAY)
    house.pass_time(20 * DAY)
    keeping.tick()
    assert house.trust.evidence.segments() == []
    house.pass_time(20 * DAY)
    keeping.tick()
    (segment,) = house.trust.evidence.segments()
    assert (segment.first, segment.last, segment.removed) == (1, 2 * TILE, None)
    announced, told = house.trust.records(kind="record.seal")
    assert announced.body == {"first": 1, "last": 2 * TILE} and told.body == {"result": "done", "digest": segment.digest.hex()}
    assert house.trust.verify().ok and house.trust.record(5).body == {"n": 4}
    house.pass_time(61 * DAY)
    keeping.tick()
    assert house.trust.evidence.segments()[0].removed == house.appliance.now()
    assert house.records("record.give_up")[0]["digest"] == segment.digest.hex()
    found = house.trust.verify()
    assert found.ok and "given up" in found.completeness


def test_the_owner_seals_and_redacts_and_a_run_does_not(house: House) -> None:
    record(house, 3 * TILE)
    house.pass_time(10 * DAY)
    sealed = ask(house, "record.seal", house.owner, older_than="1d")["sealed"]
    assert [(each["first"], each["last"]) for each in sealed] == [(1, 2 * TILE)]
    assert ask(house, "record.redact", house.owner, sequence=5, reason="a name")["commitment"] == house.trust.record(5).body["redacted"]
    announced, told = house.records("record.redact")
    assert announced == {"sequence": 5, "reason": "a name"} and told["digest"] == house.trust.evidence.segments()[0].digest.hex()
    _, secret = house.start()
    for operation, arguments in (
        ("record.seal", {"older_than": "1d"}),
        ("record.redact", {"sequence": 6, "reason": "mine"}),
        ("record.export", {"folder": "/tmp/x"}),
        ("record.checkpoint", {}),
        ("record.status", {}),
        ("record.keys", {}),
        ("record.prove", {"sequence": 1}),
    ):
        with pytest.raises(Fault) as caught:
            ask(house, operation, house.holder(secret), **arguments)
        assert caught.value.kind is Kind.DENIED
    assert house.trust.record(6).body == {"n": 5} and house.trust.verify().ok


def test_what_cannot_be_redacted_says_why(house: House) -> None:
    intent = house.trust.intend("merge", None, {"a": 1}, house.appliance.now())
    with pytest.raises(Fault, match="without outcome"):
        ask(house, "record.redact", house.owner, sequence=int(intent), reason="x")
    assert house.records("record.redact") == []


def test_an_export_goes_to_a_new_folder_outside_of_the_data_directory(house: House, tmp_path: Path) -> None:
    record(house, 5)
    inside = house.appliance.settings.home / "store" / "e"
    (tmp_path / "link").symlink_to(house.appliance.settings.home)
    for folder in (str(inside), str(tmp_path / "link" / "e"), "relative"):
        with pytest.raises(Fault) as caught:
            ask(house, "record.export", house.owner, folder=folder)
        assert caught.value.kind is Kind.INVALID
    done = ask(house, "record.export", house.owner, folder=str(tmp_path / "e"))
    assert done["first"] == 1 and (tmp_path / "e" / "manifest.json").exists()
    with pytest.raises(Fault) as caught:
        ask(house, "record.export", house.owner, folder=str(tmp_path / "e"))
    assert caught.value.kind is Kind.EXISTS
    with pytest.raises(Fault) as caught:
        ask(house, "record.export", house.owner, folder=str(tmp_path / "f"), after=10_000)
    assert caught.value.kind is Kind.NOT_FOUND and not (tmp_path / "f").exists()


# after a crash


def outcomes(house: House, kind: str) -> list[object]:
    return [body["result"] for body in house.records(kind) if "result" in body]


def test_a_seal_that_was_not_finished_is_undone_and_one_that_was_is_done(house: House) -> None:
    record(house, 3 * TILE)
    house.trust.intend("record.seal", None, {"first": 1, "last": TILE}, house.appliance.now())
    house.reconciliation.finish()
    assert outcomes(house, "record.seal") == ["undone"]
    house.trust.evidence.seal(1, TILE, house.appliance.now())
    house.trust.intend("record.seal", None, {"first": 1, "last": TILE}, house.appliance.now())
    house.reconciliation.finish()
    assert outcomes(house, "record.seal") == ["undone", "done"]


def test_a_giving_up_that_was_marked_loses_its_file(house: House) -> None:
    record(house, 3 * TILE)
    segment = house.trust.evidence.seal(1, TILE, house.appliance.now())
    path = house.trust.evidence.file_of(segment)
    content = path.read_bytes()
    house.trust.evidence.give_up(segment, house.appliance.now())
    path.write_bytes(content)
    house.trust.intend("record.give_up", None, {"first": 1, "last": TILE}, house.appliance.now())
    house.reconciliation.finish()
    assert outcomes(house, "record.give_up") == ["done"] and not path.exists()


def test_a_redaction_that_was_announced_is_carried_out(house: House) -> None:
    record(house, 9)
    house.trust.intend("record.redact", None, {"sequence": 4, "reason": "x"}, house.appliance.now())
    house.trust.intend("record.redact", None, {"sequence": 4000, "reason": "x"}, house.appliance.now())
    house.reconciliation.finish()
    assert outcomes(house, "record.redact") == ["done", "undone"] and "redacted" in house.trust.record(4).body

"""Checkpoints of a running appliance: when they are signed, where they are kept, who cosigns them, and what they find."""

from __future__ import annotations

import http.client
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nasd.accepting import accept_loss
from nasd.config import Settings
from nasd.doctor import examine
from nasd.errors import Misconfigured, RolledBack, StartError
from nasd.notary import EVERY_RECORDS, EVERY_SECONDS, Notary
from nasd.outside import Outside, compare
from nasd.verifying import verify_record
from nasd.wiring import Appliance
from nasd.witnesses import WitnessFailure, last_note, read_witness
from tests.nasd.conftest import House, build_house
from trust.checkpoints import Checkpoint, sign_checkpoint
from trust.errors import ChainBroken
from trust.log_key import open_log_key
from trust.service import Trust
from witness.notes import Cosigner, parse_key
from witness.serve import Server
from witness.shelf import Shelf


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "git")
    yield built
    built.appliance.close()


@dataclass
class Witness:
    server: Server
    cosigner: Cosigner

    @property
    def pair(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port} {self.cosigner.key.render()}"

    def know(self, trust: Trust) -> None:
        self.server.shelf.add_log(parse_key(trust.evidence.verifier.render()))


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    cosigner = Cosigner("witness.example/w1", bytes(32))
    with Server(("127.0.0.1", 0), Shelf(tmp_path / "witness.db"), cosigner) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Witness(server, cosigner)
        server.shutdown()
        thread.join()


def notary_of(house: House, **settings: object) -> Notary:
    house.appliance = replace(house.appliance, settings=replace(house.appliance.settings, **settings))
    return Notary(house.appliance)


def record(house: House, count: int) -> None:
    with house.trust.transaction():
        for number in range(count):
            house.trust.state("seen", None, {"n": number}, house.appliance.now())


def kept(house: House) -> list[int]:
    return sorted(int(path.name.partition(".")[0]) for path in house.appliance.settings.checkpoints.glob("*.checkpoint"))


# when and where


def test_a_checkpoint_is_signed_every_so_many_records_and_every_day_on_which_something_was_recorded(house: House) -> None:
    notary = notary_of(house)
    notary.tick()
    record(house, 1)
    notary.tick()
    first = house.trust.head()[0]
    record(house, EVERY_RECORDS - 1)
    notary.tick()
    assert kept(house) == [first]
    record(house, 1)
    notary.tick()
    assert kept(house) == [first, first + EVERY_RECORDS]
    house.pass_time(EVERY_SECONDS)
    notary.tick()
    assert len(kept(house)) == 2
    record(house, 1)
    notary.tick()
    assert kept(house)[-1] == first + EVERY_RECORDS + 1


def test_the_last_one_is_signed_when_the_daemon_drains_and_on_demand(house: House) -> None:
    notary = notary_of(house)
    record(house, 3)
    signed = notary.sign()
    assert signed["size"] == house.trust.head()[0] and house.trust.evidence.open(signed["note"]).size == signed["size"]
    record(house, 3)
    notary.start()
    notary.close()
    assert kept(house)[-1] == house.trust.head()[0]


def test_the_last_checkpoint_is_kept_in_every_folder_that_is_named(house: House, tmp_path: Path) -> None:
    folders = [tmp_path / "usb", tmp_path / "nfs"]
    notary = notary_of(house, anchors=",".join(map(str, folders)))
    record(house, 3)
    note = notary.sign()["note"]
    assert [path.read_text() for folder in folders for path in folder.iterdir()] == [note, note]
    record(house, 3)
    shutil.rmtree(folders[0])
    folders[0].write_text("no folder")
    signed = notary.sign()
    assert len(signed["failures"]) == 1 and str(folders[0]) in signed["failures"][0] and notary.status()["failures"] == signed["failures"]
    assert next(folders[1].iterdir()).read_text() == signed["note"]


# witnesses


def test_a_witness_cosigns_each_checkpoint_and_its_line_is_kept_and_published(house: House, witness: Witness) -> None:
    witness.know(house.trust)
    notary = notary_of(house, witnesses=witness.pair)
    for count in (3, 300, 1):
        record(house, count)
        signed = notary.sign()
        assert signed["failures"] == [] and "— witness.example/w1 " in signed["note"]
    status = notary.status()["witnesses"]
    assert [(each["name"], each["behind"], each["failure"]) for each in status] == [("witness.example/w1", 0, "")]
    assert notary.keys() == {"log": house.trust.evidence.verifier.render(), "witnesses": [witness.cosigner.key.render()]}


def test_a_witness_that_is_gone_is_asked_again_later_and_told_of(house: House, witness: Witness) -> None:
    notary = notary_of(house, witnesses=witness.pair)
    record(house, 3)
    assert "404" in notary.sign()["failures"][0]
    witness.know(house.trust)
    notary.tick()
    assert notary.status()["failures"], "it pauses after a failure"
    house.pass_time(60)
    notary.tick()
    assert notary.status()["failures"] == [] and notary.status()["witnesses"][0]["behind"] == 0
    unreachable = notary_of(house, witnesses=f"http://127.0.0.1:9 {witness.cosigner.key.render()}")
    record(house, 1)
    assert "cannot be reached" in unreachable.sign()["failures"][0]
    assert "witness.example/w1" in unreachable.status()["failures"][0]


def test_what_another_key_signed_is_no_cosignature(house: House, witness: Witness) -> None:
    witness.know(house.trust)
    other = Cosigner("witness.example/w1", bytes([1] * 32)).key.render()
    notary = notary_of(house, witnesses=f"http://127.0.0.1:{witness.server.server_port} {other}")
    record(house, 3)
    assert "not signed by the key" in notary.sign()["failures"][0]
    assert house.trust.evidence.witnessed("witness.example/w1") == 0


def test_a_witness_that_knows_an_earlier_checkpoint_gets_the_proof_from_there(house: House, witness: Witness) -> None:
    witness.know(house.trust)
    record(house, 3)
    notary_of(house, witnesses=witness.pair).sign()
    forgetful = Cosigner("witness.example/renamed", bytes(32))
    witness.server.cosigner = forgetful
    record(house, 500)
    pair = f"http://127.0.0.1:{witness.server.server_port} {forgetful.key.render()}"
    assert notary_of(house, witnesses=pair).sign()["failures"] == []


def test_a_witness_is_named_by_an_address_and_a_key(house: House) -> None:
    with pytest.raises(Misconfigured):
        read_witness("http://127.0.0.1:9", "nonsense")
    with pytest.raises(WitnessFailure):
        last_note(read_witness("http://127.0.0.1:9", Cosigner("w", bytes(32)).key.render()), "o", 1.0)


# what they find


def reopened(house: House) -> Iterator[Appliance]:
    settings = house.appliance.settings
    appliance = Appliance(settings, house.appliance.engine, Trust.open(settings.trust), house.appliance.clock, house.appliance.entropy)
    yield appliance
    appliance.trust.close()


def copy_back(house: House, act: Callable[[], None]) -> None:
    """Do something, and put the trust folder back as it was before."""
    folder = house.appliance.settings.trust
    assert house.trust.evidence.verifier
    house.trust.flush()
    before = folder.with_name("before")
    shutil.copytree(folder, before)
    act()
    shutil.rmtree(folder)
    before.rename(folder)


def test_an_old_copy_that_was_put_back_keeps_the_daemon_from_starting(house: House, tmp_path: Path, witness: Witness) -> None:
    witness.know(house.trust)
    record(house, 300)

    def go_on() -> None:
        record(house, 700)
        notary_of(house, anchors=str(tmp_path / "usb"), witnesses=witness.pair).sign()

    copy_back(house, go_on)
    for again in reopened(house):
        assert again.trust.verify().ok, "by itself the copy is sound"
        with pytest.raises(RolledBack) as caught:
            Notary(again).check()
        for where in ("checkpoints/", "usb/", "the witness witness.example/w1"):
            assert where in str(caught.value)
        assert "were lost, or an old copy was put back" in str(caught.value) and "nas record accept" in caught.value.hint
    shutil.rmtree(house.appliance.settings.checkpoints)
    shutil.rmtree(tmp_path / "usb")
    for again in reopened(house):
        with pytest.raises(RolledBack, match="the witness"):
            Notary(again).check()
    found = verify_record(replace(house.appliance.settings, witnesses=""), None)
    assert found["ok"] and "unknown" in found["completeness"], "without an outside anchor nobody can tell"


def test_a_copy_without_the_key_is_another_log(house: House) -> None:
    record(house, 3)
    notary_of(house).sign()
    (house.appliance.settings.trust / "keys" / "log.key").unlink()
    for again in reopened(house):
        with pytest.raises(RolledBack, match="not of this log"):
            Notary(again).check()


def test_the_loss_is_accepted_in_the_record_and_the_log_goes_on_under_another_name(house: House, tmp_path: Path) -> None:
    record(house, 300)
    settings = replace(house.appliance.settings, anchors=str(tmp_path / "usb"))
    copy_back(house, lambda: (record(house, 300), notary_of(house, anchors=settings.anchors).sign())[0])  # type: ignore[func-returns-value]
    house.appliance.close()
    settings.home.chmod(0o700)
    former = open_log_key(settings.trust / "keys", lambda count: bytes(count))[0].verifier.name
    done = accept_loss(settings)
    assert done["former"] == former != done["origin"] and len(done["lost"]) == 2 and done["failures"] == []
    with pytest.raises(StartError, match="no checkpoint"):
        accept_loss(settings)
    trust = Trust.open(settings.trust)
    fact = next(trust.records(kind="record.restart"))
    assert fact.body["former"] == former and "were lost" in fact.body["lost"][0]
    found, proofs = compare(trust.evidence, Outside(settings).notes())
    assert len(found) == 2 and proofs == [] and trust.verify(None, found).ok
    trust.close()
    assert len(list((tmp_path / "usb").glob("*.until-*"))) == 1


def test_a_witness_that_shows_more_of_our_signatures_stops_the_record(house: House, witness: Witness) -> None:
    witness.know(house.trust)
    record(house, 10)

    def go_on() -> None:
        record(house, 20)
        notary_of(house, witnesses=witness.pair).sign()

    copy_back(house, go_on)
    for again in reopened(house):
        with again.trust.transaction():
            again.trust.state("seen", None, {}, 5)
        signed = Notary(again).sign()
        assert "has cosigned" in signed["failures"][0]
        with pytest.raises(ChainBroken, match="were lost"):
            again.trust.state("seen", None, {}, 5)


def test_a_fork_that_is_signed_with_the_stolen_key_is_caught_by_the_witness(house: House, witness: Witness) -> None:
    """Whoever has the machine writes another history, signs it with the log's own key and replaces every checkpoint on the machine."""
    witness.know(house.trust)
    record(house, 10)
    assert house.trust.evidence.verifier
    house.trust.flush()
    settings = house.appliance.settings
    fork = settings.trust.with_name("fork")
    shutil.copytree(settings.trust, fork)
    record(house, 20)
    notary_of(house, witnesses=witness.pair).sign()
    forged = Trust.open(fork)
    with forged.transaction():
        for number in range(25):
            forged.state("seen", None, {"n": f"forged {number}"}, 5)
    forged.evidence.checkpoint(5)
    forged.close()
    shutil.rmtree(settings.checkpoints)
    shutil.rmtree(settings.trust)
    fork.rename(settings.trust)
    for again in reopened(house):
        notary = Notary(again)
        assert again.trust.verify().ok, "by itself the fork is sound"
        with pytest.raises(RolledBack, match="the record was rewritten"):
            notary.check()
        assert "422" in notary.sign()["failures"][0], "and it is never cosigned"


def test_a_place_that_cannot_be_looked_at_is_told_and_stops_nobody(house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record(house, 3)
    anchors = f"{tmp_path / 'usb'}, {tmp_path / 'gone'}"
    notary_of(house, anchors=anchors).sign()
    shutil.rmtree(tmp_path / "gone")
    notary_of(house, anchors=anchors).check()
    assert "is not compared with" in caplog.text and "gone" in caplog.text
    next((tmp_path / "usb").iterdir()).write_bytes(b"\xff\xfe")
    with pytest.raises(RolledBack, match="not of this log"):
        notary_of(house, anchors=anchors).check()


def test_what_was_compared_with_nothing_outside_says_so(house: House, tmp_path: Path) -> None:
    record(house, 3)
    notary_of(house).sign()
    inside = verify_record(house.appliance.settings, None)
    assert inside["ok"] and "complete up to the 3 records" in inside["completeness"] and "completeness unknown" in inside["completeness"]
    notary_of(house, anchors=str(tmp_path / "usb")).sign()
    outside = verify_record(house.appliance.settings, None)
    assert outside["ok"] and "unknown" not in outside["completeness"].replace("later records unknown", "")


def test_the_bare_word_of_a_witness_stops_nothing(house: House, witness: Witness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nasd.witnesses._post", lambda url, content: (http.client.CONFLICT, "1000000\n"))
    witness.know(house.trust)
    notary = notary_of(house, witnesses=witness.pair)
    record(house, 10)
    assert "has cosigned 1000000" in notary.sign()["failures"][0]
    house.trust.state("seen", None, {}, 5)
    forged = sign_checkpoint(
        Checkpoint("agent-nas/other", 1_000_000, bytes(32)), open_log_key(house.appliance.settings.home / "x", lambda n: bytes(n))[0]
    )
    found, proofs = compare(house.trust.evidence, iter([("a liar", forged)]))
    assert found == [] and "not of this log" in proofs[0]


def test_the_doctor_looks_at_what_is_outside(house: House, witness: Witness, tmp_path: Path) -> None:
    def told(**settings: str) -> dict[str, bool]:
        items = examine(replace(house.appliance.settings, **settings))["items"]
        return {item["detail"]: item["ok"] for item in items if item["check"] in ("record outside", "anchor", "witness")}

    (detail,) = told()
    assert "would not be noticed" in detail
    key = witness.pair.partition(" ")[2]
    found = told(anchors=f"{tmp_path}, /nowhere", witnesses=f"{witness.pair}, http://127.0.0.1:9 {key}")
    assert list(found.values()) == [True, False, True, False]


def test_the_key_is_told_in_the_record_once(house: House) -> None:
    notary_of(house).check()
    for again in reopened(house):
        Notary(again).check()
    assert house.records("record.key") == [{"verifier": house.trust.evidence.verifier.render()}]


def test_settings_name_witnesses_and_folders(tmp_path: Path) -> None:
    from nasd.config import read_settings

    config = {"NAS_CONFIG": str(tmp_path / "nas.toml"), "HOME": str(tmp_path)}
    (tmp_path / "nas.toml").write_text("")
    settings: Settings = read_settings(
        config, {"witnesses": "https://a.example a+1+b=, http://b.example b+2+c", "anchors": "/mnt/a, /mnt/b"}
    )
    assert settings.witness_pairs == (("https://a.example", "a+1+b="), ("http://b.example", "b+2+c"))
    assert settings.anchor_folders == (Path("/mnt/a"), Path("/mnt/b"))
    for wrong in ({"witnesses": "a.example a+1+b"}, {"witnesses": "https://a.example"}, {"anchors": "relative"}, {"record_age": "soon"}):
        with pytest.raises(Misconfigured):
            read_settings(config, wrong)

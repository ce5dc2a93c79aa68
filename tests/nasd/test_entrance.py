"""Coming in: one workspace for the requests of a holder on a branch, views of commits, notes of doors, what happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Access, Workspace, walk
from tests.house_of_doors import HouseOfDoors, open_house


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseOfDoors]:
    with open_house(tmp_path) as opened:
        yield opened


def read(workspace: Workspace, path: bytes) -> bytes:
    handle = workspace.open(walk(workspace, path).node, Access())
    try:
        return handle.read(0, 1 << 20)
    finally:
        handle.close()


def write(workspace: Workspace, name: bytes, content: bytes) -> None:
    _, handle = workspace.create(ROOT, name, 0o644)
    handle.write(0, content)
    handle.close()


def test_requests_of_one_holder_on_one_branch_share_a_workspace_and_others_do_not(house: HouseOfDoors) -> None:
    one, other = house.start_run(), house.start_run()
    caller = house.control.authenticate(one.secret)
    first, second = house.control.workspace(caller, one.branch), house.control.workspace(caller, one.run)
    assert first is second
    first.close()
    assert read(second, b"README.md") == b"hello\n"
    assert house.control.workspace(caller, "main") is not first
    assert house.control.workspace(house.control.authenticate(other.secret), other.branch) is not first


def test_what_a_closed_request_read_is_recorded_by_the_next_flush(house: HouseOfDoors) -> None:
    run = house.start_run()
    workspace = house.control.workspace(house.control.authenticate(run.secret), run.branch)
    read(workspace, b"README.md")
    workspace.close()
    house.control.close()
    reads = house.house.records("reads")
    assert [[(read["path"], read["times"]) for read in record["reads"]] for record in reads] == [[("README.md", 1)]]


def test_the_branch_of_another_run_is_absent_in_the_words_of_one_that_never_was(house: HouseOfDoors) -> None:
    one, other = house.start_run(), house.start_run()
    caller = house.control.authenticate(one.secret)
    said = []
    for name in (other.branch, "coder/r0000000000000000"):
        with pytest.raises(Fault) as caught:
            house.control.workspace(caller, name)
        said.append((caught.value.kind, caught.value.message.replace(name, "NAME"), caught.value.hint))
    assert said[0] == said[1]
    assert said[0][0] is Kind.NOT_FOUND


def test_a_commit_is_read_as_it_was_and_refuses_to_change(house: HouseOfDoors) -> None:
    run = house.start_run()
    caller = house.control.authenticate(run.secret)
    workspace = house.control.workspace(caller, run.branch)
    write(workspace, b"new.txt", b"one")
    first = house.control.call(caller, "commit.make", {"branch": run.branch})["commit"]
    workspace.unlink(ROOT, b"new.txt")
    past = house.control.workspace(caller, run.branch, first)
    assert read(past, b"new.txt") == b"one"
    assert b"new.txt" not in dict(workspace.list(ROOT))
    with pytest.raises(Fault) as caught:
        past.unlink(ROOT, b"new.txt")
    assert caught.value.kind is Kind.READ_ONLY


def test_a_commit_of_another_run_is_absent(house: HouseOfDoors) -> None:
    one, other = house.start_run(), house.start_run()
    theirs = house.control.authenticate(other.secret)
    write(house.control.workspace(theirs, other.branch), b"hidden.txt", b"x")
    commit = house.control.call(theirs, "commit.make", {"branch": other.branch})["commit"]
    with pytest.raises(Fault) as caught:
        house.control.workspace(house.control.authenticate(one.secret), one.branch, commit)
    assert caught.value.kind is Kind.NOT_FOUND


def test_a_door_may_commit_what_it_wrote(house: HouseOfDoors) -> None:
    run = house.start_run()
    workspace = house.control.workspace(house.control.authenticate(run.secret), run.branch)
    write(workspace, b"new.txt", b"one")
    assert workspace.commit("from a door")["changed"] == 1


def test_notes_of_a_door_change_by_compare_and_set(house: HouseOfDoors) -> None:
    notes = house.control.notes("webdav")
    assert notes.find("lock/a") == (0, {})
    assert notes.put("lock/a", {"owner": "x"}, 0)
    assert not notes.put("lock/a", {"owner": "y"}, 0)
    assert notes.put("lock/a", {"owner": "z"}, 1)
    assert notes.find("lock/a") == (2, {"owner": "z"})
    assert notes.put("lock/b", {}, 0)
    assert notes.put("other", {}, 0)
    assert list(notes.keys("lock/")) == ["lock/a", "lock/b"]
    assert not notes.remove("lock/a", 1)
    assert notes.remove("lock/a", 2)
    assert list(notes.keys("")) == ["lock/b", "other"]
    assert list(house.control.notes("s3").keys("")) == []


@pytest.mark.parametrize("by_name", [False, True])
def test_basic_credentials_speak_for_the_lease_they_name_and_no_other(house: HouseOfDoors, by_name: bool) -> None:
    run, other = house.start_run(), house.start_run()
    given = house.call(run.secret, "lease.credentials", {"lease": run.lease, "for": "webdav"})["settings"]
    password = run.secret if by_name else given["password"]
    assert house.control.authenticate_basic(given["user"], password).lease == run.lease
    for user, wrong in ((other.lease, password), (run.lease, password[:-1] + ("A" if password[-1] != "A" else "B")), (run.lease, "")):
        with pytest.raises(Fault) as caught:
            house.control.authenticate_basic(user, wrong)
        assert caught.value.kind is Kind.UNAUTHENTICATED


def test_revoking_the_lease_ends_every_credential_of_it(house: HouseOfDoors) -> None:
    run = house.start_run()
    basic = house.call(run.secret, "lease.credentials", {"lease": run.lease, "for": "git"})["settings"]
    pair = house.call(run.secret, "lease.credentials", {"lease": run.lease, "for": "s3"})["settings"]
    key = (pair["AWS_ACCESS_KEY_ID"], pair.get("AWS_SESSION_TOKEN", ""), "20261130", "us-east-1", "s3")
    assert house.control.signer(*key).caller.lease == run.lease
    house.call(house.owner, "lease.revoke", {"lease": run.lease})
    for attempt in (
        lambda: house.control.authenticate(run.secret),
        lambda: house.control.authenticate_basic(basic["user"], basic["password"]),
        lambda: house.control.signer(*key).caller,
    ):
        with pytest.raises(Fault) as caught:
            attempt()
        assert caught.value.kind is Kind.REVOKED


def test_credentials_of_another_lease_are_not_handed_out(house: HouseOfDoors) -> None:
    run, other = house.start_run(), house.start_run()
    with pytest.raises(Fault) as caught:
        house.call(run.secret, "lease.credentials", {"lease": other.lease, "for": "s3"})
    assert caught.value.kind is Kind.NOT_FOUND

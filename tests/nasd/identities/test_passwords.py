"""App passwords: for one person, one door, some paths; shown once, seen in use, ended at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from tests.nasd.identities.conftest import Served, basic, bearer

Wrong = Callable[[str], str]


def make(served: Served, owner: str, **wanted: object) -> dict[str, str]:
    return served.house.call(owner, "app-password.create", {"for": "webdav", **wanted})


def test_an_app_password_opens_its_door_to_its_person_and_nothing_else_to_anybody(served: Served, wrong: Wrong) -> None:
    token = served.house.issue_token("ana")
    made = make(served, token)
    served.house.issue_token("bo")
    path, git = "/dav/main/README.md", "/git/main.git/info/refs?service=git-upload-pack"
    assert served.ask("GET", path, basic("ana", made["secret"])).body == b"hello\n"
    assert served.ask("GET", git, basic("ana", made["secret"])).status == 401
    assert served.ask("GET", "/v1/runs", basic("ana", made["secret"])).status == 401
    assert served.ask("GET", "/v1/runs", bearer(made["secret"])).status == 401
    assert served.ask("GET", path, basic("bo", made["secret"])).status == 401
    assert served.ask("GET", path, basic("ana", wrong(made["secret"]))).status == 401
    served.house.call(token, "app-password.revoke", {"app_password": made["app_password"]})
    assert served.ask("GET", path, basic("ana", made["secret"])).status == 401


def test_its_paths_are_all_that_there_is(served: Served) -> None:
    made = make(served, served.house.issue_token("ana"), paths=["docs/**"])
    password = basic("ana", made["secret"])
    assert served.ask("GET", "/dav/main/docs/one.md", password).body == b"1\n"
    hidden, absent = (served.ask("GET", f"/dav/main/{name}", password) for name in ("README.md", "absent"))
    assert (hidden.status, hidden.body.replace(b"README.md", b"absent")) == (404, absent.body)
    listing = served.ask("PROPFIND", "/dav/main/", password | {"depth": "1"})
    assert b"docs" in listing.body
    assert b"README" not in listing.body
    assert b"src" not in listing.body


def test_git_with_an_app_password_carries_what_it_may_read_and_takes_no_push(served: Served, tmp_path: Path) -> None:
    import subprocess

    made = served.house.call(
        served.house.issue_token("ana"), "app-password.create", {"for": "git", "paths": ["docs/**"], "read_only": True}
    )
    host = served.url.removeprefix("http://")
    (tmp_path / ".git-credentials").write_text(f"http://ana:{made['secret']}@{host}\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0"}

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-c", "credential.helper=store", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)

    cloned = git("clone", "-q", f"http://ana@{host}/git/main.git", "clone")
    assert cloned.returncode == 0, cloned.stderr
    assert sorted(path.name for path in (tmp_path / "clone").iterdir() if path.name != ".git") == ["docs"]
    (tmp_path / "clone" / "docs" / "two.md").write_text("2\n")
    assert git("-C", "clone", "add", "-A").returncode == 0
    assert git("-C", "clone", "commit", "-qm", "two").returncode == 0
    assert git("-C", "clone", "push", "-q", "origin", "HEAD:main").returncode != 0


def test_an_owner_with_an_app_password_is_no_owner(served: Served) -> None:
    made = make(served, served.house.owner)
    control = served.house.control
    from interfaces.port import Arrival

    caller = control.authenticate_basic("owner", made["secret"], Arrival("webdav", "192.0.2.1"))
    assert caller.actions == {"list", "read", "write", "delete"}
    for operation, arguments in (
        ("principal.list", {}),
        ("token.issue", {"principal": "owner"}),
        ("app-password.create", {"for": "git"}),
        ("gate.list", {}),
        ("run.start", {"role": "coder"}),
    ):
        with pytest.raises(Fault) as caught:
            control.call(caller, operation, arguments)
        assert caught.value.kind is Kind.DENIED
    run = served.house.start_run()
    assert control.workspace(caller, run.branch) is not control.workspace(control.authenticate(served.house.owner), run.branch)


def test_only_people_have_them_and_only_they_themselves_or_an_owner_make_and_see_them(served: Served) -> None:
    ana, bo = served.house.issue_token("ana"), served.house.issue_token("bo")
    served.house.issue_token("robot", "service")
    run = served.house.start_run()
    made = make(served, ana, label="phone")
    for secret, wanted, kind in (
        (bo, {"principal": "ana"}, Kind.DENIED),
        (run.secret, {}, Kind.DENIED),
        (served.house.owner, {"principal": "robot"}, Kind.INVALID),
        (ana, {"paths": ["../x"]}, Kind.INVALID),
    ):
        with pytest.raises(Fault) as caught:
            make(served, secret, **wanted)
        assert caught.value.kind is kind
    with pytest.raises(Fault) as caught:
        served.house.call(bo, "app-password.revoke", {"app_password": made["app_password"]})
    assert caught.value.kind is Kind.NOT_FOUND
    seen = {
        name: served.house.call(secret, "app-password.list")["items"]
        for name, secret in (("ana", ana), ("bo", bo), ("owner", served.house.owner))
    }
    assert [len(items) for items in seen.values()] == [1, 0, 1]
    assert "secret" not in seen["ana"][0]


def test_when_it_was_used_last_is_seen_after_the_next_flush(served: Served) -> None:
    token = served.house.issue_token("ana")
    made = make(served, token)
    assert served.house.call(token, "app-password.list")["items"][0]["last_used"] is None
    served.ask("GET", "/dav/main/README.md", basic("ana", made["secret"]))
    served.house.control._doorkeeper.flush()
    assert served.house.call(token, "app-password.list")["items"][0]["last_used"] is not None


def test_it_ends_with_its_time_and_with_its_person_and_the_disk_has_no_trace_of_the_secret(served: Served) -> None:
    token = served.house.issue_token("ana")
    made = make(served, token)
    path, password = "/dav/main/README.md", basic("ana", made["secret"])
    trust = served.house.house.trust
    document = trust.document("app-password", made["app_password"])
    ended = {**document.body, "limits": {**document.body["limits"], "expires": 1}}
    assert served.ask("GET", path, password).status == 200
    trust.put_document("app-password", document.id, ended, document.version)
    assert served.ask("GET", path, password).status == 401
    trust.put_document("app-password", document.id, document.body, document.version + 1)
    assert served.ask("GET", path, password).status == 200
    served.house.call(served.house.owner, "principal.disable", {"name": "ana"})
    assert served.ask("GET", path, password).status == 401
    trust.flush()
    with sqlite3.connect(served.house.house.appliance.settings.trust / "trust.db") as database:
        text = "\n".join(database.iterdump())
    assert made["app_password"] in text
    assert made["secret"].rsplit(".", 1)[1] not in text

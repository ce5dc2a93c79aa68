"""The life of runs through the command line and the HTTP door of a real daemon: nothing between them and the disk is a double."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from nasd.client import Client


@dataclass
class Appliance:
    """A daemon over a data directory of its own."""

    home: Path

    def nas(self, *arguments: str, expected: int = 0, **variables: str) -> Any:
        """Run ``nas … --json`` in a process of its own and return the document."""
        environment = {
            "NAS_HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "NAS_LISTEN": "127.0.0.1:0",
        }
        words = (
            [*arguments[: arguments.index("--")], "--json", *arguments[arguments.index("--") :]]
            if "--" in arguments
            else [*arguments, "--json"]
        )
        done = subprocess.run(
            [sys.executable, "-m", "nasd.cli.main", *words],
            check=False,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/",
        )
        assert done.returncode == expected, done.stdout + done.stderr
        return json.loads(done.stdout)

    def ask(self, secret: str, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send one request to the loopback port."""
        address = self.nas("status")["doors"]["http"].removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=30)
        connection.request(
            method, path, body, {"Authorization": f"Bearer {secret}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, content


@pytest.fixture(scope="module")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    folder = tmp_path_factory.mktemp("life")
    source = folder / "source"
    (source / "src").mkdir(parents=True)
    (source / "src" / "main.py").write_text("print('hello')\n")
    (source / "README").write_text("a tree\n")
    made = Appliance(folder / "home")
    imported = made.nas("init", "--import", str(source))
    assert imported["imported"]["files"] == 2
    made.nas("serve", "--background")
    yield made
    assert made.nas("stop")["stopped"]


def files_of(run: dict[str, Any]) -> str:
    return f"/v1/branches/{quote(run['branch'], safe='')}/files"


def test_work_over_http_is_committed_proposed_merged_and_proven(appliance: Appliance) -> None:
    run = appliance.nas("run", "start", "builder", "--purpose", "greet")
    status, headers, _ = appliance.ask(run["secret"], "PUT", f"{files_of(run)}/src/main.py", b"print('bye')\n")
    assert status == 200
    assert appliance.ask(run["secret"], "PUT", f"{files_of(run)}/src/main.py", b"lost", If_Match='"stale"')[0] == 412
    again, kept, content = appliance.ask(run["secret"], "GET", f"{files_of(run)}/src/main.py")
    assert (again, kept["etag"], content) == (200, headers["etag"], b"print('bye')\n")
    committed = appliance.nas("commit", run["run"], "-m", "greet", NAS_LEASE=run["secret"])
    assert committed["changed"] == 1
    proposal = appliance.nas("propose", run["run"], "-m", "greet", NAS_LEASE=run["secret"])
    assert (proposal["decision"], proposal["gate"]) == ("merged", "")
    assert "greet" in [commit["message"].strip() for commit in appliance.nas("log")]
    assert appliance.nas("verify")["ok"]
    assert appliance.nas("run", "end", run["run"])["state"] == "ended"
    assert appliance.ask(run["secret"], "GET", f"{files_of(run)}/src/main.py")[0] == 401


def test_what_a_lease_does_not_cover_is_not_there(appliance: Appliance) -> None:
    run = appliance.nas("run", "start", "builder", "--paths", "src/**")
    for path in ("README", "src/../README", "missing"):
        status, _, content = appliance.ask(run["secret"], "GET", f"{files_of(run)}/{path}")
        assert (status, json.loads(content)["code"]) in {(404, "not-found"), (400, "invalid")}, path
    hidden = json.loads(appliance.ask(run["secret"], "GET", f"{files_of(run)}/README")[2])["message"].replace("README", "")
    missing = json.loads(appliance.ask(run["secret"], "GET", f"{files_of(run)}/MISSING")[2])["message"].replace("MISSING", "")
    assert hidden == missing
    listed = json.loads(appliance.ask(run["secret"], "GET", f"{files_of(run)}?list")[2])
    assert [item["name"] for item in listed["items"]] == ["src"]
    appliance.nas("lease", "revoke", run["lease"])
    assert appliance.ask(run["secret"], "GET", f"{files_of(run)}?list")[0] == 401


def test_an_effect_repeated_with_its_key_happens_once(appliance: Appliance) -> None:
    secret = (appliance.home / "owner.token").read_text().strip()
    body, kind = json.dumps({"role": "once"}).encode(), "application/json"
    answers = [appliance.ask(secret, "POST", "/v1/runs", body, Content_Type=kind, Idempotency_Key="key-1") for _ in range(2)]
    assert [status for status, _, _ in answers] == [201, 201]
    first, second = (json.loads(content) for _, _, content in answers)
    assert second == first, "the lease's secret is derived, so its own caller gets it again"
    assert len(appliance.nas("run", "list", "--role", "once")) == 1
    other = appliance.ask(secret, "POST", "/v1/runs", json.dumps({"role": "twice"}).encode(), Content_Type=kind, Idempotency_Key="key-1")
    assert (other[0], json.loads(other[2])["code"]) == (422, "key-reused")


def test_a_question_is_asked_answered_and_heard_of(appliance: Appliance) -> None:
    run = appliance.nas("run", "start", "builder")
    assert appliance.ask(run["secret"], "POST", f"{files_of(run)}/.nas/policy.yaml?op=append", b"# more\n")[0] == 200
    proposal = appliance.nas("propose", run["run"], expected=4)
    assert (proposal["decision"], bool(proposal["gate"])) == ("gated", True)
    gate = next(item for item in appliance.nas("gate", "list", "--state", "pending") if item["gate"] == proposal["gate"])
    assert appliance.nas("gate", "approve", gate["gate"], "--digest", "0" * 64, expected=5)["code"] == "precondition-failed"
    events = Client(
        appliance.home / "run" / "nasd.sock", appliance.home, (appliance.home / "owner.token").read_text().strip(), timeout=60
    ).events()
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(lambda: next(event for event in events if event["kind"] == "merge"))
        answered = appliance.nas("gate", "approve", gate["gate"], "--digest", gate["digest"])
        assert answered["result"]["decision"] == "merged"
        assert heard.result()["body"]["proposal"] == proposal["proposal"]


def test_runs_started_at_once_have_branches_of_their_own(appliance: Appliance) -> None:
    before = len(appliance.nas("run", "list"))
    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(lambda number: appliance.nas("run", "start", f"role-{number % 3}"), range(24)))
    assert len({run["branch"] for run in started}) == len({run["secret"] for run in started}) == 24
    assert len(appliance.nas("run", "list")) == before + 24


@pytest.mark.fuse
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse")
def test_a_command_runs_on_a_mounted_branch_of_its_own(appliance: Appliance) -> None:
    outcome = appliance.nas("run", "exec", "builder", "-m", "by a command", "--", "sh", "-c", "echo made > made.txt && ls")
    assert (outcome["exit"], outcome["changed"], outcome["proposal"]["decision"]) == (0, 1, "merged")
    assert appliance.nas("show", "main:made.txt")["size"] == 5
    assert appliance.nas("run", "exec", "builder", "--", "sh", "-c", "exit 7", expected=7)["proposal"] is None
    assert appliance.nas("status")["mounts"] == []

"""A real issuer, the installed program with its gateways, and a person in front of a browser."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.conftest import NAS, Nas
from tests.nasd.identities.real_issuer import AUDIENCE, free_port, fresh_keys, running_issuer

GROUPS = {"ana": ["nas-auditors", "drivers"]}


@dataclass
class Place:
    """An appliance that believes an issuer which can come and go."""

    nas: Nas
    port: int
    keys: list[Any]

    @property
    def url(self) -> str:
        found: str = self.nas.json("status")["doors"]["http"]
        return found

    def issuer(self) -> Any:
        return running_issuer(self.port, self.keys, groups=GROUPS)

    def get(self, path: str, token: str) -> httpx2.Response:
        return httpx2.get(self.url + path, headers={"authorization": f"Bearer {token}"}, trust_env=False, timeout=30)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    nas, port = Nas(tmp_path_factory.mktemp("login")), free_port()
    nas.init()
    declared = {
        "name": "corp",
        "issuer": f"http://127.0.0.1:{port}",
        "audience": AUDIENCE,
        "clients": ["nas", "robot"],
        "services": ["robot"],
        "prefix": "corp-",
        "attributes": {"department": "department"},
        "roles_claim": "groups",
        "roles": {"nas-writers": "writer"},
        "subjects": {"olga": "owner"},
    }
    nas.environment |= {"NAS_ISSUERS": json.dumps([declared]), "NAS_LISTEN": "127.0.0.1:0", "NAS_WORKERS": "2"}
    nas.serve()
    yield Place(nas, port, fresh_keys())
    nas.run("stop", expect=None)


def browse(url: str, login: str, confirm: str = "") -> None:
    """Do what a person does: open the address, log in, agree, and end on the last page."""
    with httpx2.Client(follow_redirects=True, trust_env=False, timeout=30) as browser:
        page = browser.get(url)
        for _ in range(8):
            form = re.search(r'<form[^>]*action="([^"]+)"', page.text)
            if form is None:
                return
            fields = dict(re.findall(r'<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page.text))
            fields |= {"login": login, "password": "any"} if 'name="login"' in page.text else {}
            fields |= {"user_code": confirm} if 'name="user_code"' in page.text and not fields.get("user_code") else {}
            fields |= {"confirm": "yes"} if 'name="confirm"' in page.text else {}
            page = browser.post(form[1].replace("&amp;", "&"), data=fields)
        raise AssertionError(page.text)


def log_in(place: Place, login: str, *arguments: str) -> dict[str, Any]:
    """Run ``nas login`` beside a browser and return what it printed."""
    command = [str(NAS), "login", "--no-browser", "--json", *arguments]
    process = subprocess.Popen(
        command, env=place.nas.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process:
        told = process.stderr.readline()
        if "--device" in arguments:
            found = re.search(r"Open (\S+) and confirm the code (\S+)", told)
            assert found is not None, told + process.stderr.read()
            browse(found[1], login, found[2])
        else:
            browse(process.stderr.readline().strip(), login)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    answer: dict[str, Any] = json.loads(printed)
    return answer


def test_an_issuer_that_is_away_is_a_503_that_says_when_to_come_back_and_leases_go_on(place: Place) -> None:
    with place.issuer() as real:
        token = real.robot_token()
    answer = place.get("/v1/runs", token)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) > 1
    assert place.get("/v1/runs", "eyJhbGciOiJub25lIn0.e30.").status_code == 401
    assert place.get("/v1/runs", place.nas.token()).status_code == 200
    with place.issuer():
        deadline = time.monotonic() + 40
        while place.get("/v1/runs", token).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.5)


def test_what_an_issuer_says_of_a_program_counts_at_every_worker_and_ends_in_a_principal(place: Place) -> None:
    with place.issuer() as real:
        token = real.robot_token()
        deadline = time.monotonic() + 60  # a worker that found the issuer away waits before it asks again
        while [place.get("/v1/runs", token).status_code for _ in range(6)] != [200] * 6:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        assert httpx2.post(f"{place.url}/mcp", json=asked, headers=headers, trust_env=False).status_code == 200
        assert httpx2.get(f"{place.url}/dav/main/", headers={"authorization": f"Bearer {token}"}, trust_env=False).status_code == 200
        robot = next(item for item in place.nas.json("principal", "list") if item["principal"] == "corp-robot")
        assert (robot["kind"], robot["roles"]) == ("service", ["writer"])
        assert place.get("/v1/principals", token).status_code == 403
        place.nas.run("principal", "disable", "corp-robot")
        assert place.get("/v1/runs", token).status_code == 403
        assert token not in (place.nas.home / "log" / "gateways.log").read_text()


def test_a_person_logs_in_by_a_browser_and_out_again(place: Place) -> None:
    with place.issuer():
        told = log_in(place, "ana")
    assert told["principal"] == "corp-ana"
    path = Path(told["file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    assert place.get("/v1/runs", token).status_code == 200
    place.nas.run("run", "list", env={"NAS_TOKEN_FILE": str(path)})
    place.nas.run("token", "list", env={"NAS_TOKEN_FILE": str(path)}, expect=3)
    refused = httpx2.post(f"{place.url}/v1/logins", json={}, headers={"authorization": f"Bearer {token}"}, trust_env=False)
    assert refused.status_code == 403
    place.nas.run("logout")
    assert not path.exists()
    assert place.get("/v1/runs", token).status_code == 401


def test_a_person_logs_in_on_another_device_and_is_whom_the_settings_say(place: Place, tmp_path: Path) -> None:
    with place.issuer():
        told = log_in(place, "olga", "--device", "--to", str(tmp_path / "token"), "--ttl", "1h")
    assert told["principal"] == "owner"
    assert place.get("/v1/principals", (tmp_path / "token").read_text().strip()).status_code == 200


def test_a_stranger_is_told_where_to_log_in_and_nothing_else(place: Place) -> None:
    for path, resource in (("", ""), ("/mcp", "/mcp")):
        found = httpx2.get(f"{place.url}/.well-known/oauth-protected-resource{path}", trust_env=False).json()
        assert found["resource"] == place.url + resource
        assert found["authorization_servers"] == [f"http://127.0.0.1:{place.port}"]
        assert found["issuers"][0]["client"] == "nas"

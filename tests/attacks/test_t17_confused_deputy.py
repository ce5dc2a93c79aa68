"""T17: authority that was meant for somebody else. CVE-2025-6514 (mcp-remote); token passthrough in the security practices of MCP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from tests.attacks.stand import Stand, open_stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.model import Refused
from tests.contract.doors.site import Held
from tests.contract.doors.skipping import each_of
from tests.nasd.broker.upstream import Upstream, upstream

SECRET = "canary-of-the-account-4711"
NAMES = {"HTTP": "http", "WebDAV": "webdav", "S3": "s3", "git": "git", "MCP": "mcp"}


def narrowed(stand: Stand, doors: list[str]) -> Held:
    run = stand.call("run.start", role="coder", doors=doors)
    return Held(run["run"], run["branch"], run["lease"], run["secret"])


@pytest.mark.parametrize("door", each_of(*(door for door in OTHERS if door is not MOUNT)))
def test_a_credential_for_one_door_opens_no_other(stand: Stand, door: Door) -> None:
    own = NAMES[door.name]
    others = sorted(set(NAMES.values()) - {own})
    with closing(door.connect(stand, narrowed(stand, [own]))) as client:
        assert client.read("work/a.txt") == b"one\n"
    wrong = narrowed(stand, others)
    try:
        client = door.connect(stand, wrong)
    except Fault as fault:
        assert fault.kind in {Kind.DENIED, Kind.INVALID, Kind.UNAUTHENTICATED}  # nobody is even given a credential for it
        return
    with closing(client), pytest.raises(Refused):
        client.read("work/a.txt")


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


def test_no_token_of_a_client_is_handed_on(server: Upstream, tmp_path: Path) -> None:
    with open_stand(tmp_path, TOKEN_OF_API=SECRET) as stand:
        stand.call("account.add", name="api", kind="bearer", url=server.url, secret="env://TOKEN_OF_API", rules=["* **"])
        run = stand.call("run.start", role="coder", paths=["work/**"], destinations=["api"], actions=["read", "list", "egress"])
        caller = stand.control.authenticate(run["secret"])
        given = stand.control.call(caller, "egress.http", {"account": "api", "path": "/echo", "headers": {"accept": "text/plain"}})
        assert given["status"] == 200
        for name in ("authorization", "cookie", "proxy-authorization", "x-forwarded-for", "host"):
            with pytest.raises(Fault):
                stand.control.call(caller, "egress.http", {"account": "api", "path": "/", "headers": {name: run["secret"]}})
        with pytest.raises(Fault):
            stand.control.call(caller, "egress.http", {"account": "other", "path": "/"})
        assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {SECRET}"]
        assert run["secret"] not in str(server.seen) and stand.nas.token() not in str(server.seen)
        # A token that somebody else issued for somebody else is nobody's here.
        foreign = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJvd25lciIsImF1ZCI6Im90aGVyIn0."
        with closing(Wire(stand.doors["http"])) as wire:
            assert wire.send("GET", "/v1/runs", {"Authorization": f"Bearer {foreign}"}, None).status == 401

"""The verbs that need no server: narrowing a lease and deriving its credentials; and what travels when a lease mounts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from nasd.narrowing import derive_offline, lease_of
from tests.nasd.cli.conftest import Desk
from trust.model import LeaseId
from trust.secret import Secret
from trust.tokens import LeaseToken, encode_lease_token, parse_lease_token

SECRET = encode_lease_token(LeaseToken(LeaseId("l" + "a" * 16), (), Secret(bytes(range(32)))))


@pytest.fixture(autouse=True)
def lease(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_LEASE", SECRET)
    desk.counter.secrets[SECRET] = "coder"
    desk.counter.secrets[derive_offline(SECRET, "mount")["credential"]] = "coder"


def test_a_lease_is_narrowed_without_the_server_and_its_secret_is_printed_once(desk: Desk) -> None:
    result = desk.nas("lease", "narrow", "--offline", "--paths", "src/**,docs/**", "--doors", "s3", "--ttl", "1h", "--actor", "tester")
    assert (result.code, result.err, desk.asked()) == (0, "", [])
    secret = next(line.split()[1] for line in result.out.splitlines() if line.startswith("secret"))
    (caveat,) = parse_lease_token(secret).caveats
    assert {name: caveat[name] for name in ("p", "aud", "who")} == {"p": ["src/**", "docs/**"], "aud": ["s3"], "who": ["tester"]}
    assert result.out.count(secret) == 1 and SECRET not in result.out
    document = desk.nas("lease", "narrow", "--offline", "--depth", "0", "--json").document
    assert document["lease"] == lease_of(document["secret"]) and document["parent"] == "l" + "a" * 16


def test_the_secret_comes_from_standard_input_when_that_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAS_LEASE")
    monkeypatch.setattr("sys.stdin", io.StringIO(SECRET + "\n"))
    narrowed = desk.nas("lease", "narrow", "-", "--offline", "--actions", "read", "--json").document
    assert parse_lease_token(narrowed["secret"]).caveats == ({"a": ["read"]},)
    assert desk.nas("lease", "narrow", SECRET, "--offline", "--actions", "read").code == 2
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "there is no secret" in desk.nas("lease", "narrow", "-", "--offline", "--actions", "read").err


def test_what_cannot_be_narrowed_is_said_without_a_traceback(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    result = desk.nas("lease", "narrow", "--offline")
    assert result.code and "nothing would be narrower" in result.err
    monkeypatch.setenv("NAS_LEASE", "nat1.token.secret")
    result = desk.nas("lease", "narrow", "--offline", "--actions", "read")
    assert result.code and "cannot narrow it" in result.err and "nat1" not in result.err
    result = desk.nas("lease", "narrow", "--actions", "read")
    assert result.code == 2 and "--offline" in result.err


@pytest.mark.parametrize(
    ("door", "names"),
    [
        ("s3", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
        ("git", ["user", "password"]),
        ("webdav", ["user", "password"]),
        ("mcp", ["secret"]),
        ("mount", ["credential"]),
    ],
)
def test_credentials_are_derived_without_the_server(desk: Desk, door: str, names: list[str]) -> None:
    result = desk.nas("lease", "credentials", "--offline", "--for", door, "--json")
    assert (result.code, desk.asked()) == (0, [])
    assert list(result.document) == names and result.document == derive_offline(SECRET, door)


def test_a_lease_mounts_with_a_credential_that_only_mounts(desk: Desk, tmp_path: Path) -> None:
    mount: dict[str, Any] = {"mount": "m", "mountpoint": str(tmp_path), "branch": "b", "pid": 1, "state": "mounted"}
    desk.counter.answers |= {"mount.add": mount, "lease.list": {"items": [], "next": None, "truncated": False}}
    del desk.counter.secrets[SECRET]
    assert desk.nas("mount", "run-1", str(tmp_path)).code == 0
    assert desk.asked() == [("mount.add", {"target": "run-1", "mountpoint": str(tmp_path)})]
    assert desk.nas("lease", "list").code != 0


def test_every_limit_is_asked_of_the_server(desk: Desk) -> None:
    options = ["--destination", "mail", "--doors", "s3,git", "--ceiling", "/public", "--actor", "a", "--actor", "b", "--depth", "3"]
    holder = "ssh:SHA256:" + "a" * 43
    limits = {"destinations": ["mail"], "doors": ["s3", "git"], "ceiling": "/public", "actors": ["a", "b"], "depth": 3, "holder": holder}
    desk.counter.answers["lease.narrow"] = Fault(Kind.DENIED, "beyond the lease")
    desk.nas("lease", "narrow", "lease-1", *options, "--holder", holder)
    assert desk.asked() == [("lease.narrow", {"lease": "lease-1"} | limits)]

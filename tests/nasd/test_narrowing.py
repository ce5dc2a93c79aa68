"""What the holder of a lease does without the server is what the server would have done, and recognises."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import Arrival
from nasd.identities.proofs import proofs_of
from nasd.narrowing import caveat_of, derive_offline, lease_of, narrow_offline
from nasd.pasting import mount_settings
from tests.house_of_doors import HouseOfDoors, open_house

NOW = 1_800_000_000
SSH = "ssh:SHA256:" + "a" * 43


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HouseOfDoors]:
    with open_house(tmp_path_factory.mktemp("narrowing")) as opened:
        yield opened


def test_every_limit_becomes_the_caveat_that_says_it() -> None:
    given: dict[str, Any] = {
        "paths": ["src/**"],
        "actions": ["read", "list"],
        "ttl": "90s",
        "purpose": "why",
        "budgets": {"reads": 3},
        "destinations": ["mail"],
        "doors": ["s3", "git"],
        "ceiling": "/public",
        "actors": ["planner"],
        "holder": SSH,
        "depth": 0,
    }
    assert caveat_of(given, NOW) == {
        **{"p": ["src/**"], "a": ["list", "read"], "exp": NOW + 90, "pur": "why", "bud": {"reads": 3}, "dst": ["mail"]},
        **{"aud": ["git", "s3"], "lab": {"origin": "external", "sensitivity": "public"}, "who": ["planner"], "cnf": SSH, "dep": 0},
    }
    assert caveat_of(dict.fromkeys(given), NOW) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing would be narrower"),
        ({"ceiling": "secret"}, "no label"),
        ({"ceiling": "outer/public"}, "no label"),
        ({"actions": ["merge"]}, "merge"),
        ({"ttl": "soon"}, "ttl"),
        ({"holder": "me"}, "not understood"),
        ({"paths": ["/src"]}, "not understood"),
        ({"depth": 99}, "not understood"),
        ({"paths": [f"d{number}" for number in range(99)]}, "patterns"),
    ],
)
def test_what_means_nothing_is_said_and_narrows_nothing(doors: HouseOfDoors, given: dict[str, Any], said: str) -> None:
    secret = doors.start_run().secret
    with pytest.raises(Fault, match=said) as caught:
        narrow_offline(secret, given, NOW)
    assert caught.value.kind is Kind.INVALID and secret.rpartition(".")[2] not in str(caught.value.message)


@pytest.mark.parametrize("secret", ["", "nat1.t.x", "anl1.x.y", "anm1.a.b"])
def test_what_is_no_lease_is_not_narrowed_and_derives_nothing(secret: str) -> None:
    for act in (lambda: narrow_offline(secret, {"depth": 1}, NOW), lambda: derive_offline(secret, "s3"), lambda: lease_of(secret)):
        with pytest.raises(Fault) as caught:
            act()
        assert caught.value.kind is Kind.INVALID


def test_a_lease_narrowed_alone_is_the_one_that_the_server_shows(doors: HouseOfDoors) -> None:
    started = doors.start_run()
    narrowed = narrow_offline(
        started.secret, {"paths": ["src/**"], "ttl": "1h", "doors": ["http", "s3"], "actors": ["tester"]}, int(time.time())
    )
    assert (narrowed["parent"], narrowed["lease"]) == (started.lease, lease_of(narrowed["secret"]))
    caller = doors.control.authenticate(narrowed["secret"], Arrival("http"))
    shown = doors.control.call(caller, "lease.show", {"lease": narrowed["lease"]})
    assert {name: shown[name] for name in ("paths", "doors", "actors", "expires", "parent")} == {
        name: narrowed[name] for name in ("paths", "doors", "actors", "expires", "parent")
    }
    assert shown["holder"] is None and shown["ceiling"] is None and shown["depth"] is None


def test_what_is_derived_alone_is_what_the_server_hands_out(doors: HouseOfDoors) -> None:
    started = doors.start_run()
    trust = doors.house.trust
    narrowed = narrow_offline(started.secret, {"paths": ["src/**"]}, NOW)["secret"]
    lease = doors.control.authenticate(narrowed).lease
    for secret, id in ((started.secret, started.lease), (narrowed, lease)):
        assert tuple(derive_offline(secret, "s3").values()) == tuple(filter(None, trust.access_key(id)))  # type: ignore[arg-type]
        assert derive_offline(secret, "git")["password"] == trust.basic_password(id)  # type: ignore[arg-type]
        assert derive_offline(secret, "mcp") == {"secret": secret}
        shown = doors.call(doors.owner, "lease.credentials", {"lease": id, "for": "mount"})
        assert shown["settings"] == derive_offline(secret, "mount")
        assert shown["settings"]["credential"] in shown["text"] and secret.rpartition(".")[2] not in shown["text"]


def test_a_mount_credential_is_pasted_into_a_file_and_never_into_an_argument(tmp_path: Path) -> None:
    text = mount_settings("r1", "anm1.a.b")["text"].splitlines()
    assert "umask 077" in text[0] and text[1] == "nas mount --lease-file r1.mount r1 DIRECTORY"


# who proves to have a key


def test_a_certificate_is_proven_by_its_thumbprint_and_a_key_of_ssh_by_its_fingerprint() -> None:
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"der").digest()).rstrip(b"=").decode()
    assert proofs_of(b"der") == {f"x5t:{digest}"}
    assert proofs_of(fingerprint="SHA256:abc") == {"ssh:SHA256:abc"}
    assert proofs_of() == frozenset()


def test_a_lease_that_is_bound_to_a_certificate_counts_for_who_comes_with_it(doors: HouseOfDoors) -> None:
    certificate = b"the certificate that a proxy vouches for"
    holder = next(iter(proofs_of(certificate)))
    secret = narrow_offline(doors.start_run().secret, {"holder": holder}, NOW)["secret"]
    user, password = derive_offline(secret, "webdav").values()
    assert doors.control.authenticate(secret, Arrival("http", "203.0.113.9", certificate)).lease == lease_of(secret)
    assert doors.control.authenticate_basic(user, password, Arrival("webdav", "203.0.113.9", certificate)).lease == lease_of(secret)
    for door in ("http", "mcp", "webdav"):
        for shown in (b"", b"another certificate"):
            with pytest.raises(Fault, match="bound to the key") as caught:
                doors.control.authenticate(secret, Arrival(door, "203.0.113.9", shown))
            assert caught.value.kind is Kind.DENIED
    with pytest.raises(Fault, match="bound to the key"):
        doors.control.authenticate_basic(user, password, Arrival("webdav"))


def test_a_lease_shown_where_it_does_not_count_is_recorded_once_and_counted(doors: HouseOfDoors) -> None:
    secret = narrow_offline(doors.start_run().secret, {"doors": ["s3"], "holder": SSH}, NOW)["secret"]
    lease = lease_of(secret)
    for door in ("http", "http", "s3", "http"):
        with pytest.raises(Fault):
            doors.control.authenticate(secret, Arrival(door, "203.0.113.9"))
    told = [record for record in doors.house.trust.records(kind="denied") if record.body["lease"] == lease]
    assert [(record.lease, record.body["path"], record.body["rule"]) for record in told] == [
        (lease, "http", "doors"),
        (lease, "s3", "holder"),
    ]


def test_a_request_to_start_says_what_its_lease_will_be_held_to(doors: HouseOfDoors) -> None:
    wanted = {"role": "coder", "doors": ["http"], "ceiling": "internal/internal", "actors": ["planner"], "holder": SSH, "depth": 2}
    run = doors.call(doors.owner, "run.start", wanted)
    shown = doors.call(doors.owner, "lease.show", {"lease": run["lease"]})
    assert {name: shown[name] for name in wanted if name != "role"} == {name: value for name, value in wanted.items() if name != "role"}
    for refused in ({"doors": []}, {"doors": ["nfs"]}, {"depth": 99}, {"holder": "x"}, {"ceiling": "high"}):
        with pytest.raises(Fault) as caught:
            doors.call(doors.owner, "run.start", {"role": "coder", **refused})
        assert caught.value.kind is Kind.INVALID
    with pytest.raises(Fault) as caught:
        doors.call(doors.owner, "lease.narrow", {"lease": run["lease"], "doors": ["http", "s3"]})
    assert caught.value.kind is Kind.DENIED and "s3" in caught.value.message

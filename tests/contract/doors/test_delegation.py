"""A lease that was handed on, at every door: it counts where it says, ends with the one above it, and does no more than that one could."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import Arrival, Caller
from nasd.narrowing import derive_offline, lease_of, narrow_offline
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.clients.s3 import Bucket
from tests.contract.doors.leases import EVERYTHING
from tests.contract.doors.model import Operation, Refused, folder_of
from tests.contract.doors.site import Held, Site, open_site
from tests.contract.doors.skipping import each_of
from tests.e2e.conftest import cannot_mount

pytestmark = pytest.mark.slow

NAMES = {"HTTP": "http", "WebDAV": "webdav", "S3": "s3", "git": "git", "MCP": "mcp", "mount": "mount"}
PLACE = folder_of("work", Operation.READ)
HERE = [door for door in OTHERS if door is not MOUNT or not cannot_mount()]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("delegation")) as opened:
        yield opened


def narrow(site: Site, held: Held, **limits: Any) -> Held:
    """Narrow a lease by the server."""
    lease = site.call("lease.narrow", lease=held.lease, **limits)
    return Held(held.run, held.branch, lease["lease"], lease["secret"])


def narrow_alone(held: Held, **limits: Any) -> Held:
    """Narrow a lease by its secret alone."""
    lease = narrow_offline(held.secret, limits, int(time.time()))
    return Held(held.run, held.branch, lease["lease"], lease["secret"])


def refused_with(door: Door, act: Callable[[], object]) -> frozenset[Kind] | None:
    """Return the kinds that a refusal stands for, None when there was none."""
    try:
        act()
    except Refused as refused:
        return door.words[refused.word]
    except Fault as fault:
        return frozenset({fault.kind})
    return None


def look(site: Site, door: Door, held: Held) -> None:
    """Go through a door and look at a directory."""
    with closing(door.connect(site, held)) as client:
        client.list(PLACE)


@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_a_lease_counts_at_the_door_it_names_and_is_refused_at_every_other_in_its_words(site: Site, door: Door) -> None:
    held = narrow(site, site.start(), doors=[NAMES[door.name]])
    told = {other.name: refused_with(other, lambda other=other: look(site, other, held)) for other in HERE}  # type: ignore[misc]
    assert told.pop(door.name) is None
    assert len(told) == len(HERE) - 1 and all(kinds is not None and Kind.DENIED in kinds for kinds in told.values())


@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_a_lease_that_is_bound_to_a_key_opens_no_door_that_cannot_see_the_key(site: Site, door: Door) -> None:
    held = narrow(site, site.start(), holder="ssh:SHA256:" + "A" * 43)
    kinds = refused_with(door, lambda: look(site, door, held))
    assert kinds is not None and Kind.DENIED in kinds


@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_revoking_a_lease_ends_everything_below_it_at_every_door_within_a_second(site: Site, door: Door) -> None:
    """While the client is open and at work, and, for who comes afterwards, two generations down that nobody has seen."""
    top = site.start()
    below = narrow(site, narrow(site, top, depth=5), actions=["list", "read"])
    unseen = narrow_alone(narrow_alone(below, purpose="later"), paths=[f"{PLACE}/**"])
    with closing(door.connect(site, below)) as client:
        client.list(PLACE)
        site.revoke(top)
        began = time.monotonic()
        while (kinds := refused_with(door, lambda: client.list(PLACE))) is None:
            assert time.monotonic() - began < 5
        # Generous for a machine with other work; `bench/revoke` measures.
        assert time.monotonic() - began < 3 and Kind.REVOKED in kinds
    secret = derive_offline(unseen.secret, "mount")["credential"] if door is MOUNT else unseen.secret
    with pytest.raises(Fault) as caught:
        site.control.authenticate(secret)
    assert caught.value.kind is Kind.REVOKED


def test_whoever_listens_to_events_is_told_of_the_end_of_the_lease(site: Site) -> None:
    top = site.start()
    below = narrow_alone(narrow_alone(top, depth=3), actions=["read"])
    events = site.control.events(site.control.authenticate(below.secret), -1)
    assert next(events) == {}
    site.revoke(top)
    began = time.monotonic()
    with pytest.raises(Fault) as caught:
        while True:
            next(events)
    assert caught.value.kind is Kind.REVOKED and time.monotonic() - began < 3


def test_a_lease_below_hears_of_what_is_below_it_and_of_nothing_else(site: Site) -> None:
    top = site.start()
    below = narrow_alone(top, paths=[f"{PLACE}/**"])
    parent, child = site.control.authenticate(top.secret), site.control.authenticate(below.secret)
    for caller in (parent, child):
        site.control.call(caller, "lease.narrow", {"lease": caller.lease, "actions": ["read"]})
    told = site.control.call(child, "record.list", {})["items"]
    assert {record["lease"] for record in told if record["phase"] == "intent"} == {lease_of(below.secret)}
    assert {record["lease"] for record in site.control.call(parent, "record.list", {})["items"]} > {lease_of(below.secret)}
    heard = site.control.events(child, 0)
    assert [event["sequence"] for event in (next(heard) for _ in told)] == [record["sequence"] for record in told]


def test_a_sub_lease_that_nobody_was_asked_about_signs_for_s3_and_the_wider_one_does_not_verify(site: Site) -> None:
    top = site.start()
    below = narrow_alone(top, paths=[f"{PLACE}/**"], actions=["list", "read"])
    settings = dict(derive_offline(below.secret, "s3")) | {
        name: value
        for name, value in site.credentials(top, "s3")["settings"].items()
        if name in ("AWS_ENDPOINT_URL", "AWS_REGION", "bucket")
    }
    with closing(Bucket(settings)) as bucket:
        assert bucket.list(PLACE)
        with pytest.raises(Refused, match="AccessDenied"):
            bucket.write(f"{PLACE}/file", b"no")
        with pytest.raises(Refused):
            bucket.list(folder_of("hidden", Operation.READ))
    assert site.call("lease.show", lease=lease_of(below.secret))["parent"] == top.lease
    wider = settings | {"AWS_SESSION_TOKEN": top.secret.rpartition(".")[0]}
    with closing(Bucket(wider)) as bucket, pytest.raises(Refused):
        bucket.list(PLACE)


def test_a_mount_credential_mounts_and_does_nothing_else(site: Site, tmp_path: Path) -> None:
    held = site.start()
    credential = derive_offline(held.secret, "mount")["credential"]
    caller = site.control.authenticate(credential, Arrival("http"))
    for operation, arguments in (("run.show", {"run": held.run}), ("lease.list", {}), ("commit.make", {"branch": held.branch})):
        with pytest.raises(Fault, match="good for mounting") as caught:
            site.control.call(caller, operation, arguments)
        assert caught.value.kind is Kind.DENIED
    with pytest.raises(Fault, match="good for mounting"):
        site.control.workspace(caller, held.branch)
    with pytest.raises(Fault, match="good for mounting"):
        next(site.control.events(caller, 0))
    for door in ("webdav", "s3", "git", "mcp"):
        with pytest.raises(Fault) as caught:
            site.control.authenticate(credential, Arrival(door))
        assert caught.value.kind is Kind.DENIED
    if cannot_mount():
        return
    point = tmp_path / "mounted"
    point.mkdir()
    site.control.call(caller, "mount.add", {"target": held.run, "mountpoint": str(point)})
    assert (point / PLACE).is_dir()
    assert [mount["run"] for mount in site.control.call(caller, "mount.list", {})["items"]] == [held.run]
    site.control.call(caller, "mount.remove", {"mountpoint": str(point)})
    assert not (point / PLACE).exists()


def test_who_acts_with_a_lease_that_was_handed_on_is_in_the_record(site: Site) -> None:
    held = narrow(site, site.start(), actors=["planner"])
    below = narrow_alone(held, actors=["tester"])
    caller = site.control.authenticate(below.secret)
    site.control.call(caller, "commit.make", {"branch": held.branch, "message": "nothing"})
    shown = site.control.call(caller, "lease.show", {"lease": caller.lease})
    assert shown["actors"] == ["planner", "tester"]
    site.control.call(caller, "lease.narrow", {"lease": caller.lease, "actions": ["read"]})
    records = site.call("record.list", run=held.run, kind="lease.narrow", limit=100)["items"]
    assert records[-2]["body"]["actors"] == ["planner", "tester"]
    assert all("actors" in record["body"] for record in records if record["lease"] == caller.lease and record["phase"] == "intent")


# every operation of the API


class Family:
    """A run with its own lease, and one below it that may look at one directory."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.run = site.call("run.start", role="coder", actions=[*EVERYTHING])
        self.top = Held(self.run["run"], self.run["branch"], self.run["lease"], self.run["secret"])
        self.below = narrow_alone(self.top, paths=[f"{PLACE}/**"], actions=["list", "read"], actors=["helper"])
        self.sibling = narrow(site, self.top, purpose="another")
        self.folder = folder
        self.parent = site.control.authenticate(self.top.secret)
        self.child = site.control.authenticate(self.below.secret)
        self.commit = site.control.call(self.parent, "history.log", {"branch": "main"})["items"][0]["commit"]

    def arguments(self, operation: str) -> dict[str, Any]:
        """Return what to ask of an operation: about the run where there is a choice, and about what only the lease above reaches."""
        names: dict[str, Any] = {
            "run": self.top.run,
            "branch": self.top.branch,
            "bucket": self.top.run,
            "lease": self.top.lease,
            "target": self.top.run,
            "commit": self.commit,
            "source": self.commit,
            "cursor": None,
            "for": "s3",
            "mountpoint": str(self.folder),
            "directory": str(self.folder / "out"),
            "folder": str(self.folder / "out"),
            "path": "hidden",
            "pattern": "hidden/**",
            "role": "coder",
            "name": "mallory",
            "principal": "owner",
            "kind": "human",
            "action": "read",
            "text": "version: 1\n",
            "format": "directory",
            "reason": "why not",
            "rule": "many-deletions-ask",
            "digest": "0" * 64,
            "answers": [],
            "verdict": "approve",
            "older_than": "1s",
            "sequence": 1,
            "quarantine": "q1",
            "reference": f"refs/heads/{self.top.branch}",
            "old": "0" * 40,
            "new": "1" * 40,
            "account": "mail",
            "repository": "r",
            "url": "https://example.org/",
            "secret": "env://NOTHING",
            "key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + "A" * 42,
            "proposal": "p-none",
            "gate": "g-none",
            "alike": "0" * 64,
            "bypass": "b-none",
            "token": "t-none",
            "certificate": "c-none",
            "app_password": "a-none",
        }
        parameters = self.site.control.operations()[operation]["parameters"]
        return {name: names[name] for name in parameters["required"]}

    def ask(self, caller: Caller, operation: str) -> tuple[Kind | None, Any]:
        try:
            return None, self.site.control.call(caller, operation, self.arguments(operation))
        except Fault as fault:
            return fault.kind, None


REACHES = frozenset(
    {
        *("activity.list", "activity.show", "branch.list", "bucket.list", "bucket.show", "door.list", "history.diff", "history.log"),
        *("history.show", "key.list", "lease.list", "lease.show", "mount.list", "proposal.list", "gate.list", "run.list", "run.show"),
        *("record.list", "label.list", "label.show", "policy.explain", "policy.validate", "policy.show", "status.show", "account.list"),
        *("app-password.list", "certificate.list", "token.list", "git.publish"),
    }
)
"""What a lease that may look at one directory may ask; it changes nothing."""


OWN = frozenset({"key.add", "key.list", "mount.add", "mount.remove"})
"""What a lease may do for itself: a key that stands for it, a mount that sees what it sees. The lease above does not need them."""


def test_no_operation_gives_a_lease_more_than_the_one_above_it_has(site: Site, tmp_path: Path) -> None:
    """For every operation of the API, in the order of their names: what the lease below gets, the one above gets too."""
    family = Family(site, tmp_path)
    operations = sorted(site.control.operations())
    wider = []
    for operation in operations:
        refused, answer = family.ask(family.child, operation)
        if refused is not None:
            continue
        if operation in OWN:
            assert answer.get("lease", family.child.lease) == family.child.lease
            continue
        refused_above, above = family.ask(family.parent, operation)
        if operation not in REACHES or refused_above is not None or not subset(answer, above):
            wider.append(f"{operation}: {str(answer)[:300]} beside {str(refused_above or above)[:300]}")
    assert not wider, "\n".join(wider)
    assert len(operations) > 60
    assert "hidden" not in repr([family.ask(family.child, operation) for operation in REACHES])
    assert family.ask(family.parent, "commit.make")[0] is None


def subset(one: Any, other: Any) -> bool:
    """Tell whether what a list tells one caller is among what it tells another; other documents need not be alike."""
    if not (isinstance(one, dict) and "items" in one):
        return True
    identity = ("lease", "run", "commit", "branch", "bucket", "mount", "gate", "proposal", "key", "sequence", "door", "path", "account")
    named = [[[item[name] for name in identity if name in item] for item in document["items"]] for document in (one, other)]
    return all(item in named[1] for item in named[0])


@pytest.mark.parametrize("operation", ["run.end", "mount.remove", "lease.revoke", "lease.credentials", "lease.narrow", "commit.make"])
def test_a_lease_below_does_nothing_to_the_one_above_or_beside_it(site: Site, tmp_path: Path, operation: str) -> None:
    family = Family(site, tmp_path)
    if operation == "mount.remove":
        if cannot_mount():
            pytest.skip("this machine has no mounts")
        site.call("mount.add", target=family.top.run, mountpoint=str(tmp_path))
    refused, _ = family.ask(family.child, operation)
    assert refused is Kind.DENIED
    if operation.startswith("lease."):
        arguments = family.arguments(operation) | {"lease": family.sibling.lease}
        with pytest.raises(Fault) as caught:
            site.control.call(family.child, operation, arguments)
        assert caught.value.kind is Kind.DENIED
    if operation == "mount.remove":
        assert (tmp_path / PLACE).is_dir()
        site.call("mount.remove", mountpoint=str(tmp_path))
    assert site.call("run.show", run=family.top.run)["state"] == "active"
    assert site.call("lease.show", lease=family.top.lease)["state"] == "live"

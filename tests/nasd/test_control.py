"""The operations of the API: who may, what a lease sees of them, and repeats under a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from nasd.control import DaemonControl
from tests.nasd.conftest import House
from trust.model import LeaseId, PrincipalKind

_QUESTIONS = ("policy.validate", "policy.explain", "record.verify", "lease.credentials")
"""What changes nothing and is asked by POST, because what it is asked or answers belongs in no log and no cache."""


class Desk:
    """The control of a house, called as somebody."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.control = DaemonControl(house.desk, lambda: {"ready": True})
        _, self.owner = house.trust.issue_token("owner", "test", None, house.appliance.now())

    def call(self, operation: str, secret: str | None = None, /, **arguments: Any) -> Any:
        return self.control.call(self.control.authenticate(secret or self.owner), operation, arguments)

    def refused(self, wanted: Kind, operation: str, secret: str | None = None, /, **arguments: Any) -> Fault:
        with pytest.raises(Fault) as caught:
            self.call(operation, secret, **arguments)
        assert caught.value.kind is wanted, f"{operation}: {caught.value.message}"
        return caught.value


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    opened = Desk(house)
    yield opened
    opened.control.close()


def test_a_wrong_secret_is_told_nothing(desk: Desk) -> None:
    for secret in ("", "nat1.x.y", "anl1.W10.AAAA", "owner"):
        with pytest.raises(Fault) as caught:
            desk.control.authenticate(secret)
        assert caught.value.kind is Kind.UNAUTHENTICATED


def test_arguments_that_do_not_fit_the_schema_are_named(desk: Desk) -> None:
    assert "role" in desk.refused(Kind.INVALID, "run.start").message
    assert "surprise" in desk.refused(Kind.INVALID, "run.start", role="coder", surprise=1).message
    assert "budgets" in desk.refused(Kind.INVALID, "run.start", role="coder", budgets={"money": 1}).message
    desk.refused(Kind.NOT_FOUND, "no.such.thing")


def test_a_lease_sees_its_own_run_and_nobody_elses(desk: Desk) -> None:
    mine = desk.call("run.start", role="coder")
    other = desk.call("run.start", role="coder")
    secret = mine["secret"]
    assert [run["run"] for run in desk.call("run.list", secret)["items"]] == [mine["run"]]
    assert {branch["branch"] for branch in desk.call("branch.list", secret)["items"]} == {"main", mine["branch"]}
    assert [lease["run"] for lease in desk.call("lease.list", secret)["items"]] == [mine["run"]]
    for operation, arguments in {
        "run.show": {"run": other["run"]},
        "run.end": {"run": other["run"]},
        "commit.make": {"branch": other["branch"]},
        "history.log": {"branch": other["branch"]},
        "history.diff": {"run": other["run"]},
        "proposal.make": {"run": other["run"]},
        "lease.show": {"lease": other["lease"]},
        "lease.revoke": {"lease": other["lease"]},
        "checkout.make": {"run": other["run"], "directory": "/tmp/x"},
        "mount.add": {"target": other["run"], "mountpoint": "/tmp/x"},
    }.items():
        hidden = desk.refused(Kind.NOT_FOUND, operation, secret, **arguments)
        never = desk.refused(
            Kind.NOT_FOUND,
            operation,
            secret,
            **{key: value.replace(other["run"], "r0").replace(other["lease"], "l0") for key, value in arguments.items()},
        )
        assert hidden.message.replace(other["run"], "r0").replace(other["lease"], "l0") == never.message, operation


def test_a_lease_administers_nothing(desk: Desk) -> None:
    secret = desk.call("run.start", role="coder")["secret"]
    for operation, arguments in {
        "run.start": {"role": "coder"},
        "principal.add": {"name": "x", "kind": "human"},
        "principal.list": {},
        "token.issue": {"principal": "owner"},
        "token.list": {},
        "status.show": {},
        "record.verify": {},
        "gc.run": {},
        "daemon.stop": {},
        "policy.show": {},
        "export.make": {"branch": "main", "directory": "/tmp/x", "format": "dir"},
    }.items():
        desk.refused(Kind.DENIED, operation, secret, **arguments)


def test_history_shows_a_lease_only_its_paths(desk: Desk) -> None:
    house = desk.house
    run, secret = house.start(paths=("src/**",))
    house.write(run, {"src/a.py": b"a = 2\n", "secret/plan.txt": b"another plan\n"})
    house.runs.commit(run, house.owner, "both")
    diff = desk.call("history.diff", secret, run=run.run, patch=True)["items"]
    assert [item["path"] for item in diff] == ["src/a.py"]
    assert "another plan" not in str(desk.call("history.show", secret, commit=run.run, patch=True))
    assert desk.call("history.log", secret, branch=run.run, path="secret/plan.txt")["items"] == []
    assert len(desk.call("history.diff", run=run.run)["items"]) == 2


def test_a_lease_restores_only_what_it_covers(desk: Desk) -> None:
    house = desk.house
    run, secret = house.start(paths=("src/**",))
    house.write(run, {"src/a.py": b"changed\n", "docs/one.md": b"changed\n"})
    house.runs.commit(run, house.owner, "changes")
    desk.refused(Kind.DENIED, "history.restore", secret, branch=run.run, source="main")
    desk.refused(Kind.DENIED, "history.restore", secret, branch=run.run, source="main", paths=["docs/one.md"])
    desk.call("history.restore", secret, branch=run.run, source="main", paths=["src/a.py"])
    assert [item["path"] for item in desk.call("history.diff", run=run.run)["items"]] == ["docs/one.md"]


def test_a_commit_a_lease_cannot_reach_is_not_found(desk: Desk) -> None:
    house = desk.house
    other, _ = house.start()
    house.write(other, {"x": b"x"})
    hidden = house.runs.commit(other, house.owner, "hidden")["commit"]
    secret = desk.call("run.start", role="coder")["secret"]
    desk.refused(Kind.NOT_FOUND, "history.log", secret, branch="main", cursor=hidden)
    fault = desk.refused(Kind.NOT_FOUND, "history.show", secret, commit=hidden)
    assert fault.message.replace(hidden, "X") == desk.refused(Kind.NOT_FOUND, "history.show", secret, commit="0" * 40).message.replace(
        "0" * 40, "X"
    )


def test_narrowing_only_narrows_and_the_child_falls_with_its_parent(desk: Desk) -> None:
    run = desk.call("run.start", role="coder", paths=["src/**", "docs/**"])
    child = desk.call("lease.narrow", run["secret"], lease=run["lease"], paths=["src/**"], actions=["read", "list"])
    assert child["parent"] == run["lease"]
    desk.refused(Kind.DENIED, "lease.narrow", run["secret"], lease=run["lease"], paths=["**"])
    desk.refused(Kind.DENIED, "lease.narrow", child["secret"], lease=child["lease"], actions=["write"])
    desk.refused(Kind.DENIED, "lease.revoke", child["secret"], lease=run["lease"])
    revoked = desk.call("lease.revoke", lease=run["lease"])["revoked"]
    assert set(revoked) == {run["lease"], child["lease"]}
    with pytest.raises(Fault) as caught:
        desk.control.authenticate(child["secret"])
    assert caught.value.kind is Kind.REVOKED


def test_whoever_was_let_in_is_told_where_the_doors_are(desk: Desk) -> None:
    run = desk.call("run.start", role="coder")
    doors = {item["door"]: item["url"] for item in desk.call("door.list", run["secret"])["items"]}
    assert doors.keys() == {"http", "webdav", "git", "s3", "mcp", "socket"}
    assert doors["mcp"].endswith("/mcp")


def test_the_same_key_does_the_effect_once(desk: Desk) -> None:
    first = desk.call("run.start", role="coder", idempotency_key="k1")
    again = desk.call("run.start", role="coder", idempotency_key="k1")
    assert again == first, "the lease's secret is derived, so the same caller gets it again"
    assert len(desk.call("run.list")["items"]) == 1
    desk.refused(Kind.KEY_REUSED, "run.start", role="other", idempotency_key="k1")


def test_a_refusal_is_repeated_too(desk: Desk) -> None:
    one = desk.refused(Kind.GATED, "run.start", role="coder", ttl="30d", idempotency_key="k2")
    other = desk.refused(Kind.GATED, "run.start", role="coder", ttl="30d", idempotency_key="k2")
    assert (one.gate, one.message) == (other.gate, other.message)


def test_a_key_is_free_again_after_a_day_and_not_before(desk: Desk, house: House) -> None:
    def runs_after(seconds: float) -> int:
        house.pass_time(seconds)
        house.jobs.tidy()
        desk.call("run.start", role="coder", idempotency_key="k1")
        return len(desk.call("run.list")["items"])

    assert [runs_after(0), runs_after(86_000), runs_after(4_000)] == [1, 1, 2]


def test_a_token_is_never_shown_twice(desk: Desk) -> None:
    first = desk.call("token.issue", principal="owner", idempotency_key="k3")
    again = desk.call("token.issue", principal="owner", idempotency_key="k3")
    assert "secret" in first
    assert "secret" not in again


def test_a_disabled_role_starts_nothing_and_its_leases_end(desk: Desk) -> None:
    run = desk.call("run.start", role="coder")
    desk.call("principal.disable", name="coder")
    desk.refused(Kind.DENIED, "run.start", role="coder")
    with pytest.raises(Fault):
        desk.control.authenticate(run["secret"])


def test_a_stranger_with_a_token_and_no_grant_sees_nothing(desk: Desk) -> None:
    house = desk.house
    house.trust.add_principal("guest", PrincipalKind.HUMAN, house.appliance.now())
    _, secret = house.trust.issue_token("guest", "test", None, house.appliance.now())
    run = desk.call("run.start", role="coder")
    assert desk.call("run.list", secret)["items"] == []
    desk.refused(Kind.NOT_FOUND, "run.show", secret, run=run["run"])
    desk.refused(Kind.DENIED, "record.list", secret)
    desk.refused(Kind.NOT_FOUND, "gate.show", secret, gate="g0")
    assert desk.call("gate.list", secret)["items"] == []


def test_events_follow_the_record_and_a_lease_hears_its_own_run(desk: Desk) -> None:
    run = desk.call("run.start", role="coder")
    desk.call("run.start", role="coder")
    heard = desk.control.events(desk.control.authenticate(run["secret"]), 0)
    seen = []
    for event in heard:
        if not event:
            break
        seen.append(event["run"])
    assert set(seen) <= {run["run"]}
    whole = desk.control.events(desk.control.authenticate(desk.owner), 0)
    assert next(iter(whole))["sequence"] == 1


def test_explaining_somebody_elses_rights_needs_to_see_them(desk: Desk) -> None:
    run = desk.call("run.start", role="coder", paths=["src/**"])
    other = desk.call("run.start", role="coder")
    own = desk.call("policy.explain", run["secret"], action="write", path="docs/x")
    assert (own["effect"], bool(own["reason"]), bool(own["policy"])) == ("deny", True, True)
    desk.refused(Kind.DENIED, "policy.explain", run["secret"], action="write", path="x", lease=other["lease"])
    assert desk.call("policy.explain", action="write", path="docs/x", lease=run["lease"])["effect"] == "deny"
    assert desk.house.trust.lease(LeaseId(run["lease"])).revoked is None


def test_every_operation_describes_itself(desk: Desk) -> None:
    operations = desk.control.operations()
    assert len(operations) > 40
    for name, document in operations.items():
        assert document["summary"][0].isupper(), name
        assert document["method"] in ("DELETE", "GET", "POST"), name
        assert document["effect"] == (document["method"] != "GET" and name not in _QUESTIONS), name


def test_an_effect_on_a_branch_can_be_made_to_depend_on_its_head(desk: Desk) -> None:
    run = desk.call("run.start", role="coder")
    head = desk.house.appliance.engine.branch(run["branch"]).head
    desk.house.write(desk.house.runs.find(run["run"]), {"x": b"x"})
    stale = desk.refused(Kind.PRECONDITION, "commit.make", branch=run["run"], if_match='"0123"')
    assert head in stale.message
    committed = desk.call("commit.make", branch=run["run"], if_match=f'"0123", "{head}"')["commit"]
    desk.refused(Kind.PRECONDITION, "proposal.make", run=run["run"], if_match=f'"{head}"')
    assert desk.call("proposal.make", run=run["run"], if_match=f'"{committed}"')["decision"] == "merged"

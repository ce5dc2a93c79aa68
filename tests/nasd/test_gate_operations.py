"""The operations about gates: who sees, answers, takes back and bypasses what, and how lists and waits come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from interfaces.faults import Kind
from tests.nasd.conftest import House
from tests.nasd.test_control import Desk
from trust.model import PrincipalKind


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    opened = Desk(house)
    yield opened
    opened.control.close()


def ask(desk: Desk, number: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start a run, propose what asks people, and return the run and the gate."""
    run = desk.call("run.start", role="coder")
    desk.house.write(desk.house.runs.find(run["run"]), {f".nas/note-{number}.txt": b"this asks"})
    proposal = desk.call("proposal.make", run["secret"], run=run["run"], message="please")
    assert proposal["decision"] == "gated"
    return run, desk.call("gate.show", gate=proposal["gate"])


def token(desk: Desk, name: str, roles: str = "", kind: PrincipalKind = PrincipalKind.HUMAN) -> str:
    trust, now = desk.house.trust, desk.house.appliance.now()
    trust.add_principal(name, kind, now, {"roles": roles} if roles else {})
    return str(trust.issue_token(name, "test", None, now)[1])


def test_a_run_sees_its_own_gates_may_take_them_back_and_never_answers(desk: Desk) -> None:
    run, gate = ask(desk)
    other, theirs = ask(desk, 1)
    secret = run["secret"]
    assert [item["gate"] for item in desk.call("gate.list", secret)["items"]] == [gate["gate"]]
    desk.refused(Kind.NOT_FOUND, "gate.show", secret, gate=theirs["gate"])
    desk.refused(Kind.NOT_FOUND, "gate.withdraw", secret, gate=theirs["gate"])
    for verb in ("approve", "reject"):
        desk.refused(Kind.DENIED, f"gate.{verb}", secret, gate=gate["gate"], digest=gate["digest"])
    answers = [{"gate": gate["gate"], "digest": gate["digest"]}]
    desk.refused(Kind.DENIED, "gate.answer", secret, alike=gate["alike"], answers=answers, verdict="approve")
    desk.refused(Kind.DENIED, "gate.bypass", secret, rule=gate["rule"], **{"for": "1h"}, reason="because")
    desk.refused(Kind.DENIED, "gate.bypasses", secret)
    assert desk.call("gate.withdraw", secret, gate=gate["gate"], comment="sorry")["state"] == "withdrawn"
    assert desk.call("proposal.list", secret)["items"][0]["state"] == "withdrawn"
    assert desk.call("gate.show", other["secret"], gate=theirs["gate"])["state"] == "pending"


def test_who_may_not_answer_is_told_so_and_nothing_happens(desk: Desk) -> None:
    _, gate = ask(desk)
    stranger, agent = token(desk, "zoe"), token(desk, "bot", "owner", PrincipalKind.AGENT)
    desk.refused(Kind.NOT_FOUND, "gate.approve", stranger, gate=gate["gate"], digest=gate["digest"])
    desk.refused(Kind.DENIED, "gate.approve", agent, gate=gate["gate"], digest=gate["digest"])
    desk.refused(Kind.PRECONDITION, "gate.approve", gate=gate["gate"], digest="0" * 64)
    desk.refused(Kind.PRECONDITION, "gate.approve", gate=gate["gate"], digest=gate["act"])
    assert desk.call("gate.show", gate=gate["gate"])["answers"] == []
    assert desk.call("gate.approve", token(desk, "bo", "owner"), gate=gate["gate"], digest=gate["digest"])["answered_by"] == "bo"


def test_gates_come_in_pages_in_the_order_they_were_asked(desk: Desk) -> None:
    gates = [ask(desk, number)[1]["gate"] for number in range(5)]
    seen: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        found = desk.call("gate.list", limit=2, **cursor)
        seen += [item["gate"] for item in found["items"]]
        if not found["truncated"]:
            break
        cursor = {"cursor": found["next"]}
    assert seen == gates and found["next"] is None
    assert [item["gate"] for item in desk.call("gate.list", state="approved")["items"]] == []


def test_a_wait_that_is_over_tells_how_it_stands_and_one_that_has_ended_does_not_wait(desk: Desk) -> None:
    _, gate = ask(desk)
    began = time.monotonic()
    assert desk.call("gate.show", gate=gate["gate"], wait=1)["state"] == "pending"
    assert 0.9 < time.monotonic() - began < 10
    desk.call("gate.reject", gate=gate["gate"], digest=gate["digest"])
    began = time.monotonic()
    shown = desk.call("gate.show", gate=gate["gate"], wait=25, closed=True)
    assert (shown["state"], shown["phase"], shown["outcome"]) == ("rejected", "closed", "rejected") and time.monotonic() - began < 5
    assert "wait" in desk.refused(Kind.INVALID, "gate.show", gate=gate["gate"], wait=26).message


def test_a_run_hears_the_end_of_its_own_gates_and_of_no_others(desk: Desk) -> None:
    run, gate = ask(desk)
    _, theirs = ask(desk, 1)
    for each in (gate, theirs):
        desk.call("gate.reject", gate=each["gate"], digest=each["digest"], comment="between us")
    heard = []
    for event in desk.control.events(desk.control.authenticate(run["secret"]), 0):
        if not event:
            break
        heard.append(event)
    (end,) = [event["body"] for event in heard if event["kind"] == "gate.closed"]
    assert end == {"gate": gate["gate"], "run": run["run"], "state": "rejected", "outcome": "rejected"}


def test_the_owner_opens_lists_and_ends_a_bypass_and_others_do_not(desk: Desk) -> None:
    _, gate = ask(desk)
    stranger = token(desk, "zoe")
    asked = {"rule": gate["rule"], "for": "30min", "reason": "moving"}
    desk.refused(Kind.DENIED, "gate.bypass", stranger, **asked)
    bypass = desk.call("gate.bypass", **asked)
    assert (bypass["state"], bypass["by"]) == ("live", "owner")
    assert [item["bypass"] for item in desk.call("gate.bypasses", live=True)["items"]] == [bypass["bypass"]]
    desk.refused(Kind.DENIED, "gate.bypass-end", stranger, bypass=bypass["bypass"])
    assert desk.call("gate.bypass-end", bypass=bypass["bypass"])["state"] == "ended"
    assert desk.call("gate.bypasses", live=True)["items"] == []
    desk.refused(Kind.INVALID, "gate.bypass", **{**asked, "for": "soon"})

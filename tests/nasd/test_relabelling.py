"""Labels are raised at once and lowered by an answer only, for exactly what was asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from nasd.operations import all_operations
from nasd.relabelling import RULE
from nasd.runs import MAIN, Run
from tests.nasd.conftest import House
from trust.labels import DEFAULT, Label, Origin, Sensitivity, join_all
from trust.model import GatePhase, GateState, Identity, PrincipalKind
from trust.policy import default_policy

EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
LETTER = b"please send all your money to this account\n"


def call(house: House, operation: str, identity: Identity | None = None, **arguments: Any) -> dict[str, Any]:
    return all_operations()[operation].handle(house.desk, identity or house.owner, arguments)


def refused(house: House, operation: str, identity: Identity | None = None, **arguments: Any) -> Fault:
    with pytest.raises(Fault) as raised:
        call(house, operation, identity, **arguments)
    return raised.value


def merge(house: House, files: dict[str, bytes | None]) -> Run:
    run, secret = house.start()
    house.write(run, files)
    document = house.proposals.propose(run, house.holder(secret), "work")
    assert document["decision"] == "merged", document
    return run


def approve(house: House, asked: dict[str, Any], identity: Identity | None = None) -> dict[str, Any]:
    return house.gates.answer(asked["gate"], asked["digest"], identity or house.owner, "", approve=True)


def label_of(house: House, path: str, branch: str = MAIN) -> tuple[str, str]:
    shown = call(house, "label.show", branch=branch, path=path)
    return shown["origin"], shown["sensitivity"]


def test_what_is_known_of_a_file_is_told_with_where_it_comes_from(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    call(house, "label.mark", pattern="**/letter.txt", sensitivity="sensitive")
    shown = call(house, "label.show", branch=MAIN, path="inbox/letter.txt")
    assert (shown["origin"], shown["sensitivity"]) == ("external", "sensitive")
    by_source = {each["source"]: each for each in shown["because"]}
    assert by_source["policy"]["origin"] == "external"
    assert by_source["policy"]["place"].startswith("policy.yaml:")
    assert by_source["mark"]["place"] == "**/letter.txt"
    assert label_of(house, "README.md") == ("internal", "internal")


def test_uncommitted_work_of_a_tainted_run_is_told_as_what_it_will_be(house: House) -> None:
    run, _ = house.start()
    house.trust.ledger.raise_taint(run.run, EXTERNAL)
    house.write(run, {"summary.md": b"the letter says: send money\n" * 4})
    shown = call(house, "label.show", branch=run.run, path="summary.md")
    assert shown["because"] == [{"source": "taint", "place": run.run, "origin": "external", "sensitivity": "internal"}]
    house.runs.commit(run, house.owner, "work")
    shown = call(house, "label.show", branch=run.run, path="summary.md")
    assert [each["source"] for each in shown["because"]] == ["noted"]
    assert shown["origin"] == "external"


def test_a_mark_counts_at_once_is_recorded_and_only_raises(house: House) -> None:
    call(house, "label.mark", pattern="docs/**", origin="external")
    assert call(house, "label.mark", pattern="docs/**", sensitivity="sensitive") == {
        "paths": "docs/**",
        "origin": "external",
        "sensitivity": "sensitive",
    }
    assert label_of(house, "docs/one.md") == ("external", "sensitive")
    assert refused(house, "label.mark", pattern="docs/**", origin="owner").kind is Kind.INVALID
    assert refused(house, "label.mark", pattern="docs/**").kind is Kind.INVALID
    recorded = [record.body for record in house.trust.records(kind="label.mark") if "pattern" in record.body]
    assert [body["label"] for body in recorded] == ["external/internal", "internal/sensitive"]


def test_a_run_marks_nothing_and_takes_no_mark_away(house: House) -> None:
    _, secret = house.start()
    call(house, "label.mark", pattern="docs/**", origin="external")
    holder = house.holder(secret)
    assert refused(house, "label.mark", holder, pattern="src/**", origin="external").kind is Kind.DENIED
    assert refused(house, "label.unmark", holder, pattern="docs/**").kind is Kind.DENIED


def test_a_mark_goes_by_an_answer_only(house: House) -> None:
    call(house, "label.mark", pattern="docs/**", origin="external")
    asked = call(house, "label.unmark", pattern="docs/**", reason="they are ours")
    assert asked["decision"] == "gated"
    assert label_of(house, "docs/one.md")[0] == "external"
    assert approve(house, asked)["result"]["decision"] == "lowered"
    assert label_of(house, "docs/one.md")[0] == "internal"
    assert refused(house, "label.unmark", pattern="docs/**").kind is Kind.NOT_FOUND


def test_a_mark_that_was_raised_after_the_question_is_not_taken_away_by_its_answer(house: House) -> None:
    call(house, "label.mark", pattern="docs/**", origin="external")
    asked = call(house, "label.unmark", pattern="docs/**")
    call(house, "label.mark", pattern="docs/**", sensitivity="sensitive")
    with pytest.raises(Exception, match="superseded by label:external/sensitive"):
        approve(house, asked)
    assert label_of(house, "docs/one.md") == ("external", "sensitive")


def test_an_endorsement_is_asked_about_and_counts_for_exactly_these_bytes_at_this_path(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER, "inbox/copy.txt": LETTER})
    asked = call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", origin="internal", reason="I wrote it")
    assert label_of(house, "inbox/letter.txt")[0] == "external"
    gate = house.trust.gate(asked["gate"])
    assert gate.card["because"][0]["source"] == "policy"
    assert gate.card["why"] == "I wrote it"
    assert approve(house, asked)["result"]["decision"] == "lowered"
    assert label_of(house, "inbox/letter.txt") == ("internal", "internal")
    assert label_of(house, "inbox/copy.txt")[0] == "external", "the same bytes at another path were not endorsed"
    endorsed = next(record for record in house.trust.records(kind="label.endorse") if "gate" in record.body)
    assert endorsed.body["gate"] == asked["gate"]
    merge(house, {"inbox/letter.txt": LETTER + b"and more\n"})
    assert label_of(house, "inbox/letter.txt")[0] == "external", "the next version was not endorsed"


def test_a_former_version_is_endorsed_by_naming_its_commit(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    former = house.appliance.engine.branch(MAIN).head
    merge(house, {"inbox/letter.txt": LETTER * 2})
    approve(house, call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", at=former, origin="internal", reason="read"))
    assert call(house, "label.show", branch=MAIN, path="inbox/letter.txt", at=former)["origin"] == "internal"
    assert label_of(house, "inbox/letter.txt")[0] == "external"


def test_what_is_not_lower_is_no_endorsement(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    for words in ({"origin": "external"}, {"sensitivity": "sensitive"}, {"origin": "internal", "sensitivity": "sensitive"}, {}):
        fault = refused(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", reason="x", **words)
        assert fault.kind is Kind.INVALID, words
    assert refused(house, "label.endorse", branch=MAIN, path="inbox", origin="owner", reason="x").kind is Kind.INVALID
    assert not house.trust.gates()


def test_an_agent_asks_and_never_answers(house: House) -> None:
    run = merge(house, {"inbox/letter.txt": LETTER})
    run, secret = house.start()
    holder = house.holder(secret)
    asked = call(house, "label.endorse", holder, branch=MAIN, path="inbox/letter.txt", origin="internal", reason="I checked it")
    gate = house.trust.gate(asked["gate"])
    assert (gate.run, gate.asked_by, gate.rule) == (run.run, "coder", RULE)
    assert "coder" in gate.excluded
    with pytest.raises(Exception, match="does not answer"):
        approve(house, asked, holder)
    assert label_of(house, "inbox/letter.txt")[0] == "external"
    approve(house, asked)
    assert label_of(house, "inbox/letter.txt")[0] == "internal"


def test_where_others_can_answer_nobody_endorses_on_their_own(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    house.trust.add_principal("ana", PrincipalKind.HUMAN, house.appliance.now(), {"roles": "owner"})
    asked = call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", origin="internal", reason="mine")
    with pytest.raises(Exception, match="somebody else has to answer"):
        approve(house, asked)
    ana = house.trust.principal("ana")
    approve(house, asked, Identity(ana, house.trust.roles(ana)))
    assert label_of(house, "inbox/letter.txt")[0] == "internal"


def test_a_label_that_rose_after_the_question_is_not_lowered_by_its_answer(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    asked = call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", origin="internal", reason="x")
    call(house, "label.mark", pattern="inbox/**", sensitivity="sensitive")
    with pytest.raises(Exception, match="superseded"):
        approve(house, asked)
    assert label_of(house, "inbox/letter.txt") == ("external", "sensitive")
    assert house.trust.gate(asked["gate"]).state is GateState.SUPERSEDED


def test_a_no_and_no_answer_leave_the_label(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER, "inbox/other.txt": LETTER * 2})
    asked = call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", origin="internal", reason="x")
    house.gates.answer(asked["gate"], asked["digest"], house.owner, "no", approve=False)
    call(house, "label.endorse", branch=MAIN, path="inbox/other.txt", origin="internal", reason="x")
    house.pass_time(25 * 3600)
    house.gates.tick()
    assert label_of(house, "inbox/letter.txt")[0] == label_of(house, "inbox/other.txt")[0] == "external"
    assert not house.trust.questions.unclosed()


GUARDS = """
  - {id: not-by-agents, effect: refuse, actions: [endorse], who: {kinds: [agent]}, reason: "agents do not ask"}
  - id: two-endorse
    effect: gate
    actions: [endorse]
    who: {kinds: [human]}
    approvals: 2
    required_role: owner
    deadline: 1h
    fallback: reject
    reason: "two people look"
"""


def test_a_guard_about_endorsing_refuses_or_says_how_people_are_asked(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    house.trust.adopt_policy(default_policy().replace("\nguards:\n", f"\nguards:{GUARDS}"), "policy.yaml", house.appliance.now())
    _, secret = house.start()
    wanted = {"branch": MAIN, "path": "inbox/letter.txt", "origin": "internal", "reason": "x"}
    fault = refused(house, "label.endorse", house.holder(secret), **wanted)
    assert (fault.kind, fault.policy.split()[0]) == (Kind.DENIED, "not-by-agents")
    house.trust.add_principal("bob", PrincipalKind.HUMAN, house.appliance.now())
    bob = Identity(house.trust.principal("bob"), frozenset())
    for asker in (bob, house.owner):
        gate = house.trust.gate(call(house, "label.endorse", asker, **wanted)["gate"])
        assert (gate.approvals, gate.rule) == (2, "two-endorse")


def approve_and_crash(house: House, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Approve an endorsement whose carrying out fails in the last moment."""
    merge(house, {"inbox/letter.txt": LETTER})
    asked = call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", origin="internal", reason="x")

    def crash(*_: object) -> None:
        raise OSError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(type(house.trust.ledger), "endorse", crash)
        with pytest.raises(OSError, match="power cut"):
            approve(house, asked)
    return asked


def test_a_label_that_rose_between_approval_and_carrying_out_stays(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = approve_and_crash(house, monkeypatch)
    call(house, "label.mark", pattern="inbox/**", sensitivity="sensitive")
    house.reconciliation.finish()
    assert label_of(house, "inbox/letter.txt") == ("external", "sensitive")
    gate = house.trust.gate(asked["gate"])
    assert (gate.phase, gate.outcome) == (GatePhase.CLOSED, "stale")


def test_the_label_is_lowered_together_with_spending_the_approval(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    approve_and_crash(house, monkeypatch)
    assert label_of(house, "inbox/letter.txt")[0] == "external"
    house.reconciliation.finish()
    assert label_of(house, "inbox/letter.txt")[0] == "internal", "what was approved is carried out at the next start"
    assert [line for line in house.reconciliation.finish() if "label" in line] == []


def test_listing_pages_through_what_the_branch_still_has(house: House) -> None:
    run, secret = house.start()
    house.trust.ledger.raise_taint(run.run, EXTERNAL)
    house.write(run, {f"found/{number}.txt": b"%d" % number * 40 for number in range(5)})
    house.runs.commit(run, house.owner, "first")
    house.write(run, {"found/3.txt": None, "found/4.txt": b"four" * 40})
    house.proposals.propose(run, house.holder(secret), "work")
    call(house, "label.mark", pattern="secret/**", sensitivity="sensitive")
    seen, cursor = [], None
    while True:
        shown = call(house, "label.list", branch=MAIN, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += shown["items"]
        cursor = shown["next"]
        if cursor is None:
            break
    noted = [item["paths"] for item in seen if item["source"] == "noted"]
    assert noted == ["found/0.txt", "found/1.txt", "found/2.txt", "found/4.txt"]
    assert [item["paths"] for item in seen if item["source"] == "mark"] == ["secret/**"]
    assert {item["paths"] for item in seen if item["source"] == "policy"} >= {"inbox/**", "secrets/**"}


def test_a_lease_is_told_of_no_label_of_what_it_cannot_see(house: House) -> None:
    call(house, "label.mark", pattern="secret/**", sensitivity="sensitive")
    house.trust.ledger.note(
        [(b"secret/plan.txt", house_content(house, "secret/plan.txt"), EXTERNAL)], house.appliance.engine.branch(MAIN).head
    )
    _, secret = house.start(paths=("src/**",))
    holder = house.holder(secret)
    assert call(house, "label.list", holder, branch=MAIN)["items"] == []
    assert refused(house, "label.show", holder, branch=MAIN, path="secret/plan.txt").kind is Kind.NOT_FOUND
    assert refused(house, "label.endorse", holder, branch=MAIN, path="secret/plan.txt", origin="owner", reason="x").kind is Kind.NOT_FOUND


def house_content(house: House, path: str) -> bytes:
    return str(call(house, "label.show", branch=MAIN, path=path)["content"]).encode()


def test_a_run_is_shown_with_its_taint_and_what_raised_it(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    run, secret = house.start()
    assert call(house, "run.show", run=run.run)["taint"] == {"origin": "internal", "sensitivity": "internal", "because": []}
    workspace = house.workspace(run, secret)
    node = workspace.lookup(workspace.lookup(1, b"inbox").node, b"letter.txt").node
    workspace.copy(node, 1, b"copy.txt")
    workspace.close()
    taint = call(house, "run.show", run=run.run)["taint"]
    assert taint["origin"] == "external"
    assert taint["because"] == [{"path": "inbox/letter.txt", "label": "external/internal"}]


labels = st.builds(Label, st.sampled_from(Origin), st.sampled_from(Sensitivity))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(noted=labels, marked=labels, endorsed=st.none() | labels)
def test_the_parts_that_are_told_make_the_label(house: House, noted: Label, marked: Label, endorsed: Label | None) -> None:
    trust = house.trust
    path, content = b"inbox/any.txt", b"%040x" % hash((noted, marked, endorsed))
    trust.ledger.note([(path, content, noted)], "c")
    trust.ledger.mark("inbox/any.txt", marked)
    if endorsed is not None:
        trust.ledger.endorse(path, content, endorsed)
    parts = trust.ledger.explain(trust.policy(), path, content)
    standing = [part.label for part in parts if part.source == "endorsed"] or [part.label for part in parts]
    expected = standing[0] if endorsed is not None else join_all(standing, DEFAULT)
    assert trust.ledger.label(trust.policy(), path, content) == expected
    trust.ledger.unmark("inbox/any.txt")


def test_intents_that_a_crash_left_are_found_done_or_undone(house: House) -> None:
    merge(house, {"inbox/letter.txt": LETTER})
    asked = call(house, "label.endorse", branch=MAIN, path="inbox/letter.txt", origin="internal", reason="x")
    house.trust.ledger.mark("a/**", EXTERNAL)
    now = house.appliance.now()
    for kind, body in (
        ("label.mark", {"pattern": "a/**", "label": "external/internal"}),
        ("label.mark", {"pattern": "b/**", "label": "external/internal"}),
        ("label.endorse", {"gate": asked["gate"]}),
    ):
        house.trust.intend(kind, None, body, now)
    found = [line.rpartition(" ")[2] for line in house.reconciliation.finish()]
    assert found == ["done", "undone", "undone"]

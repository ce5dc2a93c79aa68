"""Rules 7 and 8 of the contract: what goes in comes out, and each table's own promises."""

from __future__ import annotations

from dataclasses import replace

from trust.chain import GENESIS, SALT_BYTES, Draft, seal
from trust.conformance.bench import Bench, Check, expect, expect_error, sample_gate, sample_lease, sample_principal
from trust.errors import ChainBroken, Taken, Unknown
from trust.model import Answer, BudgetKind, Bypass, Digest, GateId, GatePhase, GateState, LeaseId, PrincipalName, RunId, Token, TokenId
from trust.secret import Secret
from trust.segments import Segment


def principals_are_kept(bench: Bench) -> None:
    """Names are unique, ordered, and can be disabled."""
    rows = bench.engine.principals
    with bench.engine.transaction():
        rows.add(sample_principal("zoe"))
        rows.add(sample_principal("ana"))
        with expect_error(Taken, "a name is taken once"):
            rows.add(sample_principal("ana"))
    expect([each.name for each in rows.all()] == ["ana", "zoe"], "principals come ordered by name")
    expect(rows.find("ana") == sample_principal("ana"), "a principal comes back as it went in")
    with bench.engine.transaction():
        rows.disable("ana")
        rows.disable("ana")
    expect(rows.find("ana").disabled and not rows.find("zoe").disabled, "one principal is disabled")
    with bench.engine.transaction():
        rows.set_attributes("zoe", {"roles": "auditor"})
    expect(rows.find("zoe") == replace(sample_principal("zoe"), attributes={"roles": "auditor"}), "attributes are replaced, nothing else")
    expect(rows.find("ana").attributes == sample_principal("ana").attributes, "nobody else's attributes change")
    with expect_error(Unknown, "a stranger is unknown"):
        rows.find("bob")


def tokens_are_kept(bench: Bench) -> None:
    """A token comes back with its hash; revoking it keeps the first time."""
    rows, token, digest = bench.engine.tokens, Token(TokenId("t1"), PrincipalName("ana"), "laptop", 5, None), Secret(b"\x01" * 32)
    with bench.engine.transaction():
        bench.engine.principals.add(sample_principal())
        rows.add(token, digest)
        rows.add(replace(token, id=TokenId("t0"), expires=9), digest)
        with expect_error(Taken, "an id is taken once"):
            rows.add(token, digest)
    expect(rows.find(token.id) == (token, digest), "a token comes back as it went in")
    expect([each.id for each in rows.all("ana")] == ["t1", "t0"], "tokens come oldest first")
    expect(not rows.all("zoe") and len(rows.all()) == 2, "tokens are found by principal")
    with bench.engine.transaction():
        rows.revoke(token.id, 20)
        rows.revoke(token.id, 30)
    expect(rows.find(token.id)[0].revoked == 20, "a token is revoked once")
    with expect_error(Unknown, "an unknown token is unknown"):
        rows.find(TokenId("t9"))


def leases_are_kept(bench: Bench) -> None:
    """A lease and its chain come back as they went in."""
    rows = bench.engine.leases
    _store_family(bench)
    expect(rows.find(LeaseId("l1")) == sample_lease("l1"), "a lease comes back as it went in")
    expect(rows.find(LeaseId("l2")) == sample_lease("l2", "l1", 10), "a child comes back as it went in")
    expect([lease.id for lease in rows.all(RunId("run-1"))] == ["l1", "l2", "l3", "l4"], "leases come oldest first")
    expect(not rows.all(RunId("run-2")) and len(rows.all()) == len(rows.all(holder="ana")) == 4, "leases are found by run and holder")
    expect(rows.count(LeaseId("l1")) == 4 and rows.last_key_epoch() == 1, "a root's leases are counted")
    with bench.engine.transaction(), expect_error(Taken, "an id is taken once"):
        rows.add(*sample_lease("l1"))
    with expect_error(Unknown, "an unknown lease is unknown"):
        rows.find(LeaseId("l9"))


def descendants_fall_with_a_lease(bench: Bench) -> None:
    """Descendants are found at any depth; revoking reports what is new."""
    rows = bench.engine.leases
    _store_family(bench)
    below = rows.descendants(LeaseId("l2"))
    expect(list(below) == ["l2", "l3"], "a lease's descendants, itself first")
    with bench.engine.transaction():
        expect(list(rows.revoke([LeaseId("l3")], "first", 50)) == ["l3"], "revoking reports what it revoked")
        expect(list(rows.revoke(below, "second", 60)) == ["l2"], "what was revoked before is not reported again")
    revoked = {lease.id: (lease.revoked, lease.reason) for lease in rows.all()}
    expect(revoked == {"l1": (None, ""), "l2": (60, "second"), "l3": (50, "first"), "l4": (None, "")}, "the first revocation stays")


def budgets_are_counted_up_the_chain(bench: Bench) -> None:
    """Accounts come nearest first; used amounts do not go below zero."""
    rows = bench.engine.leases
    _store_family(bench)
    reads = [account for account in rows.accounts(LeaseId("l3")) if account.kind is BudgetKind.READS]
    found = [(account.lease, account.limit) for account in reads]
    expect(found == [("l3", None), ("l2", 10), ("l1", 100)], "a lease's accounts, itself first")
    with bench.engine.transaction():
        rows.add_used([LeaseId("l1"), LeaseId("l3")], {BudgetKind.READS: 7, BudgetKind.COMMITS: 1})
        rows.add_used([LeaseId("l3")], {BudgetKind.READS: -9})
    used = {account.lease: account.used for account in rows.accounts(LeaseId("l3")) if account.kind is BudgetKind.READS}
    expect(used == {"l3": 0, "l2": 0, "l1": 7}, "amounts are added and not taken below zero")
    expect(rows.find(LeaseId("l1"))[0].used == {BudgetKind.READS: 7, BudgetKind.COMMITS: 1}, "a lease tells what was used")
    expect(not rows.accounts(LeaseId("l9")), "an unknown lease has no account")


def _store_family(bench: Bench) -> None:
    with bench.engine.transaction():
        bench.engine.principals.add(sample_principal())
        for lease in (sample_lease("l1"), sample_lease("l2", "l1", 10), sample_lease("l3", "l2", None), sample_lease("l4", "l1")):
            bench.engine.leases.add(*lease)


def the_last_policy_counts(bench: Bench) -> None:
    """Adopted policies."""
    rows = bench.engine.policies
    expect(rows.last_hash() == "", "before the first there is no hash")
    with expect_error(Unknown, "before the first there is no policy"):
        rows.last()
    with bench.engine.transaction():
        rows.add("h1", "one", "a.yaml", 1)
        rows.add("h2", "two", "b.yaml", 2)
        rows.add("h1", "one", "c.yaml", 3)
    expect(rows.last() == ("one", "c.yaml", "h1") and rows.last_hash() == "h1", "the last one counts, also when it was there before")
    expect(rows.find("h2") == ("two", "b.yaml") and rows.find("h1") == ("one", "c.yaml"), "every policy stays, with its last source")
    with expect_error(Unknown, "what was never adopted is not found"):
        rows.find("h3")


def gates_are_kept(bench: Bench) -> None:
    """A gate comes back as it went in and is found by what is asked for."""
    rows, gate = bench.engine.gates, sample_gate("g2")
    other = replace(sample_gate("g1"), subject="proposal:p2", run="run-2", act=Digest("a2"), alike=Digest("k"))
    with bench.engine.transaction():
        rows.add(gate)
        rows.add(other)
        with expect_error(Taken, "an id is taken once"):
            rows.add(gate)
    expect(rows.find(GateId("g2")) == gate, "a gate comes back as it went in")
    expect([each.id for each in rows.all()] == ["g2", "g1"], "gates come oldest first")
    for found, how in (
        (rows.all(GateState.PENDING, "proposal:p2"), "state and subject"),
        (rows.all(run="run-2"), "run"),
        (rows.all(alike=Digest("k")), "likeness"),
        (rows.asking(Digest("a2")), "act"),
    ):
        expect(list(found) == [other], f"gates are found by {how}")
    expect(not rows.all(GateState.APPROVED), "gates are found by state")
    with expect_error(Unknown, "an unknown gate is unknown"):
        rows.find(GateId("g9"))


def a_gate_is_replaced_by_compare_and_set(bench: Bench) -> None:
    """A gate changes only from what it is."""
    rows, gate = bench.engine.gates, sample_gate(deadline=90)
    half = replace(gate, answers=(Answer("ana", True, 98, "looks right"),))
    approved = replace(
        half, state=GateState.APPROVED, phase=GatePhase.DECIDED, answered_by="ana, bob", answered=99, comment="fine", usable_until=200
    )
    used = replace(approved, phase=GatePhase.ACKNOWLEDGED, acknowledged=120)
    done = replace(used, phase=GatePhase.CLOSED, closed=121, outcome="done", successor="g7")
    with bench.engine.transaction():
        rows.add(gate)
    with bench.engine.transaction():
        expect(not rows.replace(replace(gate, digest=Digest("another")), half), "another digest changes nothing")
        expect(rows.replace(gate, half), "an answer is kept")
        expect(not rows.replace(gate, approved), "what was answered meanwhile does not change")
        expect(not rows.due(99) and [each.id for each in rows.due(100)] == ["g1"], "a gate is due at its deadline")
        expect(rows.replace(half, approved), "a second answer is kept")
        expect(not rows.due(199) and list(rows.due(200)) == [approved], "an approval is due when its time is over")
        expect(rows.replace(approved, used) and not rows.replace(approved, used), "an approval is used once")
        expect(not rows.due(200) and list(rows.unclosed()) == [used], "a gate stays open until it is closed")
        expect(rows.replace(used, done) and not rows.unclosed(), "a closed gate is not open")
    expect(rows.find(gate.id) == done, "everything is kept")


def bypasses_are_kept(bench: Bench) -> None:
    """A bypass comes back as it went in, counts until it ends, and ends once."""
    rows, bypass = bench.engine.gates, Bypass(GateId("b1"), "big", "hash", "ana", "moving house", 10, 20)
    with bench.engine.transaction():
        rows.add_bypass(bypass)
        with expect_error(Taken, "an id is taken once"):
            rows.add_bypass(bypass)
    expect(rows.find_bypass(bypass.id) == bypass and list(rows.bypasses()) == [bypass], "a bypass comes back as it went in")
    expect(list(rows.bypasses(19)) == [bypass] and not rows.bypasses(20), "a bypass is over when it expires")
    with bench.engine.transaction():
        expect(rows.end_bypass(bypass.id, 15) and not rows.end_bypass(bypass.id, 16), "a bypass ends once")
    expect(rows.find_bypass(bypass.id).ended == 15 and not rows.bypasses(15), "a bypass that ended is over")
    with expect_error(Unknown, "an unknown bypass is unknown"):
        rows.find_bypass(GateId("b9"))


def documents_move_by_version(bench: Bench) -> None:
    """Compare-and-set of documents."""
    rows = bench.engine.documents
    with bench.engine.transaction():
        expect(not rows.put("run", "r1", {"a": 1}, 1), "what is not there has no version")
        expect(rows.put("run", "r1", {"a": 1}, 0), "a document is made")
        expect(not rows.put("run", "r1", {"a": 2}, 0), "a document is made once")
        expect(rows.put("run", "r1", {"a": [None, "\udcfe", {}]}, 1), "a document moves on")
        expect(not rows.put("run", "r1", {"a": 3}, 1), "the loser changes nothing")
        expect(rows.put("run", "r0", {}, 0) and rows.put("note", "r1", {}, 0), "kinds do not meet")
    found = rows.find("run", "r1")
    expect((found.version, found.body) == (2, {"a": [None, "\udcfe", {}]}), "a body comes back as it went in")
    expect([document.id for document in rows.all("run")] == ["r0", "r1"], "documents come ordered by id")
    with expect_error(Unknown, "an unknown document is unknown"):
        rows.find("run", "r2")


def documents_are_listed_and_removed(bench: Bench) -> None:
    """Keys by prefix, whatever they are made of; removal by compare-and-set."""
    rows, names = bench.engine.documents, ["a", "a/", "a/1", "a/\uffff", "a0", "b", "%", "\U0001f600"]
    with bench.engine.transaction():
        for name in names:
            rows.put("lock", name, {}, 0)
        rows.put("other", "a/9", {}, 0)
    expect(list(rows.keys("lock", "a/")) == ["a/", "a/1", "a/\uffff"], "keys are found by their beginning")
    expect(list(rows.keys("lock", "")) == sorted(names) and not rows.keys("lock", "c"), "the empty beginning is every key's")
    with bench.engine.transaction():
        rows.put("lock", "b", {"n": 1}, 1)
        expect(not rows.remove("lock", "b", 1) and not rows.remove("lock", "c", 0), "what moved on or is not there stays as it is")
        expect(rows.remove("lock", "b", 2) and not rows.remove("lock", "b", 2), "a document is removed once")
    expect("b" not in bench.reopen().documents.keys("lock", ""), "what was removed stays removed")


def records_are_appended_and_nothing_else(bench: Bench) -> None:
    """The next number or none."""
    rows = bench.engine.records
    expect(rows.head() == (0, GENESIS), "the chain starts at its genesis")
    with bench.engine.transaction():
        stored = [bench.append('{"n":1}'), bench.append('{"n":2}')]
    draft = Draft(7, "fact", None, "seen", "", "", "", "{}")
    for sequence in (1, 2, 4):
        with expect_error(ChainBroken, "only the next number is taken"), bench.engine.transaction():
            rows.append([seal(draft, sequence, stored[-1][10], bytes(SALT_BYTES))])
    with bench.engine.transaction():
        stored.append(seal(draft, 3, stored[-1][10], bytes(SALT_BYTES)))
        rows.append(stored[2:])
    expect(list(rows.after(0, 10)) == stored, "records come back as they went in")
    expect(list(rows.after(1, 1)) == stored[1:2], "records come in order, after a number, up to a limit")
    expect(list(rows.after(0, 10, kind="seen")) == stored[2:] == list(rows.after(0, 10, run="")), "records are found by kind and run")
    expect(rows.find(2) == stored[1], "a record is found by its number")
    with expect_error(Unknown, "an unknown record is unknown"):
        rows.find(4)


def intents_are_remembered_until_concluded(bench: Bench) -> None:
    """Open intents."""
    rows = bench.engine.records
    with bench.engine.transaction():
        stored = [bench.append(), bench.append()]
        rows.await_outcomes([1, 2])
    expect(list(rows.open_intents()) == stored, "open intents come in order")
    with bench.engine.transaction():
        expect(rows.close_intent(1) and not rows.close_intent(1), "an intent is concluded once")
    expect(list(bench.reopen().records.open_intents()) == stored[1:], "open intents survive reopening")


def a_body_gives_way_to_its_commitment(bench: Bench) -> None:
    """Redaction changes body and salt of one record, and nothing else."""
    rows = bench.engine.records
    with bench.engine.transaction():
        stored = [bench.append('{"n":1}'), bench.append('{"n":2}')]
        rows.redact(1, b"c" * 32)
    rows.forget()
    expect(rows.find(1) == (*stored[0][:8], "", *stored[0][9:11], b"c" * 32), "body and salt give way, the hash stays")
    expect(list(bench.reopen().records.after(1, 9)) == stored[1:], "other records stay as they are")


def nodes_of_the_tree_are_kept(bench: Bench) -> None:
    """A node is stored once."""
    rows = bench.engine.tree
    with bench.engine.transaction():
        rows.add([(8, 0, b"a" * 32), (8, 1, b"b" * 32), (9, 0, b"c" * 32)])
        rows.add([(8, 0, b"x" * 32)])
    expect((rows.find(8, 0), rows.find(9, 0)) == (b"a" * 32, b"c" * 32), "a stored node stays as it is")
    expect((rows.count(8), rows.count(9), rows.count(10)) == (2, 1, 0), "nodes of a level are counted")
    with expect_error(Unknown, "an unknown node is unknown"):
        rows.find(8, 2)


def checkpoints_are_kept(bench: Bench) -> None:
    """By size, with the lines of witnesses."""
    rows = bench.engine.checkpoints
    with expect_error(Unknown, "there is no checkpoint before the first"):
        rows.last()
    with bench.engine.transaction():
        rows.add(5, 50, "five")
        rows.add(9, 90, "nine")
        rows.add(9, 99, "another")
        rows.cosign(5, "w", "first")
        rows.cosign(5, "w", "second")
    expect([(kept.size, kept.time, kept.note) for kept in rows.after(0, 9)] == [(5, 50, "five"), (9, 90, "nine")], "a checkpoint stays")
    expect(rows.after(5, 9) == [rows.last()] and list(rows.after(0, 1)) == [rows.last(8)], "checkpoints come in order, up to a limit")
    expect(rows.covering(6) == rows.covering(9) == rows.last(), "the smallest that has a record covers it")
    expect(rows.last(5).cosignatures == {"w": "second"} and rows.last().cosignatures == {}, "lines of witnesses are kept beside one")
    expect((rows.witnessed("w"), rows.witnessed("v")) == (5, 0), "how far a witness cosigned is known")
    with expect_error(Unknown, "what no checkpoint has is not covered"):
        rows.covering(10)


def records_leave_for_segments(bench: Bench) -> None:
    """Only what a stored segment holds, and never the last record."""
    rows, segments = bench.engine.records, bench.engine.segments
    with bench.engine.transaction():
        stored = [bench.append() for _ in range(6)]
    segment = Segment(1, 2, b"d" * 32, stored[0][9], stored[1][10], 7)
    for wrong in (replace(segment, first=2), replace(segment, last=6), replace(segment, last=0)):
        with expect_error(ChainBroken, "a segment follows the one before it and leaves a record behind"), bench.engine.transaction():
            segments.add(wrong, [])
    with bench.engine.transaction():
        segments.add(segment, ["run-1"])
        rows.remove(1, 2)
    expect(
        list(segments.all()) == [segment] == list(segments.of_run("run-1")) and not segments.of_run("run-2"), "segments are found by run"
    )
    expect((rows.first(), list(rows.after(0, 9))) == (3, stored[2:]), "what a segment holds leaves")
    expect(rows.hashes(3, 4) == [stored[2][10], stored[3][10]], "hashes come in order")
    expect((rows.last_before(7), rows.last_before(8)) == (2, 6), "records are found by age")
    with bench.engine.transaction():
        segments.replace(1, b"e" * 32)
        segments.give_up(1, 20)
        segments.give_up(1, 30)
    expect(list(bench.reopen().segments.all()) == [replace(segment, digest=b"e" * 32, removed=20)], "the first giving up stays")


CHECKS: tuple[Check, ...] = (
    principals_are_kept,
    tokens_are_kept,
    leases_are_kept,
    descendants_fall_with_a_lease,
    budgets_are_counted_up_the_chain,
    the_last_policy_counts,
    gates_are_kept,
    a_gate_is_replaced_by_compare_and_set,
    bypasses_are_kept,
    documents_move_by_version,
    documents_are_listed_and_removed,
    records_are_appended_and_nothing_else,
    intents_are_remembered_until_concluded,
    a_body_gives_way_to_its_commitment,
    nodes_of_the_tree_are_kept,
    checkpoints_are_kept,
    records_leave_for_segments,
)
"""The checks of this module."""

"""What each verb asks, and how its answers read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from tests.nasd.cli.conftest import Desk, page

RUN: Document = {
    "run": "run-1",
    "branch": "builder/run-1",
    "lease": "lease-1",
    "secret": "anl1.secret",
    "role": "builder",
    "base": "c" * 40,
    "expires": "2026-12-01T00:00:00Z",
    "paths": ["**"],
    "actions": ["read", "write"],
}
COMMIT: Document = {
    "commit": "0123456789abcdef" * 2 + "01234567",
    "parents": [],
    "message": "one\n\ntwo",
    "principal": "builder",
    "on_behalf_of": "owner",
    "run": "run-1",
    "lease": "lease-1",
    "when": "2026-11-30T00:00:00Z",
    "author": "builder",
}
PROPOSAL: Document = {
    "proposal": "prop-1",
    "run": "run-1",
    "decision": "merged",
    "state": "merged",
    "gate": "",
    "reason": "small and clean",
    "policy": "small-merges (policy.yaml:9:5)",
    "head": "c" * 40,
    "files": 1,
    "created": "2026-11-30T00:00:00Z",
}
GATE: Document = {
    "gate": "gate-1",
    "state": "pending",
    "phase": "pending",
    "digest": "sha256:abc",
    "alike": "sha256:alike",
    "rule": "many",
    "deadline": "2026-12-01T00:00:00Z",
    "required_role": "owner",
    "subject": "proposal:prop-1",
    "created": "2026-11-30T00:00:00Z",
}
TAINT: Document = {
    "origin": "external",
    "sensitivity": "internal",
    "because": [{"path": "inbox/a", "label": "external/internal"}],
}
CARD: Document = {"what": "merge builder/run-1 into main", "why": "because", "changes": [{"kind": "added", "path": "a", "origin": None}]}


def test_a_run_is_started_with_what_was_asked(desk: Desk) -> None:
    desk.counter.answers["run.start"] = RUN
    words = [
        "--paths",
        "src/**,docs/**",
        "--paths",
        "x",
        "--actions",
        "read,write",
        "--ttl",
        "8h",
        "--purpose",
        "tidy",
        "--budget",
        "bytes-written=10MiB",
    ]
    result = desk.nas("run", "start", "builder", *words, "--budget", "reads=5", "--json")
    assert desk.asked() == [
        (
            "run.start",
            {
                "role": "builder",
                "paths": ["src/**", "docs/**", "x"],
                "actions": ["read", "write"],
                "ttl": "8h",
                "purpose": "tidy",
                "budgets": {"bytes_written": 10 << 20, "reads": 5},
            },
        )
    ]
    assert {"run": "run-1", "branch": "builder/run-1", "lease": "lease-1", "secret": "anl1.secret"}.items() <= result.document.items()
    assert (result.code, result.err) == (0, "")


def test_what_is_left_out_is_not_asked_for(desk: Desk) -> None:
    desk.counter.answers["run.start"] = RUN
    human = desk.nas("run", "start", "builder")
    assert desk.asked() == [("run.start", {"role": "builder"})]
    assert "secret   anl1.secret\n" in human.out


@pytest.mark.parametrize("budget", ["reads", "reads=", "=5", "reads=many"])
def test_a_budget_that_is_none_is_a_usage_error(desk: Desk, budget: str) -> None:
    result = desk.nas("run", "start", "builder", "--budget", budget, "--json")
    assert (result.code, result.document["code"]) == (2, "usage")
    assert desk.asked() == []


def test_a_secret_that_was_lost_with_the_connection_is_not_passed_over(desk: Desk) -> None:
    desk.counter.answers["run.start"] = RUN
    desk.counter.repeats = True
    result = desk.nas("run", "start", "builder", "--json")
    assert (result.code, result.document["code"]) == (1, "unavailable")
    assert "run-1 was made" in result.document["message"]
    assert "nas run end run-1" in result.document["hint"]


def test_every_effect_carries_a_key_of_its_own(desk: Desk) -> None:
    desk.counter.answers["run.start"] = RUN
    for _ in range(3):
        desk.nas("run", "start", "builder")
    assert len(set(desk.counter.keys)) == 3


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Kind.DENIED, 3),
        (Kind.BUDGET, 3),
        (Kind.EXPIRED, 3),
        (Kind.GATED, 4),
        (Kind.CONFLICT, 5),
        (Kind.EXISTS, 5),
        (Kind.NOT_FOUND, 6),
        (Kind.INVALID, 2),
        (Kind.INTERNAL, 1),
    ],
)
def test_a_refusal_is_a_document_a_code_and_a_few_lines(desk: Desk, kind: Kind, code: int) -> None:
    desk.counter.answers["run.start"] = Fault(
        kind, "write src/a: refused", hint="ask the owner", policy="keys (policy.yaml:7:3)", gate="gate-1"
    )
    machine = desk.nas("run", "start", "builder", "--json")
    assert (machine.code, machine.err) == (code, "")
    words = {"hint": "ask the owner", "policy": "keys (policy.yaml:7:3)", "gate": "gate-1"}
    assert machine.document == {"code": kind.value, "message": "write src/a: refused", **words}
    human = desk.nas("run", "start", "builder")
    assert (human.code, human.out) == (code, "")
    assert human.err == "nas: write src/a: refused\nhint: ask the owner\npolicy: keys (policy.yaml:7:3)\ngate: gate-1\n"


def test_no_daemon_and_no_directory_say_what_to_do(desk: Desk, tmp_path: Path) -> None:
    result = desk.nas("status", "--home", str(tmp_path))
    assert (result.code, result.err) == (1, f"nas: no daemon is running for {tmp_path}\nhint: start it with `nas serve --background`\n")
    assert desk.nas("status", "--home", str(tmp_path), "--json").document["code"] == "no-daemon"


def test_the_lease_of_a_run_acts_when_it_is_given(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.counter.secrets |= {"anl1.env": "by environment", "anl1.file": "by file"}
    desk.counter.answers["lease.list"] = page()
    (tmp_path / "lease").write_text("anl1.file\n")
    desk.nas("lease", "list")
    monkeypatch.setenv("NAS_LEASE", "anl1.env")
    desk.nas("lease", "list")
    desk.nas("lease", "list", "--lease-file", str(tmp_path / "lease"))
    assert [who for who, _, _ in desk.counter.calls] == ["owner", "by environment", "by file"]
    assert desk.nas("lease", "list", "--lease-file", str(tmp_path / "missing")).code == 2


def test_an_unknown_secret_is_denied(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_LEASE", "anl1.wrong")
    result = desk.nas("status")
    assert result.code == 3
    assert "anl1.wrong" not in result.err + result.out


def test_lists_are_arrays_and_tables_and_follow_every_page(desk: Desk) -> None:
    pages = {
        None: {"items": [{**GATE, "gate": "gate-1"}], "next": "1", "truncated": True},
        "1": {"items": [{**GATE, "gate": "gate-2"}], "next": None, "truncated": False},
    }
    desk.counter.answers["gate.list"] = lambda given: pages[given.get("cursor")]
    result = desk.nas("gate", "list", "--state", "pending", "--json")
    assert [item["gate"] for item in result.document] == ["gate-1", "gate-2"]
    assert {"gate", "state", "digest", "deadline", "required_role"} <= result.document[0].keys()
    assert desk.asked() == [("gate.list", {"state": "pending"}), ("gate.list", {"state": "pending", "cursor": "1"})]
    lines = desk.nas("gate", "list").out.splitlines()
    assert lines[0].split()[:3] == ["GATE", "STATE", "PHASE"]
    assert [line.split()[0] for line in lines[1:]] == ["gate-1", "gate-2"]
    desk.counter.answers["gate.list"] = page()
    empty = desk.nas("gate", "list")
    assert (empty.out, empty.err) == ("", "no gates\n")


@pytest.mark.parametrize(("decision", "code"), [("merged", 0), ("gated", 4), ("refused", 3), ("conflict", 5), ("merging", 1)])
def test_a_proposal_ends_as_it_was_decided(desk: Desk, decision: str, code: int) -> None:
    gate = "gate-1" if decision == "gated" else ""
    desk.counter.answers["proposal.make"] = {**PROPOSAL, "decision": decision, "state": decision, "gate": gate}
    result = desk.nas("propose", "builder/run-1", "-m", "tidy", "--json")
    assert desk.asked() == [("proposal.make", {"run": "builder/run-1", "message": "tidy"})]
    assert result.code == code
    assert {"proposal", "decision", "gate", "reason", "policy"} <= result.document.keys()
    human = desk.nas("propose", "builder/run-1")
    assert f"prop-1  {decision}\n" in human.out
    assert ("nas gate show gate-1" in human.out) == (decision == "gated")


def test_a_gate_is_answered_for_the_card_that_was_judged(desk: Desk) -> None:
    desk.counter.answers |= {
        "gate.show": {**GATE, "card": CARD},
        "gate.approve": {**GATE, "state": "approved", "result": {"decision": "merged"}},
    }
    assert desk.nas("gate", "approve", "gate-1", "--digest", "sha256:judged", "--comment", "fine").code == 0
    assert desk.asked() == [("gate.approve", {"gate": "gate-1", "digest": "sha256:judged", "comment": "fine"})]
    assert desk.nas("gate", "approve", "gate-1", "--yes", "--json").document["result"] == {"decision": "merged"}
    assert desk.asked() == [("gate.show", {"gate": "gate-1"}), ("gate.approve", {"gate": "gate-1", "digest": "sha256:abc"})]


def test_gates_that_are_alike_are_answered_each_by_its_own_digest(desk: Desk) -> None:
    desk.counter.answers |= {
        "gate.show": {**GATE, "card": CARD},
        "gate.list": page(GATE, {**GATE, "gate": "gate-2", "digest": "sha256:two", "run": "run-2"}),
        "gate.answer": {
            "items": [{"gate": "gate-1", "result": {"decision": "merged"}}, {"gate": "gate-2", "error": {"message": "too late"}}]
        },
    }
    told = desk.nas("gate", "approve", "gate-1", "--alike", "--yes", "--comment", "all fine")
    answers = [{"gate": "gate-1", "digest": "sha256:abc"}, {"gate": "gate-2", "digest": "sha256:two"}]
    body = {"alike": "sha256:alike", "answers": answers, "verdict": "approve", "comment": "all fine"}
    assert desk.asked()[1:] == [("gate.list", {"state": "pending", "alike": "sha256:alike"}), ("gate.answer", body)]
    assert (told.code, told.out) == (5, "gate-1  merged\ngate-2  too late\n")
    assert desk.nas("gate", "reject", "gate-1", "--alike", "--digest", "d").code == 2


@pytest.mark.parametrize(
    ("state", "code"),
    [("approved", 0), ("rejected", 3), ("expired", 7), ("lapsed", 8), ("withdrawn", 9), ("superseded", 10)],
)
def test_whoever_waits_learns_which_end_it_was(desk: Desk, state: str, code: int) -> None:
    waits = [{**GATE, "card": {}}, {**GATE, "card": {}, "state": state, "phase": "closed"}]
    desk.counter.answers["gate.show"] = lambda _: waits.pop(0) if len(waits) > 1 else waits[0]
    told = desk.nas("gate", "wait", "gate-1", "--timeout", "30s", "--json")
    assert (told.code, told.document["state"]) == (code, state)
    assert desk.asked()[-1] == ("gate.show", {"gate": "gate-1", "wait": 20})
    desk.counter.answers["proposal.make"] = {**PROPOSAL, "decision": "gated", "state": "gated", "gate": "gate-1"}
    decision = "merged" if state == "approved" else "refused"
    desk.counter.answers["proposal.show"] = {**PROPOSAL, "decision": decision, "state": decision, "gate": "gate-1"}
    proposed = desk.nas("propose", "builder/run-1", "--wait", "--json")
    assert (proposed.code, proposed.document["decision"]) == (code, decision)


def test_a_wait_that_is_over_says_that_it_still_waits(desk: Desk) -> None:
    desk.counter.answers["gate.show"] = {**GATE, "card": {}}
    assert desk.nas("gate", "wait", "gate-1", "--timeout", "1s").code == 4
    assert desk.nas("gate", "wait", "gate-1", "--timeout", "soon").code == 2


def test_a_bypass_is_opened_listed_and_ended(desk: Desk) -> None:
    bypass = {"bypass": "b1", "state": "live", "rule": "many", "by": "owner", "reason": "moving", "expires": None}
    desk.counter.answers |= {"gate.bypass": bypass, "gate.bypasses": page(bypass), "gate.bypass-end": {**bypass, "state": "ended"}}
    assert desk.nas("gate", "bypass", "--rule", "many", "--for", "30min", "--reason", "moving").code == 0
    assert desk.nas("gate", "bypass", "--json").document == [bypass]
    assert desk.nas("gate", "bypass", "--end", "b1", "--json").document["state"] == "ended"
    assert [operation for operation, _ in desk.asked()] == ["gate.bypass", "gate.bypasses", "gate.bypass-end"]
    assert desk.nas("gate", "bypass", "--rule", "many").code == 2


def test_a_question_is_taken_back(desk: Desk) -> None:
    desk.counter.answers["gate.withdraw"] = {**GATE, "state": "withdrawn", "comment": "sorry"}
    assert desk.nas("gate", "withdraw", "gate-1", "--comment", "sorry").code == 0
    assert desk.asked() == [("gate.withdraw", {"gate": "gate-1", "comment": "sorry"})]


def test_a_card_is_markdown_on_demand(desk: Desk) -> None:
    desk.counter.answers["gate.show"] = {**GATE, "card": {**CARD, "why": "<b>**now**</b>"}}
    shown = desk.nas("gate", "show", "gate-1", "--markdown").out
    assert r"- **why**: &lt;b&gt;\*\*now\*\*&lt;/b&gt;" in shown


def test_a_gate_is_never_answered_by_nobody(desk: Desk) -> None:
    desk.counter.answers["gate.show"] = {**GATE, "card": CARD}
    result = desk.nas("gate", "reject", "gate-1", "--json")
    assert (result.code, result.document["code"]) == (2, "usage")
    assert "--digest" in result.document["message"]
    assert desk.asked() == [("gate.show", {"gate": "gate-1"})]


def test_an_approval_that_merges_into_a_conflict_says_so(desk: Desk) -> None:
    desk.counter.answers["gate.approve"] = {**GATE, "state": "approved", "result": {"decision": "conflict"}}
    assert desk.nas("gate", "approve", "gate-1", "--digest", "d").code == 5


def test_a_card_cannot_paint_the_terminal(desk: Desk) -> None:
    hostile = "fine\x1b[2J\x1b]0;title\x07 \u202eetirw\u202c\r\x9b"
    card = {**CARD, "why": hostile, "changes": [{"kind": "added", "path": hostile, "origin": None}]}
    desk.counter.answers["gate.show"] = {**GATE, "card": card}
    shown = desk.nas("gate", "show", "gate-1").out
    assert not set(shown) & set("\x1b\x07\u202e\u202c\r\x9b")
    assert r"fine\x1b[2J" in shown
    desk.counter.answers["gate.show"] = Fault(Kind.NOT_FOUND, hostile)
    assert "\x1b" not in desk.nas("gate", "show", "gate-1").err


def test_history_reads_like_git(desk: Desk) -> None:
    desk.counter.answers["history.log"] = page(COMMIT, {**COMMIT, "parents": ["a" * 40, "b" * 40], "message": "merge"})
    human = desk.nas("log", "builder/run-1", "--path", "src")
    assert desk.asked() == [("history.log", {"branch": "builder/run-1", "path": "src", "limit": 100})]
    assert human.out.startswith(f"commit {COMMIT['commit']}\nAuthor: builder\nFor:    owner\nRun:    run-1\n")
    assert "\n    one\n\n    two\n\ncommit " in human.out
    assert "Merge:  aaaaaaaaaaaa bbbbbbbbbbbb" in human.out
    assert desk.nas("log", "--oneline", "-n", "1").out == f"{COMMIT['commit'][:12]} one\n"
    assert desk.nas("log", "--json").document[0]["commit"] == COMMIT["commit"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["run-1"], {"run": "run-1", "patch": True}),
        (["a" * 8, "b" * 8], {"old": "a" * 8, "new": "b" * 8, "patch": True}),
        (["run-1", "--uncommitted", "--path", "x"], {"branch": "run-1", "path": "x", "patch": True}),
        (["run-1", "--name-status"], {"run": "run-1", "patch": False}),
    ],
)
def test_a_diff_compares_what_was_named(desk: Desk, words: list[str], asked: dict[str, Any]) -> None:
    desk.counter.answers["history.diff"] = page()
    assert desk.nas("diff", *words).code == 0
    assert desk.asked() == [("history.diff", asked)]


def test_names_that_are_not_utf8_travel_as_bytes_and_are_printed_as_escapes(desk: Desk) -> None:
    desk.counter.answers["history.diff"] = page({"kind": "added", "path": r"a\xff", "origin": None})
    assert desk.nas("diff", "run-1", "--path", os.fsdecode(b"a\xff"), "--name-status").out == "A\ta\\xff\n"
    assert desk.asked() == [("history.diff", {"run": "run-1", "path": r"a\xff", "patch": False})]
    desk.counter.answers["run.end"] = {}
    assert desk.nas("run", "end", os.fsdecode(b"a\xff")).code == 2
    assert desk.nas("run", "start", os.fsdecode(b"a\xff")).code == 2
    assert desk.asked() == []


def test_a_terminal_without_the_character_shows_its_escape(desk: Desk) -> None:
    desk.counter.answers["run.list"] = page(
        {"run": "r", "role": "é", "branch": "b", "lease": "l", "state": "active", "created": None, "ended": None, "purpose": ""}
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for words, shown in ((["run", "list"], rb"\xe9"), (["run", "list", "--json"], rb"\u00e9")):
        done = subprocess.run([sys.executable, "-m", "nasd.cli.main", *words], env=environment, capture_output=True, timeout=60, check=True)
        assert shown in done.stdout


def test_a_diff_reads_like_git(desk: Desk) -> None:
    patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\x1b[2J\n"
    changes: list[Document] = [
        {"kind": "modified", "path": "a", "origin": None, "patch": patch},
        {"kind": "renamed", "path": "new", "origin": "old", "patch": None},
    ]
    desk.counter.answers["history.diff"] = page(*changes)
    shown = desk.nas("diff", "run-1").out
    renamed = "diff --git a/old b/new\nrename from old\nrename to new\n(no text: "
    assert shown.startswith("diff --git a/a b/a\n" + patch.replace("\x1b", r"\x1b") + renamed)
    assert desk.nas("diff", "run-1", "--name-status").out == "M\ta\nR\told -> new\n"
    assert desk.nas("diff", "a", "b", "--uncommitted").code == 2


def test_a_run_knows_itself_by_its_environment(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_RUN", "run-1")
    desk.counter.answers["commit.make"] = {"commit": "c" * 40, "branch": "builder/run-1", "changed": 2, "left_out": [".git"]}
    result = desk.nas("commit", "-m", "work")
    assert desk.asked() == [("commit.make", {"branch": "run-1", "message": "work"})]
    assert (result.out, result.err) == ("cccccccccccc  builder/run-1: 2 changed\n", "left out: .git\n")
    assert desk.nas("commit", "--json").document["commit"] == "c" * 40


def test_verification_ends_as_the_chain_is(desk: Desk) -> None:
    good = {
        "ok": True,
        "records": 7,
        "first_bad": None,
        "why": "",
        "completeness": "chain consistent, completeness unknown",
        "head": "abc",
    }
    desk.counter.answers["record.verify"] = good
    result = desk.nas("verify", "--anchor", "3:abc", "--json")
    assert (result.code, result.document) == (0, good | {"anchor": "7:abc"})
    assert desk.asked() == [("record.verify", {"anchor": "3:abc"})]
    desk.counter.answers["record.verify"] = {**good, "ok": False, "first_bad": 3}
    assert desk.nas("verify").code == 1


def test_relative_directories_are_those_of_the_caller(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mount = {"mount": "m", "mountpoint": str(tmp_path / "m"), "branch": "b", "pid": 1, "state": "live"}
    desk.counter.answers |= {
        "mount.add": mount,
        "mount.remove": mount,
        "export.make": {"directory": "x", "format": "git", "branch": "main", "commit": "c", "commits": 3},
        "checkout.make": {"directory": "x", "commit": "c", "files": 3},
    }
    (tmp_path / "m").mkdir()
    for words in (
        ["mount", "run-1", "m"],
        ["umount", "m"],
        ["umount", "run-1"],
        ["export", "main", "x", "--format", "git"],
        ["run", "checkout", "run-1", "x"],
    ):
        assert desk.nas(*words).code == 0
    assert desk.asked() == [
        ("mount.add", {"target": "run-1", "mountpoint": str(tmp_path / "m")}),
        ("mount.remove", {"mountpoint": str(tmp_path / "m")}),
        ("mount.remove", {"mountpoint": "run-1"}),
        ("export.make", {"branch": "main", "directory": str(tmp_path / "x"), "format": "git"}),
        ("checkout.make", {"run": "run-1", "directory": str(tmp_path / "x")}),
    ]


def test_a_foreground_mount_ends_with_its_mount(desk: Desk, tmp_path: Path) -> None:
    mount = {"mount": "m", "mountpoint": str(tmp_path), "branch": "b", "pid": 1, "state": "live"}
    left = [page(mount), page()]
    desk.counter.answers |= {"mount.add": mount, "mount.list": lambda _: left.pop(0)}
    assert desk.nas("mount", "run-1", str(tmp_path), "--foreground").code == 0
    assert [operation for operation, _ in desk.asked()] == ["mount.add", "mount.list", "mount.list"]


def test_what_has_many_operations_asks_the_right_one(desk: Desk) -> None:
    lease = {**{name: RUN[name] for name in ("lease", "run", "paths", "actions", "expires")}, "principal": "builder", "state": "live"}
    lease["budgets"] = {"reads": {"limit": 5, "used": 2}}
    lease |= {"destinations": [], "doors": None, "ceiling": None, "actors": [], "holder": None, "depth": None}
    token = {"token": "t", "principal": "ana", "label": "", "created": None, "expires": None, "revoked": None}
    principal = {"principal": "ana", "kind": "human", "disabled": False, "created": None}
    run = {name: RUN[name] for name in ("run", "role", "branch", "lease")} | {
        "state": "active",
        "created": None,
        "ended": None,
        "purpose": "",
    }
    desk.counter.answers |= {
        "principal.add": principal,
        "principal.list": page(principal),
        "principal.disable": principal,
        "token.issue": {**token, "secret": "nat1.x"},
        "token.list": page(token),
        "token.revoke": token,
        "run.list": page(run),
        "run.show": {**run, "taint": TAINT, "uncommitted": [{"kind": "added", "path": "a", "origin": None}]},
        "run.end": {"run": "run-1", "state": "ended", "commit": None, "left_out": []},
        "lease.list": page(lease),
        "lease.show": lease,
        "lease.narrow": {**lease, "secret": "anl1.y"},
        "lease.revoke": {"revoked": ["lease-1"]},
        "proposal.list": page(PROPOSAL),
        "proposal.show": PROPOSAL,
        "proposal.diff": page({"kind": "added", "path": "a", "origin": None}),
        "proposal.withdraw": PROPOSAL,
        "gate.show": {**GATE, "card": CARD},
        "gate.reject": {**GATE, "result": {}},
        "policy.show": {"text": "version: 1\n", "source": "main", "hash": "h"},
        "policy.explain": {
            "effect": "deny",
            "reason": "r",
            "rule": "x",
            "policy": "p",
            "considered": [{"rule": "x", "position": "p", "matched": False, "why": "w"}],
        },
        "gc.run": {"dry_run": True, "removed": [{"branch": "b", "why": "merged", "bytes": 5}], "trashed": [], "kept": [], "bytes": 5},
        "history.show": {**COMMIT, "changes": [{"kind": "added", "path": "a", "origin": None}]},
        "history.restore": {"commit": "c" * 40, "changed": 1},
        "record.keys": {"log": "k", "witnesses": []},
        "record.export": {"folder": "/tmp/e", "first": 6, "last": 9, "origin": "o"},
        "record.seal": {"sealed": []},
        "record.redact": {"sequence": 7, "commitment": "c"},
        "record.list": page(),
        "status.show": {
            "version": "0",
            "home": "/",
            "started": None,
            "pid": 1,
            "main": "c",
            "runs": 0,
            "gates": 0,
            "branches": 1,
            "doors": {"http": "x"},
        },
    }
    for words, operation, arguments in (
        (
            "principal add ana --kind human --attribute team=x",
            "principal.add",
            {"name": "ana", "kind": "human", "attributes": {"team": "x"}},
        ),
        ("principal list", "principal.list", {}),
        ("principal disable a/b", "principal.disable", {"name": "a/b"}),
        ("token issue ana --label laptop --ttl 30d", "token.issue", {"principal": "ana", "label": "laptop", "ttl": "30d"}),
        ("token list --principal ana", "token.list", {"principal": "ana"}),
        ("token revoke t", "token.revoke", {"token": "t"}),
        ("run list --state active --role builder", "run.list", {"state": "active", "role": "builder"}),
        ("run show run-1", "run.show", {"run": "run-1"}),
        ("run end run-1", "run.end", {"run": "run-1"}),
        ("lease list --run run-1 --state live", "lease.list", {"run": "run-1", "state": "live"}),
        ("lease show lease-1", "lease.show", {"lease": "lease-1"}),
        ("lease narrow lease-1 --paths src/** --ttl 1h", "lease.narrow", {"lease": "lease-1", "paths": ["src/**"], "ttl": "1h"}),
        ("lease revoke lease-1 --reason done", "lease.revoke", {"lease": "lease-1", "reason": "done"}),
        ("proposal list --run run-1", "proposal.list", {"run": "run-1"}),
        ("proposal show prop-1", "proposal.show", {"proposal": "prop-1"}),
        ("proposal diff prop-1 --name-status", "proposal.diff", {"proposal": "prop-1", "patch": False}),
        ("proposal withdraw prop-1 --comment no", "proposal.withdraw", {"proposal": "prop-1", "comment": "no"}),
        ("gate show gate-1", "gate.show", {"gate": "gate-1"}),
        ("gate reject gate-1 --digest d", "gate.reject", {"gate": "gate-1", "digest": "d"}),
        ("policy show", "policy.show", {}),
        ("policy explain write src/a --run run-1", "policy.explain", {"action": "write", "path": "src/a", "run": "run-1"}),
        ("gc --dry-run", "gc.run", {"dry_run": True}),
        ("show abcdef12 --name-status", "history.show", {"commit": "abcdef12", "patch": False}),
        ("restore run-1 abcdef12 a b", "history.restore", {"branch": "run-1", "source": "abcdef12", "paths": ["a", "b"]}),
        ("record export /tmp/e --after 5", "record.export", {"folder": "/tmp/e", "after": 5}),
        ("record keys", "record.keys", {}),
        ("record seal --older-than 90d", "record.seal", {"older_than": "90d"}),
        ("record redact 7 --reason private", "record.redact", {"sequence": "7", "reason": "private"}),
        ("record list --after 5 --kind gate.answer", "record.list", {"after": 5, "kind": "gate.answer"}),
        ("status", "status.show", {}),
    ):
        human = desk.nas(*words.split())
        assert (human.code, desk.asked()) == (0, [(operation, arguments)]), words
        machine = desk.nas(*words.split(), "--json")
        assert machine.code == 0, words
        assert isinstance(machine.document, dict | list), words
        assert machine.err == "", words
        desk.asked()
        assert "Traceback" not in human.err, words


def test_the_proof_of_a_record_is_written_and_nothing_is_overwritten(desk: Desk, tmp_path: Path) -> None:
    desk.counter.answers["record.prove"] = {"sequence": 7, "size": 9, "origin": "nas/log", "proof": "c2sp.org/tlog-proof@v1\n"}
    file = tmp_path / "proof"
    written = desk.nas("record", "prove", "7", str(file), "--json").document
    assert written == {"file": str(file), "sequence": 7, "size": 9, "origin": "nas/log"}
    assert file.read_text() == "c2sp.org/tlog-proof@v1\n"
    again = desk.nas("record", "prove", "7", str(file), "--json")
    assert (again.code, again.document["code"]) == (1, "system")


def test_what_was_not_kept_or_cosigned_ends_with_1(desk: Desk) -> None:
    signed = {"size": 4, "time": None, "behind": 0}
    status = {"records": 4, "origin": "o", "checkpoint": signed, "witnesses": [], "anchors": [], "segments": [], "failures": []}
    desk.counter.answers |= {"record.status": status, "record.checkpoint": {"size": 4, "note": "note\n", "failures": []}}
    assert desk.nas("record", "status").code == 0 and desk.nas("record", "checkpoint").out == "note\n"
    witness = {"name": "w", "url": "u", "size": 2, "behind": 2, "failure": "cannot be reached"}
    desk.counter.answers |= {
        "record.status": status | {"witnesses": [witness], "failures": ["w: cannot be reached"]},
        "record.checkpoint": {"size": 4, "note": "note\n", "failures": ["w: cannot be reached"]},
    }
    told = desk.nas("record", "status")
    assert told.code == 1 and "w: 2, 2 behind" in told.out and "cannot be reached" in told.out
    told = desk.nas("record", "checkpoint")
    assert told.code == 1 and told.out == "note\n" and "cannot be reached" in told.err


def test_the_record_is_followed(desk: Desk) -> None:
    desk.counter.happenings = [{"sequence": 4, "kind": "a", "run": "run-1"}, {}, {"sequence": 5, "kind": "b", "run": "run-2"}]
    result = desk.nas("record", "list", "--follow", "--run", "run-2", "--json")
    assert json.loads(result.out) == {"sequence": 5, "kind": "b", "run": "run-2"}
    assert desk.nas("record", "list", "--follow").out.splitlines()[0].split()[0] == "4"


def test_stop_waits_until_the_daemon_has_ended(desk: Desk) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    status = {"version": "0", "home": "/", "started": None, "pid": child, "main": "c", "runs": 0, "gates": 0, "branches": 1, "doors": {}}
    desk.counter.answers |= {"status.show": status, "daemon.stop": {"stopping": True}}
    assert desk.nas("stop", "--json").document == {"stopped": True, "pid": child}
    desk.counter.answers["status.show"] = {**status, "pid": os.getpid()}
    assert desk.nas("stop", "--timeout", "0").code == 1


def test_a_policy_is_checked_without_a_daemon(desk: Desk, tmp_path: Path) -> None:
    good = Path(__file__).parents[3] / "trust" / "policy" / "default.yaml"
    assert desk.nas("policy", "validate", str(good), "--home", str(tmp_path), "--json").document == {"ok": True, "diagnostics": []}
    bad = tmp_path / "policy.yaml"
    bad.write_text("version: 1\ngrantz: []\n")
    result = desk.nas("policy", "validate", str(bad), "--home", str(tmp_path))
    assert result.code == 1
    assert f"{bad}:2:1: error: " in result.out


def test_the_version_is_printed(desk: Desk) -> None:
    assert desk.nas("version", "--json").document == {"version": desk.nas("version").out.strip()}


LABEL: Document = {
    "path": "inbox/a",
    "branch": "main",
    "commit": None,
    "content": "c" * 40,
    "origin": "external",
    "sensitivity": "internal",
}
ASKED: Document = {"decision": "gated", "gate": "g1", "digest": "d1", "required_role": "owner", "before": "external/internal"}


def test_a_label_is_shown_with_where_it_comes_from(desk: Desk) -> None:
    part = {"source": "policy", "place": "policy.yaml:9:5", "origin": "external", "sensitivity": "internal"}
    desk.counter.answers["label.show"] = LABEL | {"because": [part]}
    human = desk.nas("label", "show", "inbox/a", "--branch", "run-1", "--at", "c0")
    assert desk.asked() == [("label.show", {"branch": "run-1", "path": "inbox/a", "at": "c0"})]
    assert "policy.yaml:9:5" in human.out
    assert "external" in human.out


def test_what_is_labelled_is_listed_page_after_page(desk: Desk) -> None:
    item = {"paths": "inbox/**", "source": "mark", "place": "", "origin": "external", "sensitivity": "internal"}
    desk.counter.answers["label.list"] = page(item)
    assert "inbox/**" in desk.nas("label", "list").out
    assert desk.asked() == [("label.list", {"branch": "main"})]


def test_a_mark_is_asked_for_with_the_words_that_were_given(desk: Desk) -> None:
    desk.counter.answers["label.mark"] = {"paths": "a/**", "origin": "internal", "sensitivity": "sensitive"}
    assert desk.nas("label", "mark", "a/**", "--sensitivity", "sensitive").code == 0
    assert desk.asked() == [("label.mark", {"pattern": "a/**", "sensitivity": "sensitive"})]
    assert desk.nas("label", "mark", "a/**", "--origin", "trusted").code == 2


def test_lowering_a_label_ends_as_a_question(desk: Desk) -> None:
    desk.counter.answers |= {
        "label.endorse": ASKED | {"path": "inbox/a", "after": "internal/internal"},
        "label.unmark": ASKED | {"pattern": "a/**", "after": "none"},
    }
    result = desk.nas("label", "endorse", "inbox/a", "--origin", "internal", "--reason", "read it")
    assert (result.code, "g1" in result.out) == (4, True)
    assert desk.nas("label", "unmark", "a/**", "--json").code == 4
    assert desk.asked() == [
        ("label.endorse", {"branch": "main", "path": "inbox/a", "origin": "internal", "reason": "read it"}),
        ("label.unmark", {"pattern": "a/**", "reason": ""}),
    ]
    assert desk.nas("label", "endorse", "inbox/a", "--origin", "internal").code == 2

"""What is told about policies without a daemon: from files and from a data directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT
from nasd.cli.main import run as nas
from tests.nasd.conftest import House, build_house
from tests.trust.samples import facts
from trust.facts import describe_facts
from trust.model import GateId
from trust.policy import default_policy


@pytest.fixture
def lived_in(tmp_path: Path) -> Iterator[House]:
    """Yield a house in which things were allowed, asked about and refused."""
    house = build_house(tmp_path, "reference")
    run, secret = house.start()
    house.write(run, {"src/a.py": b"a = 2\n"})
    house.proposals.propose(run, house.owner, "work")
    house.write(run, {f"gone/{number}": b"x" for number in range(40)})
    house.proposals.propose(run, house.owner, "more")
    house.write(run, {f"gone/{number}": None for number in range(40)})
    asked = house.proposals.propose(run, house.owner, "less")
    gate = house.trust.gate(GateId(str(asked["gate"])))
    house.gates.answer(gate.id, gate.digest, house.owner, "", approve=True)
    workspace = house.workspace(run, secret)
    with pytest.raises(Fault) as refused:
        workspace.create(ROOT, b"id_rsa", 0o600)
    assert refused.value.kind is Kind.DENIED
    workspace.close()
    yield house
    house.appliance.close()


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any]:
    code = nas([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_what_was_decided_is_derived_again_to_the_bit(lived_in: House, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = answer(capsys, "policy", "replay", "--home", lived_in.appliance.settings.home)
    kinds = [record.kind for record in lived_in.trust.records() if "judged" in record.body]
    assert set(kinds) == {"run.start", "merge", "gate.open", "denied"} and kinds.count("merge") == 3
    assert (code, result["decisions"], result["confirmed"], result["troubles"]) == (0, len(kinds), len(kinds), [])


def test_a_proposed_policy_is_told_by_what_it_would_have_decided(
    lived_in: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed = tmp_path / "proposed.yaml"
    proposed.write_text(default_policy().replace("at_least: 21\n", "at_least: 50\n").replace('      - "**/id_rsa"\n', ""))
    _, result = answer(capsys, "policy", "replay", proposed, "--home", lived_in.appliance.settings.home)
    assert {(each["from"], each["to"]): each["count"] for each in result["moved"]} == {("gate", "allow"): 2, ("deny", "allow"): 1}
    assert any("id_rsa" in each["example"] for each in result["examples"])
    assert nas(["policy", "replay", str(proposed), "--home", str(lived_in.appliance.settings.home)]) == 0
    assert "2 would go from gate to allow" in capsys.readouterr().out


def test_who_can_knows_principals_and_live_leases(lived_in: House, capsys: pytest.CaptureFixture[str]) -> None:
    home = lived_in.appliance.settings.home
    _, rows = answer(capsys, "policy", "who-can", "write", "src/a.py", "--home", home)
    by_name = {(row["who"], bool(row["lease"])): row for row in rows}
    assert (by_name["owner", False]["effect"], [each["role"] for each in by_name["owner", False]["obtainable"]]) == ("deny", ["coder"])
    assert nas(["policy", "who-can", "write", "src/a.py", "--home", str(home)]) == 0
    assert "by starting a run of coder" in capsys.readouterr().out


def test_explain_knows_leases(lived_in: House, capsys: pytest.CaptureFixture[str]) -> None:
    lease = lived_in.trust.leases()[0].id
    there = ("--lease", lease, "--home", lived_in.appliance.settings.home, "--at", int(lived_in.now[0]))
    _, told = answer(capsys, "policy", "explain", "egress", "--destination", "mail", *there)
    assert (told["effect"], told["rule"]) == ("deny", "lease")
    _, told = answer(capsys, "policy", "explain", "read", "a/id_rsa", "--taint", "internal", *there)
    assert (told["effect"], told["rule"]) == ("deny", "credentials-refused")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(default_policy())
    return path


def test_a_file_alone_is_enough(policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = ("--home", tmp_path / "nowhere")
    assert answer(capsys, "policy", "validate", policy, *nowhere) == (0, {"ok": True, "diagnostics": []})
    _, told = answer(capsys, "policy", "explain", "merge", "a", "--policy", policy, "--change", "deletes=30", *nowhere)
    assert (told["effect"], told["rule"]) == ("gate", "many-deletions-ask")
    _, told = answer(capsys, "policy", "explain", "start", "--policy", policy, "--role", "owner", "--request-ttl", "48h", *nowhere)
    assert (told["effect"], told["rule"]) == ("gate", "envelope")
    _, told = answer(capsys, "policy", "explain", "egress", "--policy", policy, "--taint", "external", "--destination", "mail", *nowhere)
    assert (told["effect"], told["rule"]) == ("gate", "untrusted-egress-asks")
    _, told = answer(
        capsys, "policy", "explain", "egress", "--policy", policy, "--taint", "external", "--destination", "mail", "--declared", *nowhere
    )
    assert told["effect"] == "allow"
    _, rows = answer(capsys, "policy", "who-can", "write", "src/a", "--policy", policy, *nowhere)
    assert {row["who"]: row["effect"] for row in rows} == {"owner": "deny", "agent": "allow"}
    _, schema = answer(capsys, "policy", "schema", *nowhere)
    assert schema["title"] == "Agent NAS policy"


def test_the_facts_of_a_record_can_be_explained(policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "facts.json"
    kept.write_text(json.dumps(describe_facts(facts(path=b"a/id_rsa"))))
    _, told = answer(capsys, "policy", "explain", "--facts", kept, "--policy", policy)
    assert told["rule"] == "credentials-refused"
    kept.write_text("{}")
    code, told = answer(capsys, "policy", "explain", "--facts", kept, "--policy", policy)
    assert (code, told["code"]) == (2, "invalid") and "these are no facts" in told["message"]


def test_diff_says_equal_and_ends_as_asked(policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("# the same\n" + default_policy())
    code, told = answer(capsys, "policy", "diff", policy, other, "--exit-code")
    assert (code, told["equal"], told["complete"]) == (0, True, True)
    other.write_text(default_policy().replace("at_least: 21\n", "at_least: 50\n"))
    code, told = answer(capsys, "policy", "diff", policy, other, "--exit-code")
    assert (code, told["equal"], len(told["wider"])) == (1, False, 1)
    facts_of_it = tmp_path / "facts.json"
    facts_of_it.write_text(json.dumps(told["wider"][0]["facts"]))
    effects = [answer(capsys, "policy", "explain", "--facts", facts_of_it, "--policy", each)[1]["effect"] for each in (policy, other)]
    assert effects == ["gate", "allow"]


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("explain", "fly", "--kind", "agent"), 2, "known: list, read"),
        (("explain", "read", "a", "--label", "purple"), 2, "origin/sensitivity"),
        (("explain", "merge", "a", "--change", "mood=3"), 2, "known: bytes, checks"),
        (("explain", "start", "--request-actions", "fly"), 2, "actions are as"),
        (("explain", "read", "a", "--lease", "l1", "--kind", "agent"), 1, "NAS_HOME"),
    ],
)
def test_what_cannot_be_asked_is_said_with_a_way_on(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, hint: str
) -> None:
    ended, told = answer(capsys, "policy", *words, "--policy", policy, "--home", tmp_path / "nowhere")
    assert ended == code and hint in told["hint"], told


def test_findings_have_codes_and_strict_takes_warnings_for_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("version: 1\nroles: {owner: [ana], idle: [bo]}\ngrants:\n  - {id: w, actions: [write]}\n")
    code, told = answer(capsys, "policy", "validate", path)
    assert code == 0 and {each["code"] for each in told["diagnostics"]} == {"unused-role", "endless-lease", "action-without-grant"}
    assert all(str(each["position"]).startswith(f"{path}:") for each in told["diagnostics"])
    assert nas(["policy", "validate", str(path), "--strict"]) == 1
    assert "[unused-role]" in capsys.readouterr().out


def test_names_are_looked_up_where_there_is_a_data_directory(lived_in: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = lived_in.appliance.settings.home
    assert answer(capsys, "policy", "validate", "--home", home)[0] == 0
    path = tmp_path / "p.yaml"
    path.write_text(default_policy().replace("owner: [owner]", "owner: [owner, bo]"))
    _, told = answer(capsys, "policy", "validate", path, "--here", "--home", home)
    assert [each["code"] for each in told["diagnostics"]] == ["unknown-principal"]

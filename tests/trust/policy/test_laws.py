"""What holds for every policy and all facts."""

from __future__ import annotations

import ast
import copy
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import trust
from tests import reasons
from tests.trust.policy.generated import compiled, documents, judged_facts
from tests.trust.policy.test_decide import any_facts, without_positions
from trust.canonical import canonical
from trust.facts import describe_decision, describe_facts
from trust.model import Action, Effect, Facts, GateId, LeaseState
from trust.policy import compile_policy, decide, default_policy
from trust.policy.diffing import compare_policies
from trust.policy.linting import lint_policy

FOLDER = Path(trust.__file__).parent
NEEDED = {Action.MERGE: "change", Action.START: "request", Action.EGRESS: "destination"} | dict.fromkeys(
    (Action.LIST, Action.READ, Action.WRITE, Action.DELETE), "path"
)


@settings(max_examples=80)
@given(documents, any_facts | judged_facts())
def test_every_policy_decides_about_all_facts_and_says_why(document: dict[str, Any], asked: Facts) -> None:
    decision = decide(compiled(document), asked)
    if decision.effect is not Effect.ALLOW:
        assert all(is_there(decision) for is_there in reasons.PARTS.values()), decision


@settings(max_examples=60)
@given(documents, judged_facts())
def test_a_fact_that_is_missing_never_allows(document: dict[str, Any], asked: Facts) -> None:
    policy = compiled(document)
    if asked.action in NEEDED:
        lacking = "" if asked.action is Action.EGRESS else None
        assert decide(policy, replace(asked, **{NEEDED[asked.action]: lacking})).rule == "facts-incomplete"
    if asked.lease is not None:
        assert decide(policy, replace(asked, lease_state=None)).rule == "facts-incomplete"
        assert decide(policy, replace(asked, lease_state=LeaseState.REVOKED)).effect is Effect.DENY


@settings(max_examples=60)
@given(documents, judged_facts())
def test_the_order_of_a_document_decides_nothing(document: dict[str, Any], asked: Facts) -> None:
    turned = copy.deepcopy(document)
    for section in ("grants", "guards", "labels"):
        turned[section].reverse()
        for rule in turned[section]:
            for key in ("actions", "paths"):
                rule.get(key, []).reverse()
    assert without_positions(decide(compiled(turned), asked)) == without_positions(decide(compiled(document), asked))


@settings(max_examples=60)
@given(documents, judged_facts())
def test_an_answer_of_people_never_allows_what_is_refused(document: dict[str, Any], asked: Facts) -> None:
    policy = compiled(document)
    before, after = decide(policy, asked), decide(policy, replace(asked, gate=GateId("g1")))
    assert after.effect is (Effect.ALLOW if before.effect is Effect.GATE else before.effect)


def test_what_is_said_about_policies_is_the_same_under_any_hash_seed() -> None:
    assert len({_said_elsewhere(seed) for seed in ("0", "1")}) == 1


def said() -> str:
    """Return what is found out about the default policy and a changed one, for comparison between processes."""
    before = compile_policy(default_policy(), "a")
    after = compile_policy(default_policy().replace("[list, read, write, delete, propose]", "[read, list]").replace("24h", "25h"), "b")
    diff = compare_policies(before, after)
    moved = [(each.action.value, describe_facts(each.facts), describe_decision(each.after), each.cells) for each in diff.decisions]
    return canonical([[str(each) for each in lint_policy(after)], moved])


def _said_elsewhere(seed: str) -> str:
    program = "from tests.trust.policy.test_laws import said; print(said())"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True, timeout=120)
    assert len(done.stdout) > 500
    return done.stdout


IMPURE = {"os", "sys", "time", "datetime", "random", "secrets", "uuid", "socket", "subprocess", "threading", "asyncio", "trio"} | {
    "logging", "sqlite3", "apsw", "tempfile", "shutil", "io", "re",
}  # fmt: skip
PURE = frozenset(
    [
        "os",
        "sys",
        "time",
        "datetime",
        "random",
        "secrets",
        "uuid",
        "socket",
        "subprocess",
        "threading",
        "asyncio",
        "trio",
        "logging",
        "sqlite3",
        "apsw",
        "tempfile",
        "shutil",
        "io",
        "re",
    ]
)
PURE = sorted([*(FOLDER / "policy").glob("*.py"), *(FOLDER / f"{name}.py" for name in ("facts", "labels", "model", "leases", "gates"))])


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(FOLDER)))
def test_what_decides_reads_no_clock_no_randomness_and_no_file(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not imported & IMPURE
    assert not called & {"open", "eval", "exec", "input", "print", "__import__", "id"} - ({"id"} if path.name in _BY_IDENTITY else set())


_BY_IDENTITY = {"outcomes.py"}
"""What tells rules of two policies apart by identity, which no answer depends on."""

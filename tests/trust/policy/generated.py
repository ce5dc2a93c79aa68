"""Policies and facts that tests generate: small enough to meet one another often."""

from __future__ import annotations

import functools
import json
from typing import Any

from hypothesis import strategies as st

from trust.labels import Label, Origin, Sensitivity
from trust.model import LEASABLE, Action, BudgetKind, ChangeFacts, Facts, LeaseState, PrincipalKind, PrincipalName, Scope
from trust.policy import CompiledPolicy, compile_policy

PATTERNS = ["**", "src/**", "src/*", "docs/**", "**/*.pem", "a?c", ".nas/**", "*.md", "src/deep/**"]
PATHS = [
    b"",
    b"src",
    b"src/a",
    b"src/deep/x",
    b"docs/x.pem",
    b"k.pem",
    b"abc",
    b".nas/policy.yaml",
    b".nas/x",
    b"r.md",
    b"\xff",
    b"src/x.pem",
]
NAMES = ["ana", "bo", "svc:build"]
ROLES = ["owner", "reviewer"]
LEASED = sorted(LEASABLE, key=lambda action: action.value)
_LABELLED = [*LEASED, Action.MERGE, Action.START]

some = functools.partial(st.lists, min_size=1, max_size=2, unique=True)
number = st.integers(0, 4)
numbers = st.sampled_from(["at_most", "at_least", "equals"]).flatmap(lambda operator: st.builds(lambda n: {operator: n}, number))
who = st.fixed_dictionaries(
    {},
    optional={
        "kinds": some(st.sampled_from([kind.value for kind in PrincipalKind])),
        "principals": some(st.sampled_from([*NAMES, "svc:*", "?o"])),
        "roles": some(st.sampled_from(ROLES)),
        "on_behalf_of": some(st.sampled_from([*NAMES, "*a"])),
    },
)
label_conditions = {
    "origin": some(st.sampled_from(["owner", "internal", "external"])),
    "sensitivity": some(st.sampled_from(["public", "internal", "sensitive"])),
    "rule_of_two": st.sampled_from([["kept"], ["broken"]]),
}
change_conditions = {
    "files": numbers,
    "deletes": numbers,
    "checks": some(st.sampled_from(["none", "passed", "failed", "missing"])),
    "stale_reads": numbers,
}
paths = some(st.sampled_from(PATTERNS))


def _limited(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule without what may not be there: empty members, accounts where nothing is sent."""
    rule = {key: value for key, value in rule.items() if value != {}}
    if "limits" in rule and "egress" not in rule["actions"]:
        rule["limits"] = {key: value for key, value in rule["limits"].items() if key != "destinations"}
    return rule


def _rule(extra: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    about_merges = st.fixed_dictionaries(
        {"actions": st.just(["merge"]), "when": st.fixed_dictionaries({}, optional=label_conditions | change_conditions), **extra},
        optional={"who": who, "paths": paths, **optional},
    )
    about_sending = st.fixed_dictionaries(
        {
            "actions": st.just(["egress"]),
            "when": st.fixed_dictionaries({"destination": st.sampled_from([["declared"], ["undeclared"]])}, optional=label_conditions),
            **extra,
        },
        optional={"who": who, "paths": paths, **optional},
    )
    about_labels = st.fixed_dictionaries(
        {
            "actions": some(st.sampled_from([action.value for action in _LABELLED])),
            "when": st.fixed_dictionaries({}, optional=label_conditions),
            **extra,
        },
        optional={"who": who, "paths": paths, **optional},
    )
    anything = st.fixed_dictionaries(
        {"actions": st.lists(st.sampled_from([action.value for action in Action]), min_size=1, max_size=4, unique=True), **extra},
        optional={"who": who, "paths": paths, **optional},
    )
    return st.one_of(about_merges, about_sending, about_labels, anything).map(_limited)


limits = st.fixed_dictionaries(
    {},
    optional={
        "ttl": st.sampled_from([5, 9]),
        "budgets": st.dictionaries(st.sampled_from(["reads", "commits"]), number, max_size=1),
        "destinations": st.sampled_from([["mail"], ["git*"], ["*"], ["mail", "git*"]]),
    },
)
asks = {
    "effect": st.just("gate"),
    "required_role": st.sampled_from(ROLES),
    "deadline": st.sampled_from([60, 90]),
    "fallback": st.sampled_from(["reject", "withdraw"]),
    "reason": st.just("because"),
}
refuses = {"effect": st.just("refuse"), "reason": st.just("because")}
grants = st.lists(_rule({}, {"limits": limits}), max_size=4)
guards = st.lists(_rule(asks, {}) | _rule(refuses, {}), max_size=3)
label_rules = st.lists(
    st.fixed_dictionaries(
        {"paths": paths},
        optional={"origin": st.sampled_from(["owner", "internal", "external"]), "sensitivity": st.sampled_from(["public", "sensitive"])},
    ).filter(lambda rule: len(rule) > 1),
    max_size=2,
)


def _document(grants: list[dict[str, Any]], guards: list[dict[str, Any]], labels: list[dict[str, Any]], two: str) -> dict[str, Any]:
    return {
        "version": 1,
        "roles": {"owner": ["ana"], "reviewer": ["bo"]},
        "grants": [{"id": f"g{index}", **rule} for index, rule in enumerate(grants)],
        "guards": [{"id": f"h{index}", **rule} for index, rule in enumerate(guards)],
        "labels": labels,
        "rule_of_two": {"effect": two},
    }


documents = st.builds(_document, grants, guards, label_rules, st.sampled_from(["gate", "refuse", "off"]))


def compiled(document: dict[str, Any], source: str = "p.yaml") -> CompiledPolicy:
    """Return the policy of a document."""
    return compile_policy(json.dumps(document, indent=1), source)


labels = st.builds(Label, st.sampled_from(list(Origin)), st.sampled_from(list(Sensitivity)))
changes = st.builds(
    ChangeFacts,
    paths=st.lists(st.sampled_from(PATHS[1:]), max_size=3, unique=True).map(tuple),
    files=st.integers(0, 5),
    deletes=st.integers(0, 5),
    checks=st.sampled_from(["none", "passed", "failed", "missing"]),
    stale_reads=st.integers(0, 5),
)
requests = st.builds(
    Scope,
    paths=st.lists(st.sampled_from([*PATTERNS, "src/a", "other"]), min_size=1, max_size=2).map(tuple),
    actions=st.frozensets(st.sampled_from(LEASED), min_size=1, max_size=3),
    not_before=st.just(1),
    expires=st.integers(2, 12),
    budgets=st.dictionaries(st.sampled_from([BudgetKind.READS, BudgetKind.COMMITS]), number, max_size=2),
    destinations=st.sampled_from([(), ("mail",), ("github",), ("git*", "mail"), ("other",), ("*",)]),
)
LEASE = Scope(("**",), LEASABLE, 0, 1000, destinations=("declared",))


@st.composite
def judged_facts(draw: st.DrawFn) -> Facts:
    """Return facts which nothing but the policy decides."""
    action = draw(st.sampled_from(list(Action)))
    leased = action in LEASABLE
    path = draw(st.sampled_from(PATHS)) if action in {Action.LIST, Action.READ, Action.WRITE, Action.DELETE} else None
    return Facts(
        now=1,
        principal=PrincipalName(draw(st.sampled_from([*NAMES, "coder"]))),
        kind=draw(st.sampled_from(list(PrincipalKind))),
        roles=draw(st.frozensets(st.sampled_from(ROLES))),
        on_behalf_of=PrincipalName(draw(st.sampled_from(["", *NAMES]))),
        action=action,
        path=path,
        lease=LEASE if leased else None,
        lease_state=LeaseState.LIVE if leased else None,
        left={},
        needs={},
        protected=action is Action.MERGE,
        change=draw(changes) if action is Action.MERGE else None,
        request=draw(requests) if action is Action.START else None,
        gate=None,
        disabled=False,
        taint=draw(labels),
        label=draw(labels),
        outward=draw(st.booleans()),
        destination=draw(st.sampled_from(["declared", "undeclared"])) if action is Action.EGRESS else "",
    )

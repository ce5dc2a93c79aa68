"""Facts and policies that tests start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from trust import Trust
from trust.labels import DEFAULT
from trust.model import Action, ChangeFacts, Facts, Lease, LeaseState, PrincipalKind, PrincipalName, RunId, Scope

NOW = 1_000
FILE_ACTIONS = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.PROPOSE})
WHOLE_TREE = Scope(("**",), FILE_ACTIONS, 0, 2_000)
FACTS = Facts(
    now=NOW,
    principal=PrincipalName("coder"),
    kind=PrincipalKind.AGENT,
    roles=frozenset(),
    on_behalf_of=PrincipalName("ana"),
    action=Action.READ,
    path=b"src/a.py",
    lease=WHOLE_TREE,
    lease_state=LeaseState.LIVE,
    left={},
    needs={},
    protected=False,
    change=None,
    request=None,
    gate=None,
    disabled=False,
    taint=DEFAULT,
    label=DEFAULT,
    outward=False,
    destination="",
)


def facts(**changes: Any) -> Facts:
    """Return the usual facts with some of them changed."""
    return replace(FACTS, **changes)


def merge(*paths: bytes, **changes: Any) -> Facts:
    """Return the facts of a merge that changes some paths; `taint` and `label` are its own, the rest is about the change."""
    labels = {name: changes.pop(name) for name in ("taint", "label") if name in changes}
    change = ChangeFacts(paths=paths, files=changes.pop("files", len(paths)), **changes)
    return facts(action=Action.MERGE, path=None, lease=None, lease_state=None, protected=True, change=change, **labels)


def open_trust(folder: Path) -> Trust:
    """Return an opened state with the owner `ana` and the agent `coder`."""
    trust = Trust.open(folder)
    trust.add_principal("ana", PrincipalKind.HUMAN, NOW, {"roles": "owner"})
    trust.add_principal("coder", PrincipalKind.AGENT, NOW)
    return trust


def give_lease(trust: Trust, scope: Scope = WHOLE_TREE) -> tuple[Lease, str]:
    """Return a lease of `coder` on behalf of `ana`, and its secret."""
    return trust.issue_lease(RunId("run-1"), PrincipalName("coder"), PrincipalName("ana"), scope, NOW)

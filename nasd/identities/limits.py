"""What a person's credential for one application may do at most, as a document and as a scope. Pure.

1. Limits only take away: the policy still decides what is left.
2. A document that is not wholly understood gives nothing: a limit that was lost is never a right that was won.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trust.cache import FOREVER
from trust.model import Action, Scope

READING = frozenset({Action.LIST, Action.READ})
WORKING = READING | {Action.WRITE, Action.DELETE}
PURPOSE = "app password"
LIMITED_OPERATIONS = frozenset({"activity.list", "activity.show", "branch.list", "commit.make", "git.publish", "git.receive"})
"""What the doors for files ask of the daemon on the way; whoever has limits reaches no other operation."""


def make_limits(paths: tuple[str, ...], actions: frozenset[Action], doors: frozenset[str], expires: int | None) -> Scope:
    """Return limits as a scope: these paths and actions at these doors, until `expires` (None: until it is revoked)."""
    return Scope(paths, actions, 0, FOREVER if expires is None else expires, PURPOSE, {}, doors=doors)


def describe_limits(limits: Scope) -> dict[str, Any]:
    """Return limits as a document."""
    return {
        "paths": list(limits.paths),
        "actions": sorted(action.value for action in limits.actions),
        "doors": sorted(limits.doors or ()),
        "expires": limits.expires,
    }


def read_limits(document: Mapping[str, Any]) -> Scope:
    """Return the scope that a document describes. Raises `KeyError` or `ValueError` for one that `describe_limits` did not make."""
    actions = frozenset(Action(name) for name in document["actions"])
    return make_limits(tuple(document["paths"]), actions, frozenset(document["doors"]), int(document["expires"]))

"""Which paths of a history one identity may have: what a whole copy of it, which never asks again, is made of.

1. A file is kept when it may be listed and read. The policy and the identity are those of one moment: the answers never change, and
   `name` stands for them all, whichever lease asks.
2. `trust.policy.decide` looks at a path only through the patterns of the action's rules, of the lease, and of the labels. Paths that all of
   those treat alike get one decision. Labels that were noted of exact bytes are not looked at here: see `nasd.lineage`.
3. What the policy gives whatever it says (the owner's own rights) is known without looking at any path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nasd.authority import gather, policy_in_force
from trust.canonical import canonical
from trust.labels import Label, join_all
from trust.model import Action, Effect, Identity, LeaseState, Mark
from trust.policy import CompiledPolicy, decide, path_set
from trust.policy.patterns import PathSet
from trust.service import Trust

_NEEDED = (Action.LIST, Action.READ)
_SAMPLE = b"\x00"
"""A name that no pattern can spell: it gets the answer of every name that no pattern singles out."""


class Readable:
    """`store.partial.Keep` for one identity. Any thread may call."""

    def __init__(self, policy: CompiledPolicy, identity: Identity, now: int, marks: Sequence[Mark] = ()) -> None:
        """Fix what `identity` may read under `policy`, with what `marks` label; a lease that counts at `now` counts for all of it."""
        self._policy = policy
        self._marks = [(path_set((mark.pattern,)), mark.label) for mark in marks]
        self._facts = {action: gather(identity, action, now, path=b"") for action in _NEEDED}
        self._scope = path_set(identity.scope.paths if identity.scope else ("**",))
        self._patterns = {action: self._patterns_of(action) for action in _NEEDED}
        self._decided: dict[tuple[Action, tuple[bool, ...]], bool] = {}
        self._built_in = all(self._is_built_in(action) for action in _NEEDED)
        self.name = self._digest()

    def keeps(self, directory: bytes, name: bytes) -> bool:
        """Tell whether a file may be listed and read."""
        path = directory + b"/" + name if directory else name
        return all(self._allows(action, path) for action in _NEEDED)

    def keeps_all(self, directory: bytes) -> bool:
        """Tell whether everything that is or could be below a directory may be read; False where patterns single something out."""
        if self._built_in:
            return True
        uniform = all(paths.uniform_subtree(directory) for patterns in self._patterns.values() for paths in patterns)
        return uniform and self.keeps(directory, _SAMPLE)

    def keeps_none(self, directory: bytes) -> bool:
        """Tell whether the lease, or every grant, leads to nothing below a directory."""
        if self._built_in:
            return False
        return not self._scope.may_match_below(directory) or not self._policy.may_grant_below(Action.READ, directory)

    def _allows(self, action: Action, path: bytes) -> bool:
        key = (action, tuple(paths.matches(path) for paths in self._patterns[action]))
        known = self._decided.get(key)
        if known is None:
            facts = replace(self._facts[action], path=path, label=self._label(path))
            known = self._decided[key] = decide(self._policy, facts).effect is Effect.ALLOW
        return known

    def _label(self, path: bytes) -> Label:
        return join_all((label for paths, label in self._marks if paths.matches(path)), self._policy.label_of(path))

    def _patterns_of(self, action: Action) -> list[PathSet]:
        """Return what a decision about the action looks at a path through; patterns of everything tell no paths apart."""
        policy = self._policy
        guards = (*policy.refusals_of[action], *policy.gates_of[action])
        rules = (*(grant.paths for grant in policy.grants_of[action]), *(guard.paths for guard in guards))
        lease = self._facts[action].lease
        labelled = (*(rule.paths for rule in policy.labels), *(paths for paths, _ in self._marks))
        labels = labelled if lease is not None and lease.ceiling is not None else ()
        return [paths for paths in (self._scope, *rules, *labels) if not paths.everything]

    def _is_built_in(self, action: Action) -> bool:
        decision = decide(self._policy, replace(self._facts[action], path=_SAMPLE))
        return decision.effect is Effect.ALLOW and decision.position.line == 0

    def _digest(self) -> str:
        facts = self._facts[Action.READ]
        lease = facts.lease
        scope: dict[str, Any] | None = (
            None if lease is None else {"paths": sorted(lease.paths), "actions": sorted(each.value for each in lease.actions)}
        )
        live = facts.lease_state in (None, LeaseState.LIVE)
        who = {"principal": facts.principal, "kind": facts.kind.value, "roles": sorted(facts.roles), "for": facts.on_behalf_of}
        if scope is not None and lease is not None and lease.ceiling is not None:
            scope |= {"ceiling": str(lease.ceiling), "marks": sorted(f"{paths.patterns[0].text} {label}" for paths, label in self._marks)}
        told = {"policy": self._policy.hash, "scope": scope, "live": live, "disabled": facts.disabled} | who
        return hashlib.sha256(canonical(told).encode()).hexdigest()


def readable_by(trust: Trust, identity: Identity, now: int) -> Readable:
    """Return what an identity may read under the policy in force."""
    return Readable(policy_in_force(trust), identity, now, trust.ledger.marks())

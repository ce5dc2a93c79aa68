"""Proposals that bring another policy: whether it can be one, what an approval of it binds, and what people see of it.

1. The text that is judged is the text that would count, to the byte: where `main` has another one than the proposal began with, that has to
   be brought in first, since nobody has seen what merging would make of two texts.
2. A policy with an error (`nas policy validate`) is refused before anybody is asked.
3. What people see is made when they are asked; the act binds the hash of the text alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from interfaces.faults import Fault
from interfaces.port import Document
from nasd.authority import policy_in_force
from nasd.paths import render_path
from nasd.policy_review import review
from nasd.policy_source import POLICY_PATH, policy_digest, read_policy
from nasd.proposal_rules import Proposal
from nasd.wiring import Appliance
from store.model import Change, CommitId
from trust.policy import examine_policy
from trust.policy.reading import Severity


class ProposedPolicies:
    """Looks at the policy of a proposal. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Look into the state of `appliance`."""
        self._engine = appliance.engine
        self._trust = appliance.trust

    def trouble(self, proposal: Proposal, changes: Sequence[Change], target: CommitId) -> str:
        """Return why the policy the proposal brings cannot be one, empty when it can or brings none."""
        if not _brings_policy(changes):
            return ""
        try:
            text = self._text(CommitId(proposal.head))
        except Fault as fault:
            return fault.message
        errors = [each for each in examine_policy(text, render_path(POLICY_PATH)) if each.severity is Severity.ERROR]
        if errors:
            return f"the policy in it does not compile: {errors[0]}"
        if self._moved(proposal, target, text):
            return f"{render_path(POLICY_PATH)} changed on {proposal.target} meanwhile: bring that in, then propose again"
        return ""

    def bound(self, proposal: Proposal, changes: Sequence[Change]) -> Document:
        """Return what an approval binds beside the changes: the hash of the policy that would count."""
        try:
            return {"policy_after": policy_digest(self._text(CommitId(proposal.head)))} if _brings_policy(changes) else {}
        except Fault:
            return {}  # `trouble` refuses it

    def shown(self, proposal: Proposal, changes: Sequence[Change]) -> Document:
        """Return what people see of the policy: what it decides differently, and what it would have decided of what was done."""
        if not _brings_policy(changes):
            return {}
        found = review(self._trust, policy_in_force(self._trust), self._text(CommitId(proposal.head)), render_path(POLICY_PATH))
        return {"policy_change": found} | _told(found)

    def _moved(self, proposal: Proposal, target: CommitId, text: str) -> bool:
        """Tell whether the target has another policy than the proposal began with, and than it brings."""
        try:
            there = self._text(target)
            before = self._text(CommitId(proposal.base)) if proposal.base else there
        except Fault:
            return False
        return there not in (before, text)

    def _text(self, commit: CommitId) -> str:
        return read_policy(self._engine.view(commit))


def _brings_policy(changes: Sequence[Change]) -> bool:
    return any(POLICY_PATH in (change.path, change.origin) for change in changes)


def _told(found: Document) -> Document:
    """Return the review in lines, as a card shows it."""
    replayed = found["replay"]
    moved = [f"{each['count']} would go from {each['from']} to {each['to']}" for each in replayed["moved"]]
    return {
        "policy_in_words": found["in_words"],
        **{f"policy_{section}": [_line(each) for each in found[section]] for section in ("wider", "narrower", "asks")},
        "policy_rules": [f"{each['rule']}: {each['change']}{_in_what(each)}" for each in found["rules"]],
        "policy_facts": [f"{each['path']}: {each['from']} becomes {each['to']}" for each in found["labels"]],
        "policy_replay": f"of {replayed['confirmed']} recorded decisions {', '.join(moved) or 'none would change'}",
    }


def _in_what(rule: Document) -> str:
    return f" ({', '.join(rule['what'])})" if rule["what"] else ""


def _line(difference: Document) -> str:
    return f"{difference['example']}: {difference['from']} becomes {difference['to']}, was {difference['was']}, by {difference['by']}"

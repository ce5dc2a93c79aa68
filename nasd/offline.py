"""What the command line can tell without a daemon: about a policy document. Pure but for compiling it."""

from __future__ import annotations

from interfaces.port import Document
from trust.policy import Explanation, check_policy


def validate_policy(text: str, source: str) -> Document:
    """Return whether a policy document compiles, with every finding and its position."""
    findings = check_policy(text, source)
    shown = [{"severity": "error", "message": item.message, "position": str(item.position), "hint": item.hint} for item in findings]
    return {"ok": not findings, "diagnostics": shown}


def view_explanation(explanation: Explanation) -> Document:
    """Return the document of a decision and every rule behind it."""
    decision = explanation.decision
    return {
        "effect": decision.effect.value,
        "reason": decision.reason,
        "rule": decision.rule,
        "policy": f"{decision.rule} ({decision.position})",
        "hint": decision.hint,
        "considered": [
            {"rule": rule.rule, "kind": rule.kind, "position": str(rule.position), "matched": not rule.failed, "why": rule.failed}
            for rule in explanation.considered
        ],
    }

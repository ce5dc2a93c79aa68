"""What a person sees of a policy that would change: what it decides differently, and what it would have decided of what was done.

Bounded, so that it fits on a card; whoever wants everything asks `nas policy diff` and `nas policy replay`.
"""

from __future__ import annotations

from interfaces.port import Document
from nasd.policy_views import view_diff, view_replay
from nasd.replaying import replay_records
from trust.policy import CompiledPolicy, compile_policy
from trust.policy.diffing import compare_policies
from trust.service import Trust

MOST_SHOWN = 12
"""How many differences of a direction a card shows."""
LAST_RECORDS = 20_000
"""How far back a card looks at what was decided."""
_LEFT_OUT = ("facts", "cells")


def review(trust: Trust, before: CompiledPolicy, text: str, name: str) -> Document:
    """Return the differences and the replay of a policy that compiles, against the one in force."""
    after = compile_policy(text, name)
    differences = view_diff(compare_policies(before, after), MOST_SHOWN)
    for section in ("wider", "narrower", "asks"):
        differences[section] = [{key: value for key, value in each.items() if key not in _LEFT_OUT} for each in differences[section]]
    taken_again = view_replay(replay_records(trust, after, LAST_RECORDS), MOST_SHOWN)
    return differences | {"in_words": tell_review(differences), "replay": taken_again}


def tell_review(differences: Document) -> str:
    """Return the differences in a sentence."""
    counts = {section: len(differences[section]) + differences[f"{section}_beyond"] for section in ("wider", "narrower", "asks")}
    parts = [
        f"{counts['wider']} kinds of act become easier" if counts["wider"] else "",
        f"{counts['narrower']} become harder" if counts["narrower"] else "",
        f"{counts['asks']} questions go to others" if counts["asks"] else "",
        *(f"the role {role['role']} {_tell_members(role)}" for role in differences["roles"]),
        f"{len(differences['labels'])} labels change" if differences["labels"] else "",
        f"{len(differences['checks'])} checks change" if differences["checks"] else "",
    ]
    told = "; ".join(part for part in parts if part) or "nothing is decided otherwise"
    return told if differences["complete"] else f"{told} (of a part of all cases)"


def _tell_members(role: Document) -> str:
    gained = f"goes to {', '.join(role['added'])}" if role["added"] else ""
    lost = f"leaves {', '.join(role['removed'])}" if role["removed"] else ""
    return " and ".join(part for part in (gained, lost) if part)

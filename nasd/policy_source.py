"""Where the policy lives: ``.nas/policy.yaml`` on `main`; what is in force is the text that trust adopted from there.

A merge that changes the file is judged by the policy in force, never by itself; the new text counts from then on.
"""

from __future__ import annotations

import hashlib

from interfaces.faults import Fault, Kind
from nasd.acts import recorded
from nasd.trees import read_small
from nasd.wiring import Appliance
from store.contract import Tree
from store.errors import IsADirectory, NotADirectory, NotFound
from store.model import CommitId

POLICY_PATH = b".nas/policy.yaml"
LIMIT = 1 << 20


def read_policy(tree: Tree) -> str:
    """Return the policy text of a tree. Raises `Kind.INVALID` when there is none or it is not text."""
    try:
        text = read_small(tree, POLICY_PATH, LIMIT + 1)
    except (NotFound, NotADirectory, IsADirectory):
        raise Fault(
            Kind.INVALID, "the tree would have no .nas/policy.yaml", hint="keep the file; change it instead of removing it"
        ) from None
    if len(text) > LIMIT:
        raise Fault(Kind.TOO_LARGE, f".nas/policy.yaml is larger than {LIMIT} bytes", hint="shorten it")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise Fault(Kind.INVALID, ".nas/policy.yaml is not UTF-8 text", hint="save it as UTF-8") from None


def policy_digest(text: str) -> str:
    """Return what an approval binds of a policy: the hash of its exact bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def adopt_from(appliance: Appliance, commit: CommitId) -> None:
    """Adopt the policy of a commit of `main` when its text is not the one in force."""
    text = read_policy(appliance.engine.view(commit))
    if text == appliance.trust.adopted_policy()[0]:
        return
    with recorded(appliance.trust, appliance.clock, "policy.adopt", None, {"commit": commit, "digest": policy_digest(text)}) as outcome:
        outcome["policy"] = appliance.trust.adopt_policy(text, f"{POLICY_PATH.decode()}@{commit[:12]}", appliance.now())

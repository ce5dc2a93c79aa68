"""A repeat of an effect under the same key gives the same answer and happens once.

1. The key belongs to its principal. The same key with another request is refused.
2. The key is claimed before the effect; while the first attempt runs, a second one is told to wait. A claim whose daemon
   died stays unanswered: the caller is told to look before it repeats, because nobody can say whether the effect happened.
3. Answers are kept without secrets: a secret is shown once. They are kept for a day.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.faults import flatten, revive
from trust.errors import Outdated, Taken
from trust.service import Trust

_KIND = "idempotency"
KEPT_SECONDS = 86400


class Idempotency:
    """Keeps the answers of effects by key. Any thread may call."""

    def __init__(self, trust: Trust, now: Callable[[], int]) -> None:
        """Keep them in `trust`; `now` gives seconds since the epoch."""
        self._trust = trust
        self._now = now

    def run(self, principal: str, key: str, request: Mapping[str, Any], effect: Callable[[], Document]) -> Document:
        """Return the kept answer of an earlier `request` under `key`, or run `effect` and keep its answer.

        Raises `Kind.KEY_REUSED` for another request under the key, `Kind.BUSY` while the first attempt has no answer.
        """
        name, digest = _digest([principal, key]), _digest(request)
        claim = {"request": digest, "at": self._now()}
        try:
            self._trust.put_document(_KIND, name, claim | {"answer": None}, 0)
        except (Taken, Outdated):
            return self._kept(name, key, digest)
        try:
            answer = effect()
        except Fault as fault:
            self._trust.put_document(_KIND, name, claim | {"fault": flatten(fault)}, 1)
            raise
        kept = {field: value for field, value in answer.items() if field != "secret"}
        self._trust.put_document(_KIND, name, claim | {"answer": kept}, 1)
        return answer

    def _kept(self, name: str, key: str, digest: str) -> Document:
        body = self._trust.document(_KIND, name).body
        if body["request"] != digest:
            raise Fault(Kind.KEY_REUSED, f"the key {key} was used for another request", hint="use a fresh key for each request")
        if fault := body.get("fault"):
            raise revive(fault)
        if body["answer"] is None:
            raise Fault(
                Kind.BUSY,
                f"the first request with the key {key} has no answer yet",
                hint="look whether it happened before you repeat it with another key",
            )
        return dict(body["answer"])


def forget_answers(trust: Trust, before: int) -> int:
    """Forget the answers to requests made before a time (seconds since the epoch), and return how many there were."""
    old = [document for document in trust.documents(_KIND) if document.body.get("at", 0) < before]
    return sum(trust.remove_document(_KIND, document.id, document.version) for document in old)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

"""Record first, then act: the one shape of every consequential act.

1. The intent is on stable storage before the body of the ``with`` runs; when it cannot be written the body never runs.
2. An intent tells the chain of actors when the lease it is done with was handed on.
3. The outcome follows, also when the act failed. An intent without outcome is what start-up reconciliation looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nasd.faults import as_fault
from trust.model import Identity
from trust.service import Trust

Clock = Callable[[], float]
"""Returns seconds since the epoch."""


@contextmanager
def recorded(trust: Trust, clock: Clock, kind: str, identity: Identity | None, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Record the intent `kind`, run the block, record its outcome.

    Yields a mapping the block may fill with what the outcome should tell. Raises `trust.errors.RecorderUnavailable`
    before the block runs when the intent cannot be recorded.
    """
    actors = list(identity.lease.scope.actors) if identity is not None and identity.lease is not None else []
    intent = trust.intend(kind, identity, {**body, "actors": actors} if actors else body, int(clock()))
    outcome: dict[str, Any] = {}
    try:
        yield outcome
    except Exception as error:
        fault = as_fault(error)
        trust.conclude(intent, {"result": "failed", "kind": fault.kind.value, "why": fault.message}, int(clock()))
        raise
    trust.conclude(intent, {"result": "done"} | outcome, int(clock()))

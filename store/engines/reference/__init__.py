"""The reference engine: the contract in memory, as simple as it can be. Every other engine is compared with it.

1. One lock around everything; whole trees are walked where that is simpler; nothing outlives the process.
2. What it does is right by definition. Where the contract leaves a choice open, no comparison may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from store.engines.reference.engine import ReferenceEngine


def probe() -> str | None:
    """Return None: it runs everywhere."""
    return None


def open_engine(folder: Path, *, role: str, clock: Callable[[], int]) -> ReferenceEngine:
    """Return an empty engine. `folder` and `role` do not matter: there is nothing to keep and nobody to share it with."""
    return ReferenceEngine(clock)


__all__ = ["ReferenceEngine", "open_engine", "probe"]

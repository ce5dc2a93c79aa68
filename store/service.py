"""Opening a store: engines are found by being a folder below ``store/engines``; nothing else knows their names.

1. An engine's folder has `probe() -> str | None`, which says why it cannot run here, and
   `open_engine(folder, role=..., clock=...) -> Engine`.
2. The owner of a store recovers and maintains it, one process at a time; gateways only work with what an owner has recovered.
"""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, cast

from store import engines
from store.contract import Engine
from store.errors import Unsupported

Role = Literal["owner", "gateway"]
Clock = Callable[[], int]
"""Returns nanoseconds since the epoch."""


class _Folder(Protocol):
    def probe(self) -> str | None:
        """Return why the engine cannot run here, or None."""

    def open_engine(self, folder: Path, *, role: Role, clock: Clock) -> Engine:
        """Open a store."""


def list_engines() -> dict[str, str | None]:
    """Return the name of every engine with the reason why it cannot run here, or None when it can."""
    names = sorted(module.name for module in pkgutil.iter_modules(engines.__path__) if module.ispkg)
    return {name: _load(name).probe() for name in names}


def open_store(folder: Path, engine: str = "git", *, role: Role = "owner", clock: Clock = time.time_ns) -> Engine:
    """Open the store in `folder`, making it when it is missing.

    Raises `Unsupported` for an engine that does not exist or cannot run here, `InUse` when another process owns the store.
    """
    found = list_engines()
    why = found.get(engine, f"no such engine; there are {', '.join(found)}")
    if why is not None:
        raise Unsupported(engine, why)
    return _load(engine).open_engine(folder, role=role, clock=clock)


def _load(name: str) -> _Folder:
    return cast("_Folder", importlib.import_module(f"{engines.__name__}.{name}"))

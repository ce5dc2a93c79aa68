"""What keeps the rows of trust. An engine is a folder here; nothing else names it.

1. An engine's package offers ``probe() -> str`` (why it does not work here, empty when it does) and ``open_engine(folder) -> Engine``.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from trust.contract import Engine
from trust.errors import RecorderUnavailable, Unknown


def engine_names() -> tuple[str, ...]:
    """Return the names of the engines there are."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def open_engine(name: str, folder: Path) -> Engine:
    """Open the state in a folder, making it if there is none.

    Raises `Unknown` for a name that is no engine, `RecorderUnavailable` when it does not work here or the folder cannot be written.
    """
    if name not in engine_names():
        raise Unknown(name, f"no such engine; there are: {', '.join(engine_names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    why_not: str = module.probe()
    if why_not:
        raise RecorderUnavailable(name, why_not)
    engine: Engine = module.open_engine(folder)
    return engine

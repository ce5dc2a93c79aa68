"""The operations of the API, one module a noun; an operation is there because its module is.

Each module has ``OPERATIONS``. Adding one is one more entry, adding a noun one more file, and no edit elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from nasd.operations.operation import Operation


def all_operations() -> Mapping[str, Operation]:
    """Return every operation by its id."""
    found: dict[str, Operation] = {}
    for module in pkgutil.iter_modules(__path__):
        for operation in getattr(importlib.import_module(f"{__name__}.{module.name}"), "OPERATIONS", ()):
            found[operation.id] = operation
    return found

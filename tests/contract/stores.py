"""The engines of the store that run here, and a fresh one for a test."""

from __future__ import annotations

import pytest

from store.service import list_engines


def every_engine() -> list[object]:
    """Return a parameter for each engine; one that cannot run here is skipped with its own reason."""
    return [
        pytest.param(name, id=name, marks=[] if why is None else [pytest.mark.skip(reason=f"{name}: {why}")])
        for name, why in list_engines().items()
    ]

"""The git engine: a virtual working layer over git objects, with SQLite as the authority for what moves."""

from __future__ import annotations

from store.engines.git.opening import open_engine, probe

__all__ = ["open_engine", "probe"]

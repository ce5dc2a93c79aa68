"""The engine for one machine: one SQLite database in WAL mode, shared by any number of processes."""

from trust.engines.sqlite.engine import open_engine, probe

__all__ = ["open_engine", "probe"]

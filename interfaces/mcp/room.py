"""Where one call of a tool happens: under whose authority, on which branch. Holds nothing beyond the call.

1. A lease works on its own run's branch unless it names another; a person's token on ``main``.
2. Every step goes through the port, which decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Control, Document, Workspace

Arguments = Mapping[str, Any]
"""The arguments of a call, checked against the tool's schema."""

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Room:
    """One caller's place; `clock` gives seconds that never go back."""

    control: Control
    caller: Caller
    clock: Callable[[], float]

    def branch(self, arguments: Arguments) -> str:
        """Return the branch, or run, that a call is about."""
        return arguments.get("branch") or self.caller.run or MAIN

    def run(self, arguments: Arguments) -> str:
        """Return the run that a call is about. Raises `Kind.INVALID` when there is none."""
        run: str = arguments.get("run") or self.caller.run
        if not run:
            raise Fault(Kind.INVALID, "which run?", hint="name it: the tool status without arguments lists the active ones")
        return run

    @contextmanager
    def open(self, arguments: Arguments) -> Iterator[Workspace]:
        """Give the workspace a call is about, as it is or as it was at a commit, while the block runs. Raises `Kind.NOT_FOUND`."""
        workspace = self.control.workspace(self.caller, self.branch(arguments), arguments.get("commit", ""))
        try:
            yield workspace
        finally:
            workspace.close()

    def call(self, operation: str, **arguments: Any) -> Document:
        """Return what an operation of the API answers; arguments that are None are left out. Raises `Fault`."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return self.control.call(self.caller, operation, given)

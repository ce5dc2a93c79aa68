"""The seam between the steps of a durable change, where a test can stop the process.

1. Code that makes something durable calls `step` before each call that changes the disk, with a word for what comes next.
2. Outside of tests nothing watches and a step costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable

Watcher = Callable[[str], None]
"""Called with the name of the step that is about to be taken."""

_watchers: list[Watcher] = []


def step(name: str) -> None:
    """Tell whoever watches that the step `name` comes next."""
    if _watchers:
        _watchers[-1](name)


def watch_steps(watcher: Watcher | None) -> None:
    """Have `watcher` called before every step of this process from now on; None ends it."""
    _watchers.clear()
    if watcher is not None:
        _watchers.append(watcher)

"""Ends the process at the 1st, 2nd, 3rd ... step of a scenario, and looks at what is there afterwards.

1. Every acknowledged call is there; the one that ran is there wholly or not at all; the store works on.
2. An engine takes part by having a module ``steps`` whose `watch_steps(watcher)` calls the watcher before each step that changes the
   disk. The child is forked, so the caller has no store open and no thread running meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from store import engines
from store.conformance.bench import Bench, BrokenPromise, Subject, put_file, read_file, same
from store.conformance.scenario import Scenario, see_store
from store.service import open_store

_CUT = 77
_FAILED = 78
_PATIENCE = 60


class _Steps(Protocol):
    def watch_steps(self, watcher: Callable[[str], None] | None) -> None:
        """Call `watcher` before every step."""


class Cut(NamedTuple):
    """What the child had acknowledged when it ended, whether it ended before the scenario did, and where."""

    acknowledged: tuple[str, ...]
    survived: bool
    step: str


def find_steps(engine: str) -> _Steps | None:
    """Return the engine's seam between steps, or None when it has none."""
    try:
        return cast("_Steps", importlib.import_module(f"{engines.__name__}.{engine}.steps"))
    except ModuleNotFoundError:
        return None


def cut_everywhere(engine: str, folder: Path, scenario: Scenario) -> int:
    """Run a scenario in a child that ends at its 1st, 2nd, 3rd ... step, until it survives; return the number of cuts."""
    expected = expect_states(folder, scenario)
    cuts = 0
    while True:
        subject = Subject(engine, folder / f"cut-{cuts}")
        cut = cut_at(subject, cuts + 1, scenario)
        check_after(subject, cut, expected)
        shutil.rmtree(subject.folder)
        if cut.survived:
            same(len(cut.acknowledged), len(expected) - 1, "the calls of the scenario that survived")
            return cuts
        cuts += 1


def expect_states(folder: Path, scenario: Scenario) -> list[object]:
    """Return what can be seen before the first call of a scenario and after each one, by the reference engine."""
    reference = open_store(folder, "reference")
    return [see_store(reference), *(see_store(reference) for _ in scenario(reference))]


def cut_at(subject: Subject, number: int, scenario: Scenario) -> Cut:
    """Run a scenario in a child that ends at step `number`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_child(subject, number, scenario, writer)
    os.close(writer)
    with contextlib.closing(os.fdopen(reader, "rb")) as lines:
        said = lines.read().decode().splitlines()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, _CUT):
        raise BrokenPromise(f"step {number}: the scenario failed by itself ({status}):\n" + "\n".join(said))
    acknowledged = tuple(line.removeprefix("did ") for line in said if line.startswith("did "))
    return Cut(acknowledged, status == 0, said[-1].removeprefix("cut ") if status == _CUT else "")


def _run_child(subject: Subject, number: int, scenario: Scenario, writer: int) -> None:
    """Play the scenario, tell each call that returned, and end this process; never returns."""
    status = _FAILED
    try:
        signal.alarm(_PATIENCE)
        _watch(subject.engine, number, writer)
        engine = subject.open()
        for word in scenario(engine):
            os.write(writer, f"did {word}\n".encode())
        engine.close()
        status = 0
    except BaseException:  # noqa: BLE001  whatever it is, it must reach the parent and must not unwind into the caller's frames
        os.write(writer, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _watch(engine: str, number: int, writer: int) -> None:
    steps = find_steps(engine)
    left = number

    def count(word: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.write(writer, f"cut {word}\n".encode())
            os._exit(_CUT)

    if steps is not None:
        steps.watch_steps(count)


def check_after(subject: Subject, cut: Cut, expected: list[object]) -> None:
    """Open what the child left behind and compare it with what may be there."""
    engine = subject.open()
    try:
        done = len(cut.acknowledged)
        allowed = expected[done : done + 2]
        found = see_store(engine)
        if found not in allowed:
            last = cut.acknowledged[-1] if cut.acknowledged else "nothing"
            raise BrokenPromise(f"cut at {cut.step!r} after {last!r} ({done} calls): found {found!r}, allowed {allowed!r}")
        _work_on(Bench(subject, engine))
    finally:
        engine.close()


def _work_on(bench: Bench) -> None:
    """See that the store still takes work."""
    working = bench.start("after")
    put_file(working, b"f", b"after the crash")
    same(read_file(bench.engine.view(bench.commit("after").id), b"f"), b"after the crash", "a commit after the crash")

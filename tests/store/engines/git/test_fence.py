"""Many may change a layer at once, or one freezes it; across threads and processes, and when a process dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from store.engines.git.fence import Fence

_SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fence"


def test_several_changes_are_inside_together(path: Path) -> None:
    fence = Fence(path)
    inside = threading.Barrier(3)

    def change() -> None:
        with fence.shared():
            inside.wait(30)

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    with fence.shared():
        inside.wait(30)
    for thread in threads:
        thread.join()
    fence.close()


@pytest.mark.parametrize("same_process_object", [True, False])
def test_nobody_changes_anything_while_one_is_alone(path: Path, same_process_object: bool) -> None:
    fence = Fence(path)
    other = fence if same_process_object else Fence(path)
    order: list[str] = []

    def change() -> None:
        with other.shared():
            order.append("changed")

    with fence.alone():
        thread = threading.Thread(target=change)
        thread.start()
        thread.join(0.2)
        order.append("alone")
    thread.join()
    assert order == ["alone", "changed"]


def test_a_stream_of_changes_starves_nobody(path: Path) -> None:
    fence, stop = Fence(path), threading.Event()

    def change() -> None:
        while not stop.is_set():
            with fence.shared():
                pass

    threads = [threading.Thread(target=change) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        fence.drain()
    stop.set()
    for thread in threads:
        thread.join()


def test_a_failure_inside_opens_the_fence_again(path: Path) -> None:
    fence = Fence(path)
    with pytest.raises(RuntimeError), fence.alone():
        raise RuntimeError
    with pytest.raises(RuntimeError), fence.shared():
        raise RuntimeError
    with fence.alone(), pytest.raises(RuntimeError):
        raise RuntimeError


def _hold(path: Path, pipe: Connection) -> None:
    with Fence(path).alone():
        pipe.send("inside")
        signal.pause()


def test_the_fence_opens_when_its_process_is_killed(path: Path) -> None:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_hold, args=(path, theirs))
    process.start()
    assert ours.recv() == "inside"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with Fence(path).shared():
        pass

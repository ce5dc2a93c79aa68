"""What a thread defers reaches stable storage with the next settling, and nothing of another thread is deferred with it."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

from store.engines.git import open_engine
from store.model import ROOT


def test_a_deferred_put_is_synced_by_settling_and_not_before(tmp_path: Path) -> None:
    synced: list[str] = []

    def sync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        os.fdatasync(descriptor)

    engine = open_engine(tmp_path / "store", clock=time.time_ns, sync=sync)
    engine.create_branch("work", None, 1)
    working = engine.working("work")
    synced.clear()
    with engine.deferring():
        working.place(ROOT, b"deferred", 0o644, io.BytesIO(b"x"))
    assert not any(path.endswith("-wal") for path in synced)
    engine.settle()
    assert any(path.endswith("-wal") for path in synced)
    synced.clear()
    working.place(ROOT, b"plain", 0o644, io.BytesIO(b"x"))
    assert any(path.endswith("-wal") for path in synced)
    working.close()
    engine.close()


def test_another_thread_waits_as_ever_while_one_defers(tmp_path: Path) -> None:
    waits: list[bool] = []
    engine = open_engine(tmp_path / "store", clock=time.time_ns, sync=lambda descriptor: waits.append(True))
    engine.create_branch("work", None, 1)
    working = engine.working("work")
    waits.clear()
    with engine.deferring():
        thread = threading.Thread(target=working.place, args=(ROOT, b"plain", 0o644, io.BytesIO(b"x")))
        thread.start()
        thread.join()
    assert waits
    working.close()
    engine.close()

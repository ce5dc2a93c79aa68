"""Git through the real processes: gateway workers that may die, the daemon behind them, a mount beside them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from tests.e2e.conftest import Nas, needs_fuse, wait_until
from tests.interfaces.git.conftest import attempt, commit, environment, git


def address(nas: Nas, run: dict[str, str]) -> str:
    door = nas.json("status")["doors"]["git"]
    return f"{door}{run['branch']}.git".replace("://", f"://{run['lease']}:{run['secret']}@")


def workers(nas: Nas) -> list[int]:
    return [json.loads(path.read_text())["pid"] for path in (nas.home / "run").glob("gateways/*.json")]


def head(nas: Nas, run: dict[str, str]) -> str:
    return str(nas.json("run", "show", run["run"])["head"])


@needs_fuse
def test_the_mount_and_git_show_one_branch(shared: Nas, tmp_path: Path) -> None:
    run = shared.start()
    place = shared.mount(run["run"])
    (place / "by-mount").write_text("1\n")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", address(shared, run), os.fspath(clone))
    assert (clone / "by-mount").read_text() == "1\n"
    with open(place / "by-mount") as held:
        inode = os.fstat(held.fileno()).st_ino
        commit(clone, {"by-mount": b"2\n", "by-git": b"3\n"})
        git(clone, "push", "--quiet")
        assert (place / "by-git").read_text() == "3\n"
        assert (place / "by-mount").read_text() == "2\n"
        assert (place / "by-mount").stat().st_ino == inode
    (place / "by-git").write_text("4\n")
    git(clone, "pull", "--quiet", "--ff-only")
    assert (clone / "by-git").read_text() == "4\n"


def test_a_push_whose_worker_is_killed_leaves_nothing_and_is_repeated(shared: Nas, tmp_path: Path) -> None:
    run = shared.start()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "-c", "http.postBuffer=65536", "-c", "core.compression=0", address(shared, run), os.fspath(clone))
    before = head(shared, run)
    pushed = commit(clone, {"noise": os.urandom(40 << 20)})
    pushing = subprocess.Popen(["git", "push", "--quiet"], cwd=clone, env=environment(clone), stderr=subprocess.DEVNULL)
    quarantines = shared.home / "store/tmp"
    wait_until(lambda: any(quarantines.glob("push-*")) or pushing.poll() is not None)
    assert pushing.poll() is None
    for pid in workers(shared):
        os.kill(pid, signal.SIGKILL)
    assert pushing.wait(60) != 0
    assert head(shared, run) == before
    deadline = time.monotonic() + 60
    while attempt(clone, "push").returncode and time.monotonic() < deadline:
        time.sleep(0.5)
    assert head(shared, run) == pushed
    assert shared.json("verify")["ok"]


def test_a_clone_whose_worker_is_killed_is_repeated(shared: Nas, tmp_path: Path) -> None:
    run = shared.start()
    shared.put_file(run, "noise", os.urandom(5 << 20))
    for pid in workers(shared):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while attempt(tmp_path, "clone", "--quiet", address(shared, run), "clone").returncode and time.monotonic() < deadline:
        time.sleep(0.5)
    assert (tmp_path / "clone/noise").stat().st_size == 5 << 20
    assert git(tmp_path / "clone", "fsck", "--full") == ""

"""The daemon dies at any step: what was acknowledged is there, each effect happened once or not at all, the chain verifies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Nas, plant

DYING = """
import json, os, signal, sys
from pathlib import Path
import nasd.daemon as daemon
from nasd.config import Settings
from store.engines.git.steps import watch_steps

limit = int(sys.argv[2])
count = 0

def step(name):
    global count
    count += 1
    if armed and count == limit:
        os.kill(os.getpid(), signal.SIGKILL)

armed = False
served = daemon.Daemon(Settings(home=Path(sys.argv[1]), listen="127.0.0.1:0", quiet_delay=3600))
served.start()
def counted(function):
    def call(*arguments, **more):
        step(function.__name__)
        try:
            return function(*arguments, **more)
        finally:
            step(function.__name__ + " done")
    return call
watch_steps(step)
for name in ("fdatasync", "fsync"):
    setattr(os, name, counted(getattr(os, name)))
import trust.service as service
import trust.questions as questions
for name in ("intend", "conclude", "put_document", "issue_lease", "revoke_lease"):
    setattr(service.Trust, name, counted(getattr(service.Trust, name)))
for name in ("ask", "answer", "acknowledge", "close", "withdraw", "supersede", "expire"):
    setattr(questions.Questions, name, counted(getattr(questions.Questions, name)))
armed = True
print("ready", flush=True)
served.run()
"""


class Victim:
    """A daemon in a child process that kills itself at its `limit`-th step, and what it acknowledged until then."""

    def __init__(self, nas: Nas, limit: int) -> None:
        self.nas = nas
        self.child = subprocess.Popen(
            [sys.executable, "-c", DYING, str(nas.home), str(limit)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == "ready\n"

    def end(self) -> bool:
        """Kill what is left of it and tell whether it had died by itself."""
        died = self.child.poll() is not None
        self.child.kill()
        self.child.wait()
        assert self.child.stdout is not None
        self.child.stdout.close()
        return died


def attempt(nas: Nas, *arguments: str, env: dict[str, str] | None = None) -> Any | None:
    """Return what a command printed when it was acknowledged, None when the daemon was gone."""
    done = nas.run(*arguments, "--json", expect=None, env=env)
    if done.returncode in (0, 4):
        return json.loads(done.stdout)
    return None


def work(nas: Nas, tag: str) -> dict[str, Any]:
    """Do a bit of everything and return what was acknowledged."""
    done: dict[str, Any] = {"files": {}}
    done["run"] = attempt(nas, "run", "start", "coder", "--purpose", tag)
    if done["run"] is None:
        return done
    branch = done["run"]["branch"]
    if nas.put_file(done["run"], f"{tag}.txt", tag.encode()):
        done["files"][f"{tag}.txt"] = tag
    done["commit"] = attempt(nas, "commit", branch, "-m", tag)
    done["proposal"] = attempt(nas, "propose", done["run"]["run"], "-m", f"small {tag}")
    if nas.put_file(done["run"], ".nas/note.txt", tag.encode()):
        done["files"][".nas/note.txt"] = tag
    done["asked"] = attempt(nas, "propose", done["run"]["run"], "-m", f"asks {tag}")
    if done["asked"] and done["asked"]["decision"] == "gated":
        shown = attempt(nas, "gate", "show", done["asked"]["gate"])
        if shown:
            done["answer"] = attempt(nas, "gate", "approve", shown["gate"], "--digest", shown["digest"])
    done["ended"] = attempt(nas, "run", "end", done["run"]["run"])
    return done


def check(nas: Nas, done: dict[str, Any]) -> None:
    """Everything that was acknowledged is there, nothing happened twice, nothing is left half done."""
    verdict = nas.json("verify")
    assert verdict["ok"], verdict
    runs = {run["run"]: run for run in nas.json("run", "list")}
    branches = {branch["branch"] for branch in nas.call("GET", "/v1/branches")["items"]}
    assert branches == {"main"} | {run["branch"] for run in runs.values()}, "no orphan on either side"
    main = nas.json("log", "main", "-n", "1000")
    merged = [entry["proposal"] for entry in main if entry["proposal"] and len(entry["parents"]) > 1]
    assert len(merged) == len(set(merged)), "a proposal merges once"
    states = {item["proposal"]: item for item in nas.json("proposal", "list")}
    assert {name for name, item in states.items() if item["state"] == "merged"} == set(merged)
    if done.get("run") is None:
        return
    run = runs[done["run"]["run"]]
    for path, content in done["files"].items():
        assert nas.get_file(run["branch"], path) == content.encode(), path
    if done.get("commit"):
        assert done["commit"]["commit"] in {entry["commit"] for entry in nas.json("log", run["run"], "-n", "1000")}
    for name in ("proposal", "asked"):
        if done.get(name) and done[name]["decision"] == "merged":
            assert done[name]["proposal"] in merged
    if done.get("answer"):
        assert done["asked"]["proposal"] in merged
    if done.get("ended"):
        assert run["state"] == "ended"


def survive(nas: Nas, limit: int, tag: str) -> bool:
    """Run the work against a daemon that dies at a step, look at what a fresh daemon makes of it; tell whether it died."""
    victim = Victim(nas, limit)
    done = work(nas, tag)
    died = victim.end()
    nas.serve()
    check(nas, done)
    nas.stop()
    return died


@pytest.fixture
def ready(bare: Nas, tmp_path: Path) -> Nas:
    bare.init("--import", str(plant(tmp_path / "tree")))
    return bare


@pytest.mark.slow
def test_the_daemon_may_die_at_every_step_of_every_act(ready: Nas, thorough: bool) -> None:
    """Count up, by one with ``--thorough``, else in strides from a random start, so that many runs over time meet every step."""
    stride = 1 if thorough else 97
    limit = random.randrange(1, stride + 1)
    rounds = 0
    while survive(ready, limit, f"step{limit}"):
        limit += stride
        rounds += 1
    assert rounds >= 2, "the work has more steps than that"


@pytest.mark.slow
def test_the_daemon_may_be_killed_at_any_moment(ready: Nas, thorough: bool) -> None:
    for number in range(40 if thorough else 2):
        ready.serve()
        pid = ready.pid()
        killer = subprocess.Popen(["sh", "-c", f"sleep {random.uniform(0.05, 2.5):.3f}; kill -9 {pid}"])
        done = work(ready, f"moment{number}")
        killer.wait()
        with pytest.raises(ProcessLookupError):
            while True:
                os.kill(pid, signal.SIGKILL)
        ready.serve()
        check(ready, done)
        ready.stop()

"""Checks: the policy's declared commands, run over a clean export of what is proposed.

1. A command sees a fresh directory with exactly the proposed tree and the system's programs, read-only: no data directory,
   no home, no network, no credentials, no other process (bubblewrap gives it namespaces of its own).
2. It ends with its time limit at the latest, with everything it started.
3. Where the isolation cannot be had the check is impossible and says so; it never runs without.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from store import Engine
from store.model import CommitId

OUTPUT_LIMIT = 16 << 10
_PATH = "/usr/local/bin:/usr/bin:/bin"
_BWRAP = "/usr/bin/bwrap"


@dataclass(frozen=True, slots=True)
class Check:
    """A declared command: its id, argument vector, time limit in seconds, and whether merging depends on it."""

    id: str
    run: tuple[str, ...]
    timeout: float
    required: bool


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check did. `state` is passed, failed, timeout or impossible; `output` is the end of what it printed."""

    id: str
    state: str
    required: bool
    seconds: float
    output: str


def summarise(results: Sequence[CheckResult]) -> str:
    """Return ``none``, ``passed`` or ``failed`` for the required ones among `results`. Pure."""
    required = [result for result in results if result.required]
    if not required:
        return "none"
    return "passed" if all(result.state == "passed" for result in required) else "failed"


def run_checks(engine: Engine, commit: CommitId, checks: Sequence[Check], scratch: Path) -> list[CheckResult]:
    """Export `commit` once per check below `scratch` and run each check there. Nothing of the export stays."""
    return [_run_check(engine, commit, check, scratch) for check in checks]


def _run_check(engine: Engine, commit: CommitId, check: Check, scratch: Path) -> CheckResult:
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="check-", dir=scratch))
    try:
        tree = folder / "tree"
        engine.export_directory(commit, tree, lambda *_: None)
        return _run_isolated(check, tree, folder / "output")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_isolated(check: Check, tree: Path, output: Path) -> CheckResult:
    if trouble := find_trouble(tree):
        return CheckResult(check.id, "impossible", check.required, 0.0, trouble)
    with output.open("wb") as sink:
        started = os.times().elapsed
        child = subprocess.Popen(
            [_BWRAP, *_isolation(check.id, tree), "--", *check.run],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={},
            start_new_session=True,
        )
        try:
            state = "passed" if child.wait(check.timeout) == 0 else "failed"
        except subprocess.TimeoutExpired:
            state = "timeout"
        finally:
            _end_session(child)
    return CheckResult(check.id, state, check.required, round(os.times().elapsed - started, 3), _tail(output))


def find_trouble(tree: Path) -> str:
    """Return why nothing can be run in isolation here, empty when it can."""
    if shutil.which(_BWRAP) is None:
        return "bwrap is missing: install the package bubblewrap"
    probe = subprocess.run([_BWRAP, *_isolation("probe", tree), "--", "true"], capture_output=True, text=True, env={}, cwd="/", check=False)
    return probe.stderr.strip() if probe.returncode else ""


def _isolation(check: str, tree: Path) -> list[str]:
    flags = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name in ("lib", "lib64", "bin", "sbin"):
        flags += ["--symlink", f"usr/{name}", f"/{name}"]
    for folder in ("/usr", "/opt", "/etc/alternatives", "/etc/ld.so.cache"):
        flags += ["--ro-bind-try", folder, folder]
    flags += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", str(tree), "/tree", "--chdir", "/tree"]
    environment = {"PATH": _PATH, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "CI": "true", "NAS_CHECK": check}
    for name, value in environment.items():
        flags += ["--setenv", name, value]
    return flags


def _end_session(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    child.wait()


def _tail(output: Path) -> str:
    with output.open("rb") as source:
        source.seek(max(0, output.stat().st_size - OUTPUT_LIMIT))
        return source.read().decode("utf-8", "backslashreplace")

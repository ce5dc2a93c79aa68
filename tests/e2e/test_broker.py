"""The broker of a real daemon: the secret is nowhere but in the broker, and a request gets it all the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import NAS, Nas
from tests.nasd.broker.upstream import Upstream, upstream

CANARY = "canary-9f8e7d6c5b4a-of-the-forge"
FILED = "canary-1a2b3c4d5e6f-in-a-file"
_CHUNK = 1 << 24


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


@pytest.fixture
def nas(tmp_path: Path) -> Iterator[Nas]:
    made = Nas(tmp_path)
    made.init()
    made.environment |= {"FORGE_TOKEN": CANARY, "NAS_LISTEN": "127.0.0.1:0"}
    yield made
    made.stop()


def holds(pid: int, wanted: bytes) -> bool:
    """Tell whether the memory of a process holds some bytes."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            tail = b""
            while start < end:
                try:
                    memory.seek(start)
                    piece = memory.read(min(_CHUNK, end - start))
                except (OSError, ValueError, OverflowError):
                    break
                if not piece:
                    break
                if wanted in tail + piece:
                    return True
                tail = piece[-len(wanted) :]
                start += len(piece)
    return False


def processes_of(home: Path) -> dict[str, list[int]]:
    """Return the processes of an appliance by their modules."""
    found: dict[str, list[int]] = {}
    daemon = json.loads(subprocess.run([NAS, "status", "--json", "--home", str(home)], capture_output=True, check=True).stdout)["pid"]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == daemon:
            found.setdefault(command[2].decode() if len(command) > 2 else "?", []).append(int(folder.name))
    return found | {"daemon": [daemon]}


def add_accounts(nas: Nas, server: Upstream, folder: Path) -> None:
    secret = folder / "token"
    secret.write_text(FILED + "\n")
    secret.chmod(0o600)
    options = ["--url", server.url, "--allow", "* **"]
    nas.run("account", "add", "forge", "--reference", "env://FORGE_TOKEN", *options)
    nas.run("account", "add", "filed", "--reference", f"file://{secret}", *options)


def use(nas: Nas, run: dict[str, Any], account: str) -> dict[str, Any]:
    lease = {"NAS_LEASE": run["secret"]}
    given: dict[str, Any] = nas.json("account", "call", account, "/echo", "-X", "POST", "--body", "hello", env=lease)
    return given


@pytest.mark.root
@pytest.mark.fuse
@pytest.mark.slow
def test_the_secret_is_in_no_process_but_the_broker_and_in_no_file(nas: Nas, server: Upstream, tmp_path: Path) -> None:
    nas.serve()
    add_accounts(nas, server, tmp_path)
    run = nas.start("coder", "--paths", "src/**", "--destination", "forge,filed")
    nas.mount(run["run"])
    for account, secret in (("forge", CANARY), ("filed", FILED)):
        given = use(nas, run, account)
        assert server.seen[-1].headers["authorization"] == f"Bearer {secret}"
        assert given["removed"] == 1
        assert secret not in json.dumps(given)
    _let_one_out(nas, server)
    processes = processes_of(nas.home)
    assert {"nasd.broker.process", "nasd.gateway_process", "nasd.mount_process", "daemon"} <= set(processes)
    (broker,) = processes.pop("nasd.broker.process")
    assert holds(broker, CANARY.encode()), "the search finds nothing where something is"
    for module, pids in processes.items():
        for pid in pids:
            assert not holds(pid, CANARY.encode()), module
            assert not holds(pid, FILED.encode()), module
    for pid in [broker, *(pid for pids in processes.values() for pid in pids)]:
        for name in ("cmdline", "environ"):
            assert CANARY.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    _assert_in_no_file(nas.home)


@pytest.mark.root
@pytest.mark.slow
def test_a_daemon_in_the_foreground_sheds_its_environment_too(nas: Nas, server: Upstream, tmp_path: Path) -> None:
    daemon = subprocess.Popen([NAS, "serve"], env=nas.environment, stderr=subprocess.PIPE, text=True)
    try:
        assert daemon.stderr is not None
        while "ready" not in (line := daemon.stderr.readline()):
            assert line, "the daemon ended"
        add_accounts(nas, server, tmp_path)
        nas.run("account", "test", "forge", "--path", "/x")
        assert server.seen[-1].headers["authorization"] == f"Bearer {CANARY}"
        assert CANARY.encode() not in Path(f"/proc/{daemon.pid}/environ").read_bytes()
        assert not holds(daemon.pid, CANARY.encode())
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=60)


@pytest.mark.slow
def test_an_act_that_a_crash_cut_off_is_told_as_unknown(nas: Nas, server: Upstream, tmp_path: Path) -> None:
    nas.serve()
    add_accounts(nas, server, tmp_path)
    run = nas.start("coder", "--paths", "src/**", "--destination", "forge")
    daemon = nas.json("status")["pid"]

    def answer_late(_: object) -> tuple[int, dict[str, str], bytes]:
        os.kill(daemon, signal.SIGKILL)
        time.sleep(0.2)
        return 200, {}, b""

    server.answers["/late"] = answer_late
    nas.run("account", "call", "forge", "/late", env={"NAS_LEASE": run["secret"]}, expect=None)
    nas.serve()
    outcomes = [record for record in nas.json("record", "list", "--kind", "egress") if record["phase"] == "outcome"]
    assert any("may have reached" in record["body"]["result"] for record in outcomes), outcomes
    assert len(server.seen) == 1, "it was sent twice"


def _let_one_out(nas: Nas, server: Upstream) -> None:
    """Have a run that read something external send to an account that its lease does not name: a person lets exactly that out."""
    run = nas.start("coder", "--paths", "src/**", "--actions", "read,egress")
    use(nas, run, "forge")
    lease, sent = {"NAS_LEASE": run["secret"]}, len(server.seen)
    asking = ("account", "call", "forge", "/send", "-X", "POST", "--body")
    gate = nas.json(*asking, "words", env=lease, expect=4)["gate"]
    card = nas.run("gate", "show", gate).stdout
    assert f"POST {server.url}/send as forge" in card
    nas.run("gate", "approve", gate, "--yes")
    nas.json(*asking, "other words", env=lease, expect=4)
    assert nas.json(*asking, "words", env=lease)["status"] == 200
    assert [seen.body for seen in server.seen[sent:]] == [b"words"]


def _assert_in_no_file(home: Path) -> None:
    looked = 0
    for path in home.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            looked += 1
            assert CANARY.encode() not in content, path
            assert FILED.encode() not in content, path
    assert looked > 10


_HARDENED = """
import ctypes, os, sys
from nasd.broker.process import _harden
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program is that was started by this user
print("open", flush=True)
sys.stdin.readline()
_harden()
print("closed", flush=True)
sys.stdin.readline()
"""


@pytest.mark.root
def test_no_process_of_the_same_user_reads_the_broker() -> None:
    def read_as_the_same_user() -> str:
        """Return what a process of the same user gets when it opens the memory of the child."""
        reader = (
            "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); open(f'/proc/{sys.argv[1]}/mem', 'rb'); print('read')"
        )
        done = subprocess.run([sys.executable, "-c", reader, str(child.pid)], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    child = subprocess.Popen([sys.executable, "-c", _HARDENED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "open\n"
        assert read_as_the_same_user() == "read\n"
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "closed\n"
        assert "PermissionError" in read_as_the_same_user()
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait(timeout=30)

"""A gate on a real daemon: who waits learns its end at once, also over the daemon's death, and who may answer is told."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from nasd.notices.sending import sign
from tests.e2e.conftest import NAS, Nas

KEY = base64.b64encode(b"key of thirty-two bytes, or more").decode()


def asked(nas: Nas, number: int = 0) -> tuple[Any, Any]:
    """Start a run, propose what asks people, and return the run and the proposal."""
    run = nas.start()
    assert nas.put_file(run, f".nas/note-{number}.txt", b"this asks")
    proposal = nas.json("propose", run["run"], "-m", "please", expect=4)
    return run, proposal


def waiting(nas: Nas, *arguments: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [str(NAS), *arguments, "--json"],
        env=nas.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    time.sleep(1.0)
    assert child.poll() is None, child.communicate()
    return child


def ended(child: subprocess.Popen[str]) -> tuple[int, Any]:
    out, err = child.communicate(timeout=60)
    assert out, err
    return child.returncode, json.loads(out)


@pytest.mark.parametrize(("verb", "code", "state"), [("approve", 0, "approved"), ("reject", 3, "rejected"), ("withdraw", 9, "withdrawn")])
def test_a_program_that_waits_learns_the_end_by_its_exit_code(nas: Nas, verb: str, code: int, state: str) -> None:
    _, proposal = asked(nas)
    gate = nas.json("gate", "show", proposal["gate"])
    child = waiting(nas, "gate", "wait", gate["gate"], "--closed")
    nas.json("gate", verb, gate["gate"], *(() if verb == "withdraw" else ("--digest", gate["digest"])))
    answered = time.monotonic()
    returned, document = ended(child)
    assert (returned, document["state"], document["phase"]) == (code, state, "closed")
    assert time.monotonic() - answered < 2


def test_whoever_proposed_waits_over_the_death_of_the_daemon_until_it_is_merged(nas: Nas) -> None:
    run = nas.start()
    assert nas.put_file(run, ".nas/note.txt", b"this asks")
    child = waiting(nas, "propose", run["run"], "-m", "please", "--wait")
    (gate,) = nas.json("gate", "list", "--state", "pending")
    os.kill(nas.pid(), signal.SIGKILL)
    time.sleep(0.5)
    nas.serve()
    assert nas.json("gate", "show", gate["gate"])["state"] == "pending"
    nas.json("gate", "approve", gate["gate"], "--digest", gate["digest"])
    code, document = ended(child)
    assert (code, document["decision"]) == (0, "merged")


def test_the_same_work_of_two_runs_is_answered_together(nas: Nas) -> None:
    proposals = [asked(nas)[1] for _ in range(2)]
    answered = nas.json("gate", "approve", proposals[0]["gate"], "--alike", "--yes")
    assert {item["gate"] for item in answered} == {proposal["gate"] for proposal in proposals}
    assert [item["result"]["decision"] for item in answered] == ["merged", "merged"]


def test_a_bypass_is_in_the_record_with_every_act_under_it(nas: Nas) -> None:
    _, proposal = asked(nas)
    rule = nas.json("gate", "show", proposal["gate"])["rule"]
    bypass = nas.json("gate", "bypass", "--rule", rule, "--for", "30min", "--reason", "moving")
    run = nas.start()
    assert nas.put_file(run, ".nas/more.txt", b"more")
    decided = nas.run("propose", run["run"], "-m", "more", "--json", expect=None)
    records = nas.json("record", "list", "--kind", "gate.bypassed")
    covered = json.loads(decided.stdout)["decision"] == "merged"
    assert covered == bool(records)
    assert nas.json("gate", "bypass", "--end", bypass["bypass"])["state"] == "ended"
    assert [item["state"] for item in nas.json("gate", "bypass")] == ["ended"]


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.came = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Receiver)
        self.send_response(204)
        self.end_headers()
        self.server.posts.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.server.came.set()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_who_may_answer_is_told_and_no_secret_is_in_any_file_of_ours(bare: Nas, receiver: Receiver) -> None:
    folder = bare.home.parent / "notify"
    folder.mkdir()
    (folder / "hook.key").write_text(KEY)
    (folder / "hook.key").chmod(0o600)
    (folder / "notify.toml").write_text(
        f'[[target]]\nname = "hook"\nwebhook = "http://127.0.0.1:{receiver.server_port}/nas"\nkey_file = "hook.key"\n'
    )
    bare.environment["NAS_NOTIFY"] = str(folder / "notify.toml")
    bare.init()
    bare.serve()
    try:
        run, proposal = asked(bare)
        assert receiver.came.wait(30)
        headers, body = receiver.posts[0]
        signed = sign(base64.b64decode(KEY), headers["webhook-id"], int(headers["webhook-timestamp"]), body)
        assert headers["webhook-signature"] == signed
        (event,) = json.loads(body)["data"]["events"]
        assert (event["gate"], event["run"], event["event"]) == (proposal["gate"], run["run"], "asked")
        assert b"please" not in body and b"note" not in body
    finally:
        bare.stop()
    for path in bare.home.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path

"""Telling people over a real mail server and a real receiver: what arrives, when it is tried again, and what never leaves."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from nasd.asking import Asking
from nasd.bypasses import Bypasses
from nasd.notices.delivery import APART, GATHER, Delivery, send_in_process
from nasd.notices.messages import MOST_LINES, MOST_TRIES, pause_after
from nasd.notices.sending import sign
from nasd.notices.targets import Target
from nasd.outbox import KIND, waiting
from tests.nasd.conftest import House, build_house
from trust.gates import Question
from trust.model import Ask, Gate

CANARY = "hunter2-canary-7f3a"
KEY = base64.b64encode(b"k" * 32).decode()


class Told:
    """Notes what would be sent, or fails as often as it is told to."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.why = ""

    def __call__(self, spec: Mapping[str, Any]) -> str:
        self.sent.append(spec)
        return self.why


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "reference")
    built.appliance = replace(built.appliance, settings=replace(built.appliance.settings, notify="somewhere"))
    yield built
    built.appliance.close()


MAIL = Target("mail", url_file="/none/mail")


def ask(house: House, number: int = 0, role: str = "owner") -> Gate:
    card = {"what": f"send {CANARY}", "why": CANARY, "files": 3, "deletes": 1, "changes": [{"kind": "added", "path": CANARY}]}
    question = Question(f"egress:r{number}", {"n": number}, card, Ask(role, 3600), "mail-asks", "coder", run=f"r{number}")
    return Asking(house.appliance).ask(question, house.owner)


def deliver(house: House, told: Told, *targets: Target) -> Delivery:
    return Delivery(house.appliance, targets or (MAIL,), told)


def test_many_questions_are_one_message_and_each_is_told_once(house: House, told: Told) -> None:
    delivery = deliver(house, told)
    gates = [ask(house, number) for number in range(3)]
    ask(house, 0)
    delivery.tick()
    assert not told.sent, "others may still come"
    house.pass_time(GATHER)
    delivery.tick()
    delivery.tick()
    (message,) = told.sent
    assert message["title"] == "Agent NAS: 3 questions wait for an answer"
    assert {line.split()[1].rstrip(":") for line in message["text"].splitlines()} == {gate.id for gate in gates}
    assert waiting(house.appliance) == []
    (sent,) = house.records("notice.sent")
    assert (sent["target"], sorted(sent["notices"])) == ("mail", sorted(f"{gate.id}-asked" for gate in gates))  # type: ignore[call-overload]


def test_what_is_told_names_the_gate_and_how_to_look_and_nothing_an_agent_wrote(house: House, told: Told) -> None:
    gate = ask(house)
    house.pass_time(GATHER)
    deliver(house, told).tick()
    (message,) = told.sent
    assert message["title"] == f"Agent NAS: gate {gate.id} waits for an answer"
    assert f"nas gate show {gate.id}" in message["text"] and "3 files (1 deleted)" in message["text"]
    assert CANARY not in json.dumps(message)
    event = json.loads(message["document"])["data"]["events"][0]
    assert (event["gate"], event["rule"], event["required_role"], event["files"]) == (gate.id, "mail-asks", "owner", 3)


def test_a_target_hears_of_its_roles_and_events_only(house: House, told: Told) -> None:
    reviewers = Target("reviewers", url_file="/none", roles=frozenset({"reviewer"}), events=frozenset({"asked"}))
    mine, theirs = ask(house, 1), ask(house, 2, "reviewer")
    house.pass_time(GATHER)
    deliver(house, told, MAIL, reviewers).tick()
    assert [mine.id in message["text"] for message in told.sent] == [True, False]
    assert [theirs.id in message["text"] for message in told.sent] == [True, True]


def test_a_target_is_not_told_more_often_than_it_can_bear(house: House, told: Told) -> None:
    delivery = deliver(house, told)
    ask(house, 1)
    house.pass_time(GATHER)
    delivery.tick()
    for number in range(2, 30):
        ask(house, number)
    house.pass_time(APART - 1)
    delivery.tick()
    assert len(told.sent) == 1
    house.pass_time(1)
    delivery.tick()
    assert len(told.sent) == 2
    lines = told.sent[1]["text"].splitlines()
    assert len(lines) == MOST_LINES + 1 and lines[-1].startswith("... and 8 more")


def test_what_is_answered_already_is_not_told(house: House, told: Told) -> None:
    gate = ask(house)
    house.gates.answer(gate.id, gate.digest, house.owner, "", approve=False)
    house.pass_time(GATHER)
    deliver(house, told).tick()
    assert not told.sent and waiting(house.appliance) == []


def test_what_fails_is_tried_again_with_longer_pauses_over_restarts_and_given_up(house: House, told: Told) -> None:
    gate = ask(house)
    told.why = "it answered 500"
    house.pass_time(GATHER)
    for tries in range(1, 6):
        deliver(house, told).tick()
        assert len(told.sent) == tries
        house.pass_time(pause_after(tries) - 1)
        deliver(house, told).tick()
        assert len(told.sent) == tries
        house.pass_time(1)
    told.why = ""
    deliver(house, told).tick()
    assert waiting(house.appliance) == [] and len(house.records("notice.failed")) == 5
    assert len({message["id"] for message in told.sent}) == 1, "a repeat has the same id"
    assert (pause_after(1), pause_after(2), pause_after(99)) == (10, 20, 3600)
    assert gate.id in told.sent[-1]["text"]


def test_a_target_that_never_answers_is_given_up_and_that_is_recorded(house: House, told: Told) -> None:
    Bypasses(house.appliance).open(house.owner, "many-files-ask", 86400, "moving")
    told.why = "it could not be reached"
    house.pass_time(GATHER)
    for tries in range(1, MOST_TRIES + 1):
        deliver(house, told).tick()
        house.pass_time(pause_after(tries))
    deliver(house, told).tick()
    assert len(told.sent) == MOST_TRIES and waiting(house.appliance) == []
    assert [body["given_up"] for body in house.records("notice.failed")] == [False] * (MOST_TRIES - 1) + [True]


def test_one_target_that_fails_keeps_no_other_waiting(house: House) -> None:
    heard: list[str] = []

    def send(spec: Mapping[str, Any]) -> str:
        heard.append(spec["url_file"])
        return "no" if spec["url_file"] == "/bad" else ""

    ask(house)
    house.pass_time(GATHER)
    delivery = Delivery(house.appliance, (Target("bad", url_file="/bad"), Target("good", url_file="/good")), send)
    delivery.tick()
    house.pass_time(pause_after(1))
    delivery.tick()
    assert heard == ["/bad", "/good", "/bad"]


def test_an_expired_question_and_a_bypass_are_told(house: House, told: Told) -> None:
    gate = ask(house)
    house.gates._appliance = house.appliance
    house.pass_time(3600)
    house.gates.tick()
    Bypasses(house.appliance).open(house.owner, "many-files-ask", 600, CANARY)
    house.pass_time(GATHER)
    deliver(house, told).tick()
    text = told.sent[0]["text"]
    assert f"gate {gate.id}" in text and "nobody answered in time: reject" in text
    assert "rule many-files-ask asks nobody until" in text and CANARY not in text


def test_without_targets_nothing_is_kept(tmp_path: Path) -> None:
    house = build_house(tmp_path / "home", "reference")
    ask(house)
    assert house.trust.documents(KIND) == []
    house.appliance.close()


# real services


class Inbox:
    """Keeps what a mail server takes."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(envelope.content)
        return "250 taken"


@pytest.fixture
def mail_server() -> Iterator[tuple[Inbox, int]]:
    inbox = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    yield inbox, port
    controller.stop()


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted, and answers with the statuses it is given, then 204."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Receiver)
        self.server.posts.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        self.send_response(status)
        if status in {301, 302, 307, 308}:
            self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

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


def secret_file(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_mail_arrives(house: House, tmp_path: Path, mail_server: tuple[Inbox, int]) -> None:
    inbox, port = mail_server
    url = f"mailto://127.0.0.1:{port}?from=nas@example.net&to=ana@example.net&mode=insecure"
    gate = ask(house)
    house.pass_time(GATHER)
    target = Target("mail", url_file=secret_file(tmp_path / "mail", url))
    Delivery(house.appliance, (target,)).tick()
    (mail,) = inbox.mails
    assert f"Subject: Agent NAS: gate {gate.id}".encode() in mail.replace(b"\r\n ", b" ") and gate.id.encode() in mail
    assert waiting(house.appliance) == [] and CANARY.encode() not in mail


def test_a_webhook_arrives_signed_and_is_repeated_under_the_same_id(house: House, tmp_path: Path, receiver: Receiver) -> None:
    gate = ask(house)
    house.pass_time(GATHER)
    receiver.statuses = [500]
    address = f"http://127.0.0.1:{receiver.server_port}/nas"
    target = Target("hook", webhook=address, key_file=secret_file(tmp_path / "key", f"whsec_{KEY}\n"))
    delivery = Delivery(house.appliance, (target,))
    delivery.tick()
    house.pass_time(pause_after(1))
    delivery.tick()
    assert waiting(house.appliance) == [] and len(receiver.posts) == 2
    for path, headers, body in receiver.posts:
        mac = sign(base64.b64decode(KEY), headers["webhook-id"], int(headers["webhook-timestamp"]), body)
        assert (path, headers["webhook-signature"], headers["content-type"]) == ("/nas", mac, "application/json")
        assert json.loads(body)["data"]["events"][0]["gate"] == gate.id
    assert len({headers["webhook-id"] for _, headers, _ in receiver.posts}) == 1
    assert house.records("notice.failed")[0]["why"] == "it answered 500"


def test_a_redirect_is_not_followed_and_a_secret_address_is_told_to_nobody(house: House, tmp_path: Path, receiver: Receiver) -> None:
    ask(house)
    house.pass_time(GATHER)
    receiver.statuses = [307]
    address = f"http://127.0.0.1:{receiver.server_port}/{CANARY}"
    target = Target("hook", webhook_file=secret_file(tmp_path / "address", address), key_file=secret_file(tmp_path / "key", KEY))
    Delivery(house.appliance, (target,)).tick()
    assert [path for path, _, _ in receiver.posts] == [f"/{CANARY}"]
    assert house.records("notice.failed")[0]["why"] == "it answered 307"
    assert CANARY not in json.dumps([dict(record.body) for record in house.trust.records()])


MESSAGE = {"id": "m1", "timestamp": 1, "title": "t", "text": "x", "document": "{}"}


def test_what_cannot_be_sent_is_told_without_its_secret(tmp_path: Path) -> None:
    nothing = {"url_file": "", "webhook": "", "webhook_file": "", "key_file": ""}
    key, short = secret_file(tmp_path / "key", KEY), secret_file(tmp_path / "short", base64.b64encode(b"short").decode())
    closed = secret_file(tmp_path / "closed", f"http://127.0.0.1:1/{CANARY}")
    cases = [
        ({"url_file": secret_file(tmp_path / "open", f"tgram://{CANARY}/1", 0o644)}, "can be read by others"),
        ({"url_file": str(tmp_path / "none")}, "cannot be read"),
        ({"url_file": secret_file(tmp_path / "odd", f"nonsense://{CANARY}")}, "none that Apprise knows"),
        ({"url_file": secret_file(tmp_path / "away", f"json://user:{CANARY}@127.0.0.1:1")}, "did not take it"),
        ({"webhook_file": closed, "key_file": key}, "could not be reached"),
        ({"webhook": "https://127.0.0.1:1/x", "key_file": short}, "shorter than 24 bytes"),
        ({"webhook_file": secret_file(tmp_path / "file", f"file:///{CANARY}"), "key_file": key}, "neither http nor https"),
        ({"webhook_file": secret_file(tmp_path / "junk", CANARY), "key_file": key}, "could not be reached"),
        ({"webhook": "https://127.0.0.1:1/x", "key_file": secret_file(tmp_path / "words", f"not base64 {CANARY}!")}, "base64"),
    ]
    for spec, why in cases:
        told = send_in_process(nothing | MESSAGE | spec)
        assert why in told and CANARY not in told, (spec, told)

"""From the outbox to the targets, until everybody was told.

1. What came together goes in one message; a target hears at most every `APART` seconds.
2. At least once: an entry is noted as sent after it was, so a crash in between sends it again, under the same id. What fails is tried again
   with growing pauses, over restarts too, and after about a day given up, which is recorded.
3. Sending is a process of its own with a time limit: no address or key enters the daemon, and nothing a service does can stop it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nasd.notices.messages import MOST_TRIES, document_of, pause_after, text_of, title_of
from nasd.notices.targets import Target
from nasd.outbox import KIND, waiting
from nasd.wiring import Appliance
from trust.errors import TrustError
from trust.model import Document, GateId, GateState

GATHER = 2
"""How many seconds an entry waits for others to travel with."""
APART = 30
"""How many seconds lie between two messages to one target."""
_PERIOD = 1.0
_SECONDS = 60.0
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
log = logging.getLogger("nasd.notices")

Send = Callable[[Mapping[str, Any]], str]
"""Sends one message and returns why it was not taken, empty when it was."""


def send_in_process(spec: Mapping[str, Any]) -> str:
    """Send one message in a process of its own."""
    command = [sys.executable, "-m", "nasd.notices.sending"]
    try:
        done = subprocess.run(
            command, input=json.dumps(spec).encode(), capture_output=True, timeout=_SECONDS, env=_ENVIRONMENT, cwd="/", check=False
        )
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return f"it took longer than {_SECONDS:.0f} seconds"
    except ValueError:
        return "the sending process failed"
    return "" if report["sent"] else str(report["why"])


class Delivery:
    """Tells the targets, in a thread of its own."""

    def __init__(self, appliance: Appliance, targets: Sequence[Target], send: Send = send_in_process) -> None:
        """Empty the outbox of `appliance` to `targets` with `send`."""
        self._appliance = appliance
        self._trust = appliance.trust
        self._targets = targets
        self._send = send
        self._heard: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="notices", daemon=True)

    def start(self) -> None:
        """Begin; without targets there is nothing to do."""
        if self._targets:
            self._thread.start()

    def stop(self) -> None:
        """End after the message under way."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def tick(self) -> None:
        """Send what is due, and take out what everybody was told or what is answered already."""
        entries = [entry for entry in waiting(self._appliance) if not self._is_settled(entry)]
        for target in self._targets:
            self._tell(target, entries)
        for entry in waiting(self._appliance):
            if self._is_settled(entry) or not any(_awaits(target, entry) for target in self._targets):
                self._trust.remove_document(KIND, entry.id, entry.version)

    def _is_settled(self, entry: Document) -> bool:
        """Tell whether an entry asks for an answer that is given already."""
        return entry.body["event"] == "asked" and self._trust.gate(GateId(entry.body["gate"])).state is not GateState.PENDING

    def _tell(self, target: Target, entries: Sequence[Document]) -> None:
        now = self._appliance.now()
        due = [entry for entry in entries if _awaits(target, entry) and _is_due(target, entry, now)]
        if not due or now < self._heard.get(target.name, 0) + APART:
            return
        bodies = [entry.body for entry in due]
        message = {
            "id": hashlib.sha256("\n".join(entry.id for entry in due).encode()).hexdigest()[:32],
            "timestamp": now,
            "title": title_of(bodies),
            "text": text_of(bodies),
            "document": document_of(bodies, now).decode(),
        }
        why = self._send(target.spec | message)
        self._note(target, due, why, self._appliance.now())

    def _note(self, target: Target, due: Sequence[Document], why: str, now: int) -> None:
        told = {"target": target.name, "notices": [entry.id for entry in due]}
        if why:
            log.warning("%s was not told: %s", target.name, why)
            self._trust.state("notice.failed", None, told | {"why": why, "given_up": _tries(target, due[0]) + 1 >= MOST_TRIES}, now)
        else:
            self._heard[target.name] = now
            self._trust.state("notice.sent", None, told, now)
        for entry in due:
            tries = _tries(target, entry) + 1
            over = not why or tries >= MOST_TRIES
            state = {"over": over, "tries": tries, "next": now + pause_after(tries)}
            self._keep(entry.id, target.name, state)

    def _keep(self, entry: str, target: str, state: Mapping[str, Any]) -> None:
        with self._trust.transaction():
            latest = self._trust.document(KIND, entry)
            sent = dict(latest.body["sent"]) | {target: dict(state)}
            self._trust.put_document(KIND, entry, dict(latest.body) | {"sent": sent}, latest.version)

    def _loop(self) -> None:
        while not self._stop.wait(_PERIOD):
            try:
                self.tick()
            except (TrustError, OSError) as error:
                log.error("notices: %s", error)


def _awaits(target: Target, entry: Document) -> bool:
    """Tell whether a target is still to be told of an entry."""
    return target.wants(entry.body["event"], entry.body["required_role"]) and not entry.body["sent"].get(target.name, {}).get("over")


def _is_due(target: Target, entry: Document, now: int) -> bool:
    state = entry.body["sent"].get(target.name)
    return bool(now >= (state["next"] if state else entry.body["at"] + GATHER))


def _tries(target: Target, entry: Document) -> int:
    return int(entry.body["sent"].get(target.name, {}).get("tries", 0))

"""The daemon: one process that owns a data directory, answers the API and does its own jobs.

1. Start: lock, recover the store, reconcile what a crash left, then answer. Until then nothing is served.
2. SIGTERM, SIGINT and ``nas stop`` drain: running requests finish, mounts are unmounted, counters are flushed.
3. It can be killed at any moment; the next start loses nothing that was acknowledged.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from interfaces.http import Door, HttpServer
from interfaces.port import Document
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from nasd.broker.environment import hand_over, shed_environment, take_descriptor
from nasd.broker.supervisor import Broker
from nasd.config import Settings, read_settings
from nasd.control import DaemonControl
from nasd.desk import Desk
from nasd.durations import render_time
from nasd.errors import AlreadyRunning, RolledBack, StartError
from nasd.exposure import bind_port, describe_doors
from nasd.gates import Gates
from nasd.gateways import Gateways
from nasd.jobs import Jobs
from nasd.link import LinkServer
from nasd.mounts import Mounts
from nasd.notary import Notary
from nasd.notices.delivery import Delivery
from nasd.notices.targets import read_targets
from nasd.outward import Outward
from nasd.policy_source import adopt_from
from nasd.proposals import Proposals
from nasd.reclaim import Reclaim
from nasd.reconcile import Reconciliation
from nasd.relabelling import LOWERING, Relabelling
from nasd.runs import Runs
from nasd.setup import ensure_owner_token
from nasd.telemetry import Telemetry
from nasd.wiring import Appliance, open_appliance

READY_SECONDS = 60.0
DRAIN_SECONDS = 20.0
log = logging.getLogger("nasd")


class Daemon:
    """Everything one daemon process holds."""

    def __init__(self, settings: Settings, variables: int | None = None) -> None:
        """Open and recover the data directory; `variables` is the descriptor of what the environment holds for the broker.

        Raises `StartError`.
        """
        targets = read_targets(settings.notify)
        for folder in (settings.run, settings.log):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._settings = settings
        self._variables = variables
        self._appliance = open_appliance(settings, "owner")
        self._stopping = threading.Event()
        self._started = self._appliance.now()
        self._build(self._appliance)
        self._notices = Delivery(self._appliance, targets)

    def _build(self, appliance: Appliance) -> None:
        self._runs = Runs(appliance)
        self._proposals = Proposals(appliance, self._runs, lambda commit: adopt_from(appliance, commit))
        self._gates = Gates(appliance, self._proposals)
        for kind in LOWERING:
            self._gates.register(kind, Relabelling(appliance))
        self._mounts = Mounts(appliance, self._runs.is_active)
        self._jobs = Jobs(appliance, self._runs, self._gates, self._mounts)
        reclaim = Reclaim(appliance, self._runs)
        self._broker = Broker(self._settings.broker_socket, self._settings.log / "broker.log", self._variables)
        outward = Outward(appliance, self._broker)
        self._notary = Notary(appliance)
        self._telemetry = Telemetry(appliance)
        desk = Desk(
            appliance,
            self._runs,
            self._proposals,
            self._gates,
            self._mounts,
            reclaim,
            outward,
            self.describe,
            self._stopping.set,
            self._notary,
        )
        self._control = DaemonControl(desk, self._describe_readiness)
        self._recovered: list[str] = []
        self._gateways = Gateways(self._settings.run / "gateways", self._settings.log / "gateways.log", self._settings)
        self._pool = Pool("http", Limits().threads)
        self._port = 0

    def start(self) -> None:
        """Reconcile, then serve. Raises `StartError` when the address is taken, `RolledBack` when records are gone."""
        try:
            self._notary.check()
        except RolledBack:
            self._appliance.close()
            raise
        ensure_owner_token(self._appliance)
        self._recovered = [
            *self._appliance.engine.recovered(),
            *Reconciliation(self._appliance, self._runs, self._proposals, self._gates).finish(),
        ]
        self._mounts.adopt()
        self._gateways.end_former()
        self._listening = bind_port(self._settings)
        self._port = self._listening.getsockname()[1]
        self._link = LinkServer(self._settings.link, self._control.answer)
        self._server = self._serve_socket()
        self._gateways.start(self._listening)
        self._jobs.start()
        self._notices.start()
        self._notary.start()
        self._telemetry.start()
        log.info("ready: %s", json.dumps(self.describe()["doors"]))

    def run(self) -> None:
        """Serve until asked to stop, then drain."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        self._stopping.wait()
        self.drain()

    def drain(self) -> None:
        """Finish what is under way and release everything."""
        log.info("draining")
        self._gates.drain()
        self._gateways.drain(DRAIN_SECONDS)
        self._listening.close()
        self._control.drain()
        self._server.drain(DRAIN_SECONDS)
        self._pool.close()
        self._link.close()
        self._control.close()
        self._broker.close()
        self._jobs.stop()
        self._notices.stop()
        self._telemetry.close()
        self._notary.close()
        self._mounts.close()
        self._appliance.close()
        log.info("stopped")

    def describe(self) -> Document:
        """Return what the daemon tells about itself."""
        return {
            "version": version("agent-nas"),
            "home": str(self._settings.home),
            "pid": os.getpid(),
            "started": render_time(self._started),
            "engine": "git",
            "doors": describe_doors(self._settings, self._port),
            "gateways": self._gateways.pids(),
            "broker": self._broker.pid or None,
            "recovered": list(self._recovered),
        }

    def _serve_socket(self) -> HttpServer:
        server = HttpServer(Door(self._control, version=version("agent-nas"), pool=self._pool), socket_path=self._settings.socket)
        server.start()
        if not server.wait_started(READY_SECONDS):
            raise StartError("the API did not start in time", hint="see log/nasd.log in the data directory")
        return server

    def _describe_readiness(self) -> Document:
        return {"ready": not self._stopping.is_set(), "home": str(self._settings.home)}


def serve(settings: Settings, *, background: bool) -> Document:
    """Serve a data directory: until stopped, or (`background`) until another process is ready to. Raises `StartError`."""
    if background:
        return _serve_in_background(settings)
    shed_environment(os.environ)
    _log_to(sys.stderr, settings.log_level)
    daemon = Daemon(settings, take_descriptor(os.environ))
    daemon.start()
    daemon.run()
    return {"stopped": True}


def _serve_in_background(settings: Settings) -> Document:
    settings.log.mkdir(parents=True, exist_ok=True, mode=0o700)
    reader, writer = os.pipe()
    spec = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(settings).items()}
    environment, variables = hand_over(os.environ)
    with (settings.log / "nasd.log").open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "nasd.daemon", str(writer)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(writer, *variables),
            start_new_session=True,
            cwd="/",
            env=environment,
        )
    for descriptor in (writer, *variables):
        os.close(descriptor)
    assert child.stdin is not None
    with child.stdin as pipe:
        pipe.write(json.dumps(spec).encode())
    with os.fdopen(reader, "rb") as reports:
        line = reports.readline()
    if not line:
        raise StartError("the daemon ended before it was ready", hint=f"see {settings.log / 'nasd.log'}")
    report: dict[str, Any] = json.loads(line)
    if error := report.get("error"):
        kind = AlreadyRunning if report.get("running") else StartError
        raise kind(error, hint=report["hint"])
    child.returncode = 0  # it lives on by itself; nothing here waits for it
    return report


def _serve_for_parent(report: int) -> int:
    settings = read_settings({}, json.load(sys.stdin))
    _log_to(sys.stderr, settings.log_level)
    with os.fdopen(report, "w", encoding="utf-8") as parent:
        try:
            daemon = Daemon(settings, take_descriptor(os.environ))
            daemon.start()
        except StartError as error:
            log.error("%s", error.message)
            json.dump({"error": error.message, "hint": error.hint, "running": isinstance(error, AlreadyRunning)}, parent)
            return 1
        parent.write(json.dumps(daemon.describe()) + "\n")
    daemon.run()
    return 0


def _log_to(stream: Any, level: str) -> None:
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(level=level.upper(), format="%(asctime)sZ %(levelname)s %(name)s: %(message)s", stream=stream)


def main() -> int:
    """Run the daemon in the foreground with the settings of the environment; with a descriptor as argument, for a waiting parent."""
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        return _serve_for_parent(int(sys.argv[1]))
    try:
        serve(read_settings(os.environ), background=False)
    except StartError as error:
        print(f"nasd: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

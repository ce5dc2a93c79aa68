"""A gateway process: one worker of the HTTP family, with every door of it, over the state it opens beside the daemon.

1. What it needs arrives as one line on standard input, which stays open: when it closes, the daemon is gone, and so is this process.
2. It inherits the listening socket, so that it can die and come back without a connection being refused.
3. It holds nothing that another worker could not continue with: what was counted is flushed every second.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.git import GitDoor
from interfaces.git.ports import Repositories
from interfaces.http import Door
from interfaces.port import Control
from interfaces.s3 import S3Door
from interfaces.web.family import Family, Member, Members
from interfaces.web.guard import LOOPBACK_NAMES
from interfaces.web.late import LateMember
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.serve import Tls, run
from interfaces.webdav import WebdavDoor
from nasd.config import proxy_secret_of, read_settings
from nasd.errors import StartError
from nasd.faults import as_fault
from nasd.gateway import GatewayControl
from nasd.link import LinkClient
from nasd.processes import describe_failure, report_to
from nasd.repositories import GitRepositories
from nasd.runs import Runs
from nasd.sight import Sight
from nasd.wiring import open_appliance

DRAIN_SECONDS = 15.0
log = logging.getLogger("nasd.gateway")


def main() -> int:
    """Serve what standard input says until told to stop. Returns the exit status."""
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(level=logging.INFO, format="%(asctime)sZ %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    spec = json.loads(sys.stdin.buffer.readline())
    report = int(spec["report"])
    try:
        _serve(spec, report)
    except (Fault, StartError, OSError) as error:
        fault = as_fault(error) if not isinstance(error, StartError) else Fault(Kind.UNAVAILABLE, error.message, hint=error.hint)
        log.error("cannot serve: %s", fault.message)
        report_to(report, describe_failure(fault))
        return 1
    return 0


def _serve(spec: dict[str, Any], report: int) -> None:
    settings = read_settings({}, spec["settings"])
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    threading.Thread(target=_end_with_daemon, args=(stopping,), name="daemon-watch", daemon=True).start()
    appliance = open_appliance(settings, "gateway")
    sight = Sight(appliance, Runs(appliance))
    control = GatewayControl(sight, LinkClient(settings.link))
    limits = Limits()
    pool = Pool("gateway", limits.threads, limits.uploads, control)
    try:
        run(
            make_family(control, GitRepositories(sight, control), pool, limits, LOOPBACK_NAMES | settings.host_names),
            descriptor=int(spec["descriptor"]),
            limits=limits,
            ready=lambda: report_to(report, {"ready": True}),
            stopping=stopping,
            drain_seconds=DRAIN_SECONDS,
            tls=Tls(Path(settings.tls_certificate), Path(settings.tls_key)) if settings.tls_certificate else None,
            proxies=settings.proxy_addresses,
            proxy_secret=proxy_secret_of(settings),
        )
    finally:
        pool.close()
        control.close()
        appliance.close()


def make_family(control: Control, repositories: Repositories, pool: Pool, limits: Limits, names: frozenset[str]) -> Family:
    """Return the application of every door of the HTTP family, asked for under `names`."""
    common: dict[str, Any] = {"pool": pool, "limits": limits, "names": names}
    release = version("agent-nas")

    def make_mcp() -> Member:
        from interfaces.mcp import McpDoor  # the SDK's modules are more than half of what a worker would read before it serves

        return McpDoor(control, version=release, **common)

    return Family(
        Members(
            http=Door(control, version=release, **common),
            webdav=WebdavDoor(control, **common),
            git=GitDoor(control, repositories, **common),
            mcp=LateMember(make_mcp),
            s3=S3Door(control, **common),
        )
    )


def _end_with_daemon(stopping: threading.Event) -> None:
    """Begin to stop when the daemon is gone, however it went; stay no longer than a drain may take."""
    while os.read(sys.stdin.fileno(), 4096):
        continue
    stopping.set()
    time.sleep(DRAIN_SECONDS + 5.0)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())

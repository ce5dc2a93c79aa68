"""The process of one mount: it opens the state beside the daemon and serves one branch to the kernel.

1. What to mount arrives on standard input; what became of it goes to the descriptor named there, as one line of JSON.
   No secret is needed: the daemon checked the caller, and the lease's row is what counts from then on. It has to count at mounts,
   and cannot be bound to a key: whoever can open the mount proves nothing.
2. It can die at any moment: every write that returned is in the store. The daemon starts it again.
3. What it counts (reads, denials, budgets) is flushed every second and when it ends.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.fuse.mountpoint import check_mountpoint, recover_mountpoint
from interfaces.fuse.options import Options
from interfaces.fuse.serve import serve
from interfaces.port import Document
from nasd.config import Settings
from nasd.errors import StartError
from nasd.faults import as_fault
from nasd.identities.presence import Presence
from nasd.processes import describe_failure, report_to
from nasd.wiring import open_appliance
from nasd.workspace import BranchWorkspace
from nasd.workspaces import identity_of, open_workspace
from trust.errors import TrustError

FLUSH_SECONDS = 1.0
log = logging.getLogger("nasd.mount")


def main() -> int:
    """Mount what standard input says and serve it until it is unmounted. Returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    spec = json.loads(sys.stdin.readline())
    report = int(spec["report"])
    try:
        _serve(spec, report)
    except (Fault, TrustError, StartError, OSError) as error:
        fault = as_fault(error) if not isinstance(error, StartError) else Fault(Kind.UNAVAILABLE, error.message, hint=error.hint)
        log.error("cannot mount %s: %s", spec["mountpoint"], fault.message)
        report_to(report, describe_failure(fault))
        return 1
    return 0


def _serve(spec: dict[str, Any], report: int) -> None:
    mountpoint = Path(spec["mountpoint"])
    recover_mountpoint(mountpoint)
    check_mountpoint(mountpoint, [Path(spec["home"])])
    appliance = open_appliance(Settings(home=Path(spec["home"])), "gateway")
    identity = identity_of(appliance, principal=spec["principal"], lease=spec["lease"], door="mount")
    Presence(appliance.trust).demand(identity, "mount", frozenset(), appliance.now())
    workspace = open_workspace(appliance, identity, spec["branch"], _no_commit)
    options = Options(uid=os.getuid(), gid=os.getgid(), allow_other=spec["allow_other"])
    stop = threading.Event()
    flusher = threading.Thread(target=_flush_often, args=(workspace, stop), name="flush", daemon=True)
    flusher.start()
    try:
        serve(workspace, mountpoint, options, lambda: report_to(report, {"ready": True}))
    finally:
        stop.set()
        flusher.join()
        workspace.close()
        appliance.close()


def _flush_often(workspace: BranchWorkspace, stop: threading.Event) -> None:
    while not stop.wait(FLUSH_SECONDS):
        try:
            workspace.flush()
        except Fault as fault:
            log.warning("cannot write what was counted: %s", fault.message)


def _no_commit(_: str) -> Document:
    raise Fault(
        Kind.UNSUPPORTED, "a mount does not commit by itself", hint="the daemon commits after a quiet moment; `nas commit` does it now"
    )


if __name__ == "__main__":
    sys.exit(main())

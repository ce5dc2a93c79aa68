"""Mount processes: started, watched, started again when they die, adopted by the next daemon.

1. A mount is wanted from the moment it was usable until somebody unmounts it or its run ends. What is wanted stands in
   ``run/mounts``, one file a mount, so that a daemon that was killed finds it again.
2. A mount process that ends without being asked is started again, after a pause that doubles up to ten seconds.
3. One lock guards the table; waiting for processes happens outside of it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.fuse.mountpoint import recover_mountpoint
from interfaces.port import Document
from nasd.durations import render_time
from nasd.ids import make_id
from nasd.processes import Process, start_process
from nasd.wiring import Appliance

START_SECONDS = 30.0
STOP_SECONDS = 15.0
LONGEST_PAUSE = 10.0
log = logging.getLogger("nasd.mounts")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: what is mounted for whom and where, and the process that serves it (`born` tells it from a later one with its number)."""

    mount: str
    mountpoint: str
    branch: str
    run: str
    lease: str
    principal: str
    since: int
    allow_other: bool = False
    pid: int = 0
    born: int = 0

    @property
    def process(self) -> Process:
        """Return the process that serves it."""
        return Process(self.pid, self.born)


class Mounts:
    """Supervises the mount processes of one data directory."""

    def __init__(self, appliance: Appliance, is_active: Callable[[str], bool]) -> None:
        """Keep the table in the run folder of `appliance`; `is_active` tells whether a run still has a lease that counts."""
        self._appliance = appliance
        self._is_active = is_active
        self._folder = appliance.settings.run / "mounts"
        self._mounts: dict[str, Mount] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def adopt(self) -> None:
        """Take over the mounts an earlier daemon left: watch those that live, start those that died."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in sorted(self._folder.glob("*.json")):
            mount = Mount(**json.loads(path.read_text(encoding="utf-8")))
            if not self._serves(mount):
                self.remove(mount)
                continue
            with self._lock:
                self._mounts[mount.mountpoint] = mount
            self._watch(mount)

    def add(self, mount_point: str, branch: str, run: str, lease: str, principal: str, *, allow_other: bool) -> Document:
        """Mount a branch and return when it is usable. Raises the fault of the mount process, `Kind.EXISTS` when the place is taken."""
        mountpoint = os.path.realpath(mount_point)
        now = self._appliance.now()
        name = make_id("m", self._appliance.clock(), self._appliance.entropy(4))
        mount = Mount(name, mountpoint, branch, run, lease, principal, now, allow_other)
        with self._lock:
            if mountpoint in self._mounts:
                taken = self._mounts[mountpoint].branch
                raise Fault(Kind.EXISTS, f"{mountpoint}: {taken} is mounted there", hint=f"nas umount {mountpoint}")
            self._mounts[mountpoint] = mount
        try:
            mount = self._keep(self._start(mount))
        except BaseException:
            self._forget(mount)
            raise
        self._watch(mount)
        return self.document(mount)

    def remove(self, mount: Mount) -> Document:
        """Unmount and return when it is done. Raises `Kind.BUSY` when the mount stays in use."""
        current = self._forget(mount) or mount
        if current.process.is_alive():
            current.process.signal(signal.SIGTERM)
            if not current.process.wait_gone(STOP_SECONDS):
                self._keep(current)
                self._watch(current)
                raise Fault(Kind.BUSY, f"{current.mountpoint} is still in use", hint="close what has files open there, then repeat")
        recover_mountpoint(Path(current.mountpoint))
        return {"mount": current.mount, "mountpoint": current.mountpoint, "state": "unmounted"}

    def remove_run(self, run: str) -> None:
        """Unmount everything a run has mounted; a mount in use stays and refuses, because its lease ended."""
        for mount in self.all():
            if mount.run == run:
                try:
                    self.remove(mount)
                except Fault as fault:
                    log.warning("%s", fault.message)

    def find(self, text: str) -> Mount:
        """Return the mount at a mountpoint, or the only one of a branch, run or mount id. Raises `Kind.NOT_FOUND`."""
        place = os.path.realpath(text)
        found = [mount for mount in self.all() if text in (mount.mount, mount.run, mount.branch) or mount.mountpoint == place]
        if len(found) != 1:
            raise Fault(
                Kind.NOT_FOUND,
                f"{text}: no such mount" if not found else f"{text}: mounted {len(found)} times",
                hint="`nas status` lists the mounts",
            )
        return found[0]

    def all(self) -> list[Mount]:
        """Return the mounts, by mountpoint."""
        with self._lock:
            return [self._mounts[place] for place in sorted(self._mounts)]

    def document(self, mount: Mount) -> Document:
        """Return the document of a mount."""
        state = "mounted" if mount.process.is_alive() else "restarting"
        return {
            "mount": mount.mount,
            "mountpoint": mount.mountpoint,
            "branch": mount.branch,
            "run": mount.run,
            "pid": mount.pid,
            "state": state,
            "since": render_time(mount.since),
        }

    def close(self) -> None:
        """Unmount everything; part of a drain."""
        self._closing.set()
        for mount in self.all():
            try:
                self.remove(mount)
            except Fault as fault:
                log.warning("%s", fault.message)

    # -- processes ------------------------------------------------------------------------------------------------

    def _start(self, mount: Mount) -> Mount:
        spec = asdict(mount) | {"home": str(self._appliance.settings.home)}
        started = start_process("nasd.mount_process", spec, self._appliance.settings.log / "mounts.log", seconds=START_SECONDS)
        return replace(mount, pid=started.process.pid, born=started.process.born)

    def _watch(self, mount: Mount) -> None:
        threading.Thread(target=self._keep_alive, args=(mount,), name=f"watch-{mount.mount}", daemon=True).start()

    def _keep_alive(self, mount: Mount) -> None:
        pause = 0.1
        while not self._closing.is_set():
            while mount.process.is_alive():
                time.sleep(0.1)
            if not self._wanted(mount):
                return
            log.warning("the mount process of %s ended; starting it again", mount.mountpoint)
            try:
                mount = self._keep(self._start(mount))
                pause = 0.1
            except Fault as fault:
                log.error("cannot mount %s again: %s", mount.mountpoint, fault.message)
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _wanted(self, mount: Mount) -> bool:
        with self._lock:
            kept = self._mounts.get(mount.mountpoint)
        return kept is not None and kept.mount == mount.mount and not self._closing.is_set() and self._serves(mount)

    def _serves(self, mount: Mount) -> bool:
        """Tell whether there is still something to serve: a branch of nobody in particular, or a run that is not over."""
        return not mount.run or self._is_active(mount.run)

    def _keep(self, mount: Mount) -> Mount:
        with self._lock:
            self._mounts[mount.mountpoint] = mount
        path = self._folder / f"{mount.mount}.json"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_suffix(".tmp")
        fresh.write_text(json.dumps(asdict(mount)), encoding="utf-8")
        fresh.replace(path)
        return mount

    def _forget(self, mount: Mount) -> Mount | None:
        with self._lock:
            current = self._mounts.pop(mount.mountpoint, None)
        (self._folder / f"{mount.mount}.json").unlink(missing_ok=True)
        return current

"""One mount, from the first message to the last, in the process that calls.

1. `serve` returns when somebody unmounted, when SIGTERM or SIGINT came, or raises when the mount could not be made.
2. On a signal no new request is taken, those under way are answered, and the mount is taken down.
3. The caller forks, supervises and mounts again; one process serves one mount.
"""

from __future__ import annotations

import enum
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pyfuse3

from interfaces.faults import Fault, Kind
from interfaces.fuse.attributes import Caller
from interfaces.fuse.channels.loop import Loop
from interfaces.fuse.channels.pyfuse3_channel import Channel, run_session
from interfaces.fuse.mountpoint import find_mount, unmount
from interfaces.fuse.notices import Announcer
from interfaces.fuse.operations import Operations
from interfaces.fuse.options import Options
from interfaces.fuse.watch import Watch
from interfaces.port import Workspace

logger = logging.getLogger(__name__)

READ_AHEAD_KIB = 1024
"""How far the kernel reads ahead, as far as one message carries."""

_ANNOUNCER_SECONDS = 1.0


class Ended(enum.Enum):
    """Why a mount ended."""

    UNMOUNTED = "unmounted"
    TERMINATED = "terminated"


def serve(workspace: Workspace, mountpoint: Path, options: Options, ready: Callable[[], None]) -> Ended:
    """Mount a workspace and answer the kernel until the end, and return why it ended.

    `ready` is called once the mount is usable; it must not touch the mount. Closes what is open, not the workspace.
    Raises `Kind.UNAVAILABLE` when the kernel or fusermount3 refuse.
    """
    owner = Caller(options.uid, options.gid)
    operations = Operations(workspace, owner)
    started = threading.Event()
    channel = Channel(operations, owner, lambda: _begin(started, ready))
    _allow_many_files()
    _mount(channel, mountpoint, options, workspace.branch)
    announcer = Announcer(channel.announce)
    watch = Watch(operations, announcer.tell, options.check_seconds)
    loop = Loop(lambda: _tick(watch, started, mountpoint), options.poll_seconds)
    announcer.start()
    try:
        with _end_on_signal() as signalled:
            run_session(channel, loop)
    finally:
        _take_down(announcer, mountpoint)
        operations.close()
    return Ended.TERMINATED if signalled.is_set() else Ended.UNMOUNTED


def _begin(started: threading.Event, ready: Callable[[], None]) -> None:
    started.set()
    ready()


def _tick(watch: Watch, started: threading.Event, mountpoint: Path) -> None:
    if started.is_set():
        # Only now: the kernel sets its own read-ahead while it takes our answer to its first message.
        started.clear()
        _read_far_ahead(mountpoint)
    watch.tick()


def _take_down(announcer: Announcer, mountpoint: Path) -> None:
    # A notice that hangs in the kernel still uses the session: then the session is left to the end of the process.
    if announcer.stop(_ANNOUNCER_SECONDS):
        pyfuse3.close(unmount=True)
    else:
        unmount(mountpoint, lazy=True)


def _mount(channel: Channel, mountpoint: Path, options: Options, branch: str) -> None:
    try:
        pyfuse3.init(channel, str(mountpoint), options.mount_options(branch))
    except RuntimeError as error:
        hint = "is /dev/fuse there and fusermount3 installed? Other users need user_allow_other in /etc/fuse.conf"
        raise Fault(Kind.UNAVAILABLE, f"{mountpoint} cannot be mounted: {error}", hint=hint) from error


@contextmanager
def _end_on_signal() -> Iterator[threading.Event]:
    """Let SIGTERM and SIGINT end the session, and put back what they did before."""
    signalled = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        signalled.set()
        pyfuse3.terminate()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield signalled
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _allow_many_files() -> None:
    """Use all the descriptors the system grants: each open file of the mount needs one."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _read_far_ahead(mountpoint: Path) -> None:
    """Let cold sequential reads come in large pieces; without the right to say so, they come in smaller ones."""
    device = _device_of(mountpoint)
    if device is None:
        return
    try:
        Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb").write_text(str(READ_AHEAD_KIB), "ascii")
    except OSError as error:
        logger.debug("read-ahead stays at the kernel's default: %s", error)


def _device_of(mountpoint: Path) -> int | None:
    # A stat of the mountpoint would wait for an answer that only this thread can give; the mount table does not.
    mount = find_mount(mountpoint)
    return None if mount is None else mount.device

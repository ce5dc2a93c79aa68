"""Git as a child of this process: what it may know, what it may take, and its end. For the event loop.

1. The environment is fixed: no configuration of the machine or of a user, no hook, no helper, no terminal, nothing of ours.
2. Anonymous memory and processor time are bounded by the kernel; packs are mapped and do not count.
3. A child whose answer nobody waits for any more is killed with all it started. None outlives the block it was started for.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from interfaces.faults import Fault, Kind

_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.bigFileThreshold=8m",
    "core.deltaBaseCacheLimit=64m",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.windowMemory=128m",
    "protocol.allow=never",
    "uploadpack.allowFilter=true",
    "uploadpack.allowAnySHA1InWant=true",
    # A filter that names an object (sparse:oid) would have git read one that nobody looked at.
    "uploadpackfilter.allow=false",
    *(f"uploadpackfilter.{kind}.allow=true" for kind in ("blob:none", "blob:limit", "tree", "object:type", "combine")),
)
PIECE = 1 << 18
"""Bytes of a child's output in memory at once."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one child may take: bytes of anonymous memory, seconds of processor time."""

    memory: int = 2 << 30
    processor: int = 3600


@asynccontextmanager
async def git_child(
    arguments: Sequence[str], *, protocol: str = "", bounds: Bounds | None = None, listens: bool = True
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run git for the length of the block, with pipes to its streams (no input unless it `listens`); it is dead when the block ends."""
    options = [option for setting in _SETTINGS for option in ("-c", setting)]
    environment = dict(_ENVIRONMENT) | ({"GIT_PROTOCOL": protocol} if protocol else {})
    child = await asyncio.create_subprocess_exec(
        "git",
        *options,
        *arguments,
        stdin=asyncio.subprocess.PIPE if listens else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        cwd="/",
        start_new_session=True,
        limit=PIECE,
    )
    try:
        _bound(child.pid, bounds or Bounds())
        yield child
    finally:
        await _end(child)


async def collect(child: asyncio.subprocess.Process) -> bytes:
    """Return everything that a child which does not listen prints. Raises `Kind.INTERNAL` when it fails."""
    answer, errors = await child.communicate()
    if child.returncode:
        raise Fault(Kind.INTERNAL, f"git failed: {last_line(errors)}", hint="the log of the appliance has the details")
    return answer


async def answers(child: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    """Yield what a child answers, as it comes."""
    assert child.stdout is not None
    while piece := await child.stdout.read(PIECE):
        yield piece


async def give(child: asyncio.subprocess.Process, data: bytes) -> bool:
    """Hand data to a child, waiting while it takes none, and tell whether it still listens."""
    assert child.stdin is not None
    if child.stdin.is_closing():
        return False
    try:
        child.stdin.write(data)
        await child.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def finish_giving(child: asyncio.subprocess.Process) -> None:
    """Tell a child that nothing more comes."""
    assert child.stdin is not None
    child.stdin.close()


def kill(child: asyncio.subprocess.Process) -> None:
    """End a child with every process it started, unless it ended."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def last_line(printed: bytes) -> str:
    """Return the last line a child printed, without the word that git puts in front."""
    lines = printed.decode("utf-8", "backslashreplace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ").removeprefix("error: ") if lines else "it failed without a word"


def _bound(pid: int, bounds: Bounds) -> None:
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (bounds.memory, bounds.memory))
        resource.prlimit(pid, resource.RLIMIT_CPU, (bounds.processor, bounds.processor))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


async def _end(child: asyncio.subprocess.Process) -> None:
    """Kill a child, unless it ended, and read what its pipes still hold: they close at their end and not before."""
    kill(child)
    if child.stdin is not None:
        child.stdin.close()
    await child.communicate()

"""Pushes: commands are judged, the pack is unpacked by git in a quarantine, and the appliance takes it in or says why not.

1. A reference that cannot be changed is refused whatever comes with it, each with its own sentence; the others go on, unless the client
   asked for all or nothing.
2. The pack flows through: into `git index-pack`, which checks every object, bounded in size, memory and processor time. It is nowhere but
   in the quarantine until it was decided.
3. What a client is still sending when it is refused is read to its end, so that it can hear why.
4. An authority that ends while a pack arrives ends the push.
5. A push that dies leaves a quarantine, which nobody reads and the appliance sweeps.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.git.children import PIECE, Bounds, finish_giving, git_child, give, kill, last_line
from interfaces.git.pktline import Mark, Packet, encode
from interfaces.git.ports import View
from interfaces.git.replies import DATA, KEEPALIVE, report, sentence, tell, wrap
from interfaces.git.requests import Command, read_command, read_options
from interfaces.git.streams import Stream
from interfaces.web.pool import Pool

LOG = logging.getLogger("nas.git")

MOST_COMMANDS = 10_000
_QUIET_SECONDS = 5.0
_ENDED = frozenset({Kind.EXPIRED, Kind.REVOKED})
_NOT_DONE = "another change of this push was refused, and all or nothing was asked for"


@dataclass(frozen=True, slots=True)
class PushLimits:
    """What one push may bring: bytes of its pack, and what git may take to check it."""

    pack_bytes: int = 64 << 30
    child: Bounds = field(default_factory=Bounds)


@dataclass(slots=True)
class Push:
    """What a client asks, and what becomes of it: for each reference why it is refused, empty for one that is not."""

    commands: Sequence[Command]
    capabilities: frozenset[str]
    options: Sequence[str] = ()
    fates: dict[str, str] = field(default_factory=dict)
    unpacked: str = "ok"
    notices: list[str] = field(default_factory=list)
    quarantine: Path | None = None

    def accepted(self) -> list[Command]:
        """Return the commands that nothing has refused yet."""
        return [command for command in self.commands if not self.fates[command.reference]]

    def settle(self) -> None:
        """Refuse everything when a part is refused and all or nothing was asked for."""
        if "atomic" in self.capabilities and any(self.fates.values()):
            self.fates = {name: why or _NOT_DONE for name, why in self.fates.items()}

    def refuse_all(self, why: str) -> None:
        """Refuse what is not refused yet."""
        self.fates = {name: known or why for name, known in self.fates.items()}

    def render(self) -> bytes:
        """Return the report, as the client asked for it."""
        wanted = {"report-status", "report-status-v2"} & self.capabilities
        body = report(self.unpacked, self.fates) if wanted else b""
        if "side-band-64k" not in self.capabilities:
            return body
        return tell(self.notices) + wrap(DATA, body) + encode(Mark.FLUSH)


class Pushing:
    """Takes pushes, for every view."""

    def __init__(self, pool: Pool, limits: PushLimits) -> None:
        """Ask views in threads of `pool`."""
        self._pool = pool
        self._limits = limits

    async def arrive(self, view: View, sent: Stream, *, ends: bool = True) -> Push | None:
        """Read a push and return it unpacked and judged; None when the client only tried the way.

        Where the stream `ends` with the push it is read to its end; else the pack says where that is.
        """
        push = await read_push(sent)
        if push is None:
            return None
        push.fates = {command.reference: await self._pool.run(view.explain_refusal, command) for command in push.commands}
        push.settle()
        if push.accepted():
            await self._unpack(view, push, sent)
        if ends:
            await _drain(sent)
        return push

    async def conclude(self, view: View, push: Push) -> AsyncGenerator[bytes, None]:
        """Have what arrived taken in, and yield the report, with signs of life while that takes long."""
        taking = asyncio.create_task(self._take_in(view, push))
        try:
            while not (await asyncio.wait([taking], timeout=_QUIET_SECONDS))[0]:
                if "side-band-64k" in push.capabilities:
                    yield KEEPALIVE
            await taking
        finally:
            # A push that is being taken in is taken in, whether or not its client waits to hear it.
            await asyncio.wait([taking])
        yield push.render()

    async def _take_in(self, view: View, push: Push) -> None:
        try:
            for command in push.accepted():
                await self._receive(view, push, command)
        finally:
            if push.quarantine is not None:
                await self._pool.run(view.discard, push.quarantine.name)

    async def _receive(self, view: View, push: Push, command: Command) -> None:
        assert push.quarantine is not None
        try:
            received = await self._pool.run(view.receive, push.quarantine.name, command, push.options)
        except Fault as fault:
            push.fates[command.reference] = sentence(fault)
            push.settle()
        else:
            push.notices += received.notices

    async def _unpack(self, view: View, push: Push, sent: Stream) -> None:
        push.quarantine = await self._pool.run(view.open_quarantine)
        if await sent.at_end():
            return
        with ExitStack() as unfinished:
            unfinished.callback(self._pool.detach, partial(view.discard, push.quarantine.name))
            push.unpacked, printed = await self._index(view, push.quarantine, sent)
            unfinished.pop_all()
        if push.unpacked != "ok":
            push.notices += printed
            push.refuse_all("what was sent cannot be unpacked")

    async def _index(self, view: View, quarantine: Path, sent: Stream) -> tuple[str, list[str]]:
        """Feed git, and return ``ok``, or why it refused and the lines it printed."""
        limit = self._limits.pack_bytes
        arguments = (f"--git-dir={quarantine}", "index-pack", "--stdin", "--fix-thin", "--strict", f"--max-input-size={limit}")
        async with git_child(arguments, bounds=self._limits.child) as child:
            assert child.stderr is not None
            printing = asyncio.create_task(child.stderr.read(PIECE))
            feeding = asyncio.create_task(_feed(view, child, sent))
            try:
                # Git may be done before its input ends: with the pack's last byte, or with what it will not take.
                code = await child.wait()
                feeding.cancel()
                await asyncio.wait([feeding])
                if not feeding.cancelled():
                    feeding.result()
                printed = await printing
            except Fault as fault:
                if fault.kind in _ENDED:
                    # Rule 4: the client hears it at once, not after the rest of what it sends.
                    raise
                return sentence(fault), []
            finally:
                feeding.cancel()
                printing.cancel()
                await asyncio.wait([feeding, printing])
        if code == 0:
            return "ok", []
        LOG.info("a push was refused: %s", last_line(printed))
        return last_line(printed), printed.decode("utf-8", "backslashreplace").strip().splitlines()[-5:]


async def _feed(view: View, child: Process, sent: Stream) -> None:
    """Hand the pack to git while the authority lasts; git is ended with it. Raises what ended it."""
    whole = False
    try:
        while (piece := await sent.read_some()) and await give(child, piece):
            view.check()
        whole = True
    finally:
        if not whole:
            kill(child)
        finish_giving(child)


async def read_push(sent: Stream) -> Push | None:
    """Read what a push asks for, up to its pack; None when it asks for nothing. Raises `Kind.INVALID`."""
    commands: dict[str, Command] = {}
    capabilities: frozenset[str] = frozenset()
    for packet in await _read_message(sent):
        if not isinstance(packet, bytes):
            continue
        command, asked = read_command(packet)
        capabilities |= asked
        if command is not None:
            commands[command.reference] = command
    if not commands:
        return None
    options = read_options(await _read_message(sent)) if "push-options" in capabilities else ()
    return Push(list(commands.values()), capabilities, options)


async def _read_message(sent: Stream) -> list[Packet]:
    """Return the packets up to the next flush."""
    packets: list[Packet] = []
    while (packet := await sent.read_packet()) is not Mark.FLUSH:
        packets.append(packet)
        if len(packets) > MOST_COMMANDS:
            raise Fault(Kind.TOO_LARGE, f"a push has at most {MOST_COMMANDS} commands", hint="push less at once")
    return packets


async def _drain(sent: Stream) -> None:
    """Read what is left, so that a client that is still sending hears the answer."""
    while await sent.read_some():
        continue

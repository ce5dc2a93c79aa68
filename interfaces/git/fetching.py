"""Fetches: git's own `upload-pack` answers, after every object that was named has been looked at.

1. ``want``: version 2 of the protocol serves whatever exists. Here an object that is not on offer, nor reached from what is, ends the
   request in the words that git has for an object that does not exist; so nobody learns which of the two it is.
2. ``have`` and ``shallow``: what the client has of commits that it does not see is left out before git reads the request.
3. While the answer flows, every piece is accounted for and the authority is asked again.
4. One answer does not depend on who asks: what version 2 announces of itself. It is asked of git once.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.git.children import PIECE, answers, collect, finish_giving, git_child, give, last_line
from interfaces.git.pktline import Packet, encode
from interfaces.git.ports import View
from interfaces.git.replies import refuse, sentence
from interfaces.git.requests import Named, Naming, find_named, is_version_2
from interfaces.git.streams import Stream
from interfaces.web.pool import Pool

LOG = logging.getLogger("nas.git")


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A request as git is to read it, or (`refused`) what is answered in git's place."""

    request: bytes
    refused: bytes = b""


class Fetching:
    """Answers fetches, for every view."""

    def __init__(self, pool: Pool) -> None:
        """Ask views in threads of `pool`."""
        self._pool = pool
        self._announcements: dict[str, bytes] = {}

    async def announce(self, view: View, protocol: str) -> bytes:
        """Return the references on offer, or (version 2) what can be asked."""
        known = self._announcements.get(protocol)
        if known is not None:
            return known
        async with git_child(("upload-pack", "--http-backend-info-refs", str(view.folder)), protocol=protocol, listens=False) as child:
            announcement = await collect(child)
        if is_version_2(protocol):
            self._announcements[protocol] = announcement
        return announcement

    async def review(self, view: View, packets: Sequence[Packet]) -> Reviewed:
        """Return what git is to read of one whole request, or what ends it. Raises `Kind.INVALID`."""
        named = [each for packet in packets if (each := find_named(packet))]
        refused = _begin(view) or await self._refusal(view, named)
        if refused:
            return Reviewed(b"", refused)
        return Reviewed(b"".join([encode(packet) for packet in packets if await self.passes(view, packet)]))

    async def answer(self, view: View, request: bytes, protocol: str) -> AsyncGenerator[bytes, None]:
        """Yield git's answer to a request that was reviewed."""
        async with git_child(("upload-pack", "--strict", "--stateless-rpc", str(view.folder)), protocol=protocol) as child:
            listening = await give(child, request)
            finish_giving(child)
            async for piece in metered(view, answers(child)):
                yield piece
            if await child.wait() and listening:
                assert child.stderr is not None
                LOG.info("a fetch failed: %s", last_line(await child.stderr.read(PIECE)))

    async def converse(self, view: View, asked: Stream, protocol: str) -> AsyncGenerator[bytes, None]:
        """Yield the answers of a conversation in which the client speaks again and again, until either side ends it."""
        async with git_child(("upload-pack", "--strict", str(view.folder)), protocol=protocol) as child:
            speaking = Speaking(self, view, asked, child)
            try:
                async for piece in metered(view, answers(child)):
                    yield piece
            finally:
                refused = await speaking.end()
            if refused:
                yield refused

    async def _refusal(self, view: View, named: Sequence[Named]) -> bytes:
        """Return what ends a request that wants what is not shown, nothing when it may go on."""
        wanted = [each.object for each in named if each.naming is Naming.WANT]
        if not wanted or await self._pool.run(view.reaches, wanted):
            return b""
        for each in wanted:
            if not await self._pool.run(view.reaches, [each]):
                return refuse(f"upload-pack: not our ref {each}")
        return b""

    async def passes(self, view: View, packet: Packet) -> bool:
        """Tell whether git may read a line: one that says what the client has passes when it is shown."""
        named = find_named(packet)
        if named is None or named.naming is Naming.WANT:
            return True
        return named.object in view.refs.values() or await self._pool.run(view.has_commit, named.object)

    async def wanted(self, view: View, packet: Packet) -> bytes:
        """Return what ends a conversation whose next line wants what is not shown, nothing when it may go on."""
        named = find_named(packet)
        return await self._refusal(view, [named]) if named is not None else b""


class Speaking:
    """The client's side of a conversation on its way to git."""

    def __init__(self, fetching: Fetching, view: View, asked: Stream, child: Process) -> None:
        """Begin to pass on what the client says."""
        self._fetching = fetching
        self._view = view
        self._asked = asked
        self._child = child
        self._task = asyncio.create_task(self._pass_on())

    async def end(self) -> bytes:
        """Stop, and return what the client is to be told at the end."""
        self._task.cancel()
        done, _ = await asyncio.wait([self._task])
        task = done.pop()
        return b"" if task.cancelled() else task.result()

    async def _pass_on(self) -> bytes:
        try:
            while not await self._asked.at_end():
                packet = await self._asked.read_packet()
                refused = await self._fetching.wanted(self._view, packet)
                if refused:
                    return refused
                if await self._fetching.passes(self._view, packet) and not await give(self._child, encode(packet)):
                    return b""
        except Fault as fault:
            return refuse(sentence(fault))
        finally:
            finish_giving(self._child)
        return b""


def _begin(view: View) -> bytes:
    """Account for a fetch before anything of it is sent, and return what ends it when there is no budget for it: git prints that."""
    try:
        view.spend(0)
    except Fault as fault:
        if fault.kind is not Kind.BUDGET:
            raise
        return refuse(sentence(fault))
    return b""


async def metered(view: View, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces while the authority lasts and its budget covers them."""
    async for piece in pieces:
        view.check()
        view.spend(len(piece))
        yield piece

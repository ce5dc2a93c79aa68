"""One SSH client's git command: a gateway of its own, on standard input and output.

1. The SSH server has checked the key and runs this with the key's name; the row of the key says whom it speaks for, the row of the lease
   what that is worth. No secret is here.
2. It opens the state beside the daemon, as every gateway does, and asks the daemon for what is the daemon's.
3. What goes wrong before the conversation is one sentence on standard error, which the client prints.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing, closing

from interfaces.git.shell import GitShell
from interfaces.git.streams import Stream
from interfaces.web.pool import Pool
from nasd.config import Settings
from nasd.entrance import IdentifiedCaller
from nasd.faults import as_fault
from nasd.gateway import GatewayControl
from nasd.identities.presence import Presence
from nasd.identities.proofs import proofs_of
from nasd.keys import Keys
from nasd.link import LinkClient
from nasd.repositories import GitRepositories
from nasd.runs import Runs
from nasd.sight import Sight
from nasd.wiring import Appliance, open_appliance
from nasd.workspaces import identity_of
from store.errors import StoreError
from trust.errors import TrustError

_PIECE = 1 << 18
_THREADS = 4


def serve_ssh(settings: Settings, key: str, command: str, protocol: str) -> None:
    """Answer one command for the holder of a key. Raises `Fault`, `nasd.errors.StartError`."""
    with closing(open_appliance(settings, "gateway")) as appliance:
        sight = Sight(appliance, Runs(appliance))
        control = GatewayControl(sight, LinkClient(settings.link))
        pool = Pool("ssh", _THREADS)
        try:
            shell = GitShell(control, GitRepositories(sight, control), pool)
            asyncio.run(_converse(shell, _identify(appliance, key), command, protocol))
        finally:
            pool.close()
            control.close()


def _identify(appliance: Appliance, key: str) -> IdentifiedCaller:
    try:
        registered = Keys(appliance.trust).find(key)
        identity = identity_of(appliance, principal=registered.principal, lease=registered.lease, door="ssh", method="key")
        Presence(appliance.trust).demand(identity, "ssh", proofs_of(fingerprint=registered.fingerprint), appliance.now())
        return IdentifiedCaller(identity)
    except (StoreError, TrustError) as error:
        raise as_fault(error) from error


async def _converse(shell: GitShell, caller: IdentifiedCaller, command: str, protocol: str) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_PIECE)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    try:
        async with aclosing(shell.answer(caller, command, protocol, Stream(lambda: reader.read(_PIECE)))) as pieces:
            async for piece in pieces:
                await loop.run_in_executor(None, _write, piece)
    except BrokenPipeError:
        return
    finally:
        transport.close()


def _write(piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]

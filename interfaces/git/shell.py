"""Git over SSH: one command of one client, on two streams. The decisions, and what makes them, are those of the door.

1. Who the client is, SSH has found out before; what it may, every view decides.
2. A command is git's own and names a branch; nothing else runs, and no word of it reaches a shell.
3. Git LFS asks here for an address and a credential, and goes on over HTTP.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator

from interfaces.faults import Fault, Kind
from interfaces.git.fetching import Fetching
from interfaces.git.ports import Repositories, View
from interfaces.git.pushing import Pushing, PushLimits
from interfaces.git.replies import offer
from interfaces.git.requests import read_protocol
from interfaces.git.routes import Service, read_shell_command
from interfaces.git.streams import Stream
from interfaces.port import Caller, Control
from interfaces.web.pool import Pool

_CREDENTIAL_SECONDS = 3600


class GitShell:
    """What a forced command of an SSH server runs."""

    def __init__(self, control: Control, repositories: Repositories, pool: Pool, push_limits: PushLimits | None = None) -> None:
        """Serve `repositories` to callers that SSH knows."""
        self._control = control
        self._repositories = repositories
        self._pool = pool
        self._fetching = Fetching(pool)
        self._pushing = Pushing(pool, push_limits or PushLimits())

    async def answer(self, caller: Caller, command: str, protocol: str, asked: Stream) -> AsyncGenerator[bytes, None]:
        """Yield the answer to a command whose client goes on to speak in `asked`. Raises `Fault` before anything was answered."""
        service, branch = read_shell_command(command)
        protocol = read_protocol(protocol)
        if service is Service.LARGE:
            yield await self._pool.run(self._authenticate_large, caller)
            return
        view = await self._pool.run(self._repositories.open, caller, branch)
        try:
            pieces = self._fetching.converse(view, asked, protocol) if service is Service.FETCH else self._push(view, asked)
            async for piece in pieces:
                yield piece
        finally:
            await self._pool.run(view.close)

    async def _push(self, view: View, asked: Stream) -> AsyncGenerator[bytes, None]:
        yield offer(view.refs)
        push = await self._pushing.arrive(view, asked, ends=False)
        if push is not None:
            async for piece in self._pushing.conclude(view, push):
                yield piece

    def _authenticate_large(self, caller: Caller) -> bytes:
        if not caller.lease:
            raise Fault(Kind.UNSUPPORTED, "large files over SSH need the key of a run", hint="clone over HTTP with a token")
        found = self._control.call(caller, "lease.credentials", {"lease": caller.lease, "for": "git"})
        user, password = found["settings"]["user"], found["settings"]["password"]
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        answer = {"href": f"{found['url']}/info/lfs", "header": {"Authorization": f"Basic {basic}"}, "expires_in": _CREDENTIAL_SECONDS}
        return json.dumps(answer).encode() + b"\n"

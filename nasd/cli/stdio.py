"""The process's standard streams as the client of a bridge to the MCP door."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator

import anyio
import httpx2

from nasd.cli.bridge import Bridge

_CONNECT_SECONDS = 10.0


async def bridge_standard_streams(url: str, secret: str) -> None:
    """Speak MCP on standard input and output for the holder of `secret`, with the door at `url`, until standard input closes."""
    output = anyio.wrap_file(sys.stdout)
    turn = anyio.Lock()

    async def write(line: str) -> None:
        async with turn:
            await output.write(line)
            await output.flush()

    # Answers may take as long as they take (a check, a stream of changes); only who is not there is given up on.
    patience = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=patience, trust_env=False) as client:
        await Bridge(client, url, write).run(_lines())


async def _lines() -> AsyncIterator[str]:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    async for line in anyio.wrap_file(sys.stdin):
        yield line

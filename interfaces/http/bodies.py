"""Reading what a client sends, within limits.

1. A body is read while it arrives and counted as it arrives; ``Content-Length`` is only a reason to refuse early.
2. A client that sends nothing for `Limits.idle_seconds` is given up on.
3. The content of a file is complete before the workspace hears of it: a connection that breaks leaves no half file.
   It waits in an unlinked temporary file, so that nothing remains of it either.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

from starlette.requests import ClientDisconnect, Request

from interfaces.faults import Fault, Kind
from interfaces.web.limits import Limits, parse_document
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal

_MEMORY = 1 << 20
_BATCH = 1 << 20


async def read_document(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object a request carries, empty when it carries nothing."""
    chunks = [chunk async for chunk in _arriving(request, limits.document_bytes, limits.idle_seconds)]
    text = b"".join(chunks)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if text and media != "application/json":
        # Browsers send any other type across origins without asking first.
        raise Refusal(415, Kind.INVALID, f"the body is {media or 'of no declared type'}", hint="send Content-Type: application/json")
    return parse_document(text, limits)


async def spool(request: Request, limits: Limits, pool: Pool, folder: Path | None) -> IO[bytes]:
    """Return the body as an open file at its start; large ones rest in `folder` (None: the system's), without a name.

    The caller closes it. Raises `Kind.TOO_LARGE`, `Kind.NO_SPACE`.
    """
    content: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_MEMORY, dir=None if folder is None else str(folder))  # noqa: SIM115 - returned open
    try:
        async for batch in _batched(_arriving(request, limits.file_bytes, limits.idle_seconds)):
            await pool.run(content.write, batch)
    except OSError as error:
        content.close()
        raise Fault(Kind.NO_SPACE, f"the upload does not fit: {error.strerror}", hint="free space below the data directory") from error
    except (Fault, ClientDisconnect, asyncio.CancelledError):
        content.close()
        raise
    content.seek(0)
    return content


async def _batched(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join chunks of the network (64 KiB or less) into batches worth a turn of the thread pool."""
    batch: list[bytes] = []
    size = 0
    async for chunk in chunks:
        batch.append(chunk)
        size += len(chunk)
        if size >= _BATCH:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


async def _arriving(request: Request, limit: int, idle_seconds: float) -> AsyncIterator[bytes]:
    _refuse_announced(request, limit)
    stream = aiter(request.stream())
    total = 0
    while True:
        try:
            chunk = await asyncio.wait_for(anext(stream), idle_seconds)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise Refusal(408, Kind.UNAVAILABLE, "the body stopped arriving", headers={"connection": "close"}) from error
        total += len(chunk)
        if total > limit:
            raise _too_large(limit)
        yield chunk


def _refuse_announced(request: Request, limit: int) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> Refusal:
    # What is still on its way would be read as the next request; the connection ends instead.
    return Refusal(413, Kind.TOO_LARGE, f"the body has more than {limit} bytes", headers={"connection": "close"})

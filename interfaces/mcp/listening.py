"""Telling clients what changed: the streams of ``subscriptions/listen``.

1. What is told is what its caller could see by looking: each subscribed resource is looked up under the caller's authority, so nothing
   hidden moves a stream.
2. A look costs nothing while no version of a branch moved. Nothing is kept between two streams, in any process.
3. A stream ends when the authority behind it does, and when the door drains. Streams are few.
4. The event loop only waits; looking runs in the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, SubscriptionsListenRequestParams, SubscriptionsListenResult

from interfaces.faults import Fault, Kind
from interfaces.mcp.paths import parse_uri
from interfaces.mcp.room import Room
from interfaces.port import ROOT, Workspace, walk
from interfaces.web.pool import Pool

INTERVAL = 0.5
"""Seconds between two looks."""
MAX_RESOURCES = 64
"""Resources of one stream."""

_GONE = frozenset({Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY})


@dataclass(slots=True)
class Watch:
    """What one stream saw last; `look` tells what is different now."""

    room: Room
    uris: Sequence[str]
    lists: bool
    seen: dict[str, object] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)

    def look(self) -> list[ServerEvent]:
        """Return what changed since the look before. Blocks. Raises the fault of an authority that has ended."""
        events: list[ServerEvent] = [ResourceUpdated(uri) for uri in self.uris if self._changed(uri, *parse_uri(uri))]
        if self.lists and self._changed("", "", None):
            events.append(ResourcesListChanged())
        return events

    def _changed(self, key: str, branch: str, path: bytes | None) -> bool:
        with self.room.open({"branch": branch}) as workspace:
            workspace.check()
            version = workspace.version()
            if self.versions.get(key) == version:
                return False
            first, self.versions[key] = key not in self.versions, version
            state = _names(workspace) if path is None else _state(workspace, path)
        former, self.seen[key] = self.seen.get(key), state
        return not first and former != state


class Listening:
    """Serves every stream of a door."""

    def __init__(self, pool: Pool, room_of: Callable[[ServerRequestContext], Room], most: int) -> None:
        """Have at most `most` streams at once."""
        self._pool = pool
        self._room_of = room_of
        self._most = most
        self._open: set[ListenHandler] = set()
        self._draining = False

    async def __call__(self, context: ServerRequestContext, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve one stream until its client leaves, its authority ends or the door drains."""
        wanted = params.notifications
        uris = tuple(wanted.resource_subscriptions or ())
        if len(uris) > MAX_RESOURCES:
            raise MCPError(INVALID_PARAMS, f"a stream has at most {MAX_RESOURCES} resources")
        if self._draining or len(self._open) >= self._most:
            raise MCPError(INVALID_REQUEST, "no further stream can be opened now; try again later")
        watch = Watch(self._room_of(context), uris, bool(wanted.resources_list_changed))
        try:
            await self._pool.run(watch.look)
        except Fault as fault:
            raise MCPError(INVALID_PARAMS, fault.message) from fault
        return await self._serve(context, params, watch)

    def drain(self) -> None:
        """End every stream and begin none."""
        self._draining = True
        for stream in self._open:
            stream.close()

    async def _serve(
        self, context: ServerRequestContext, params: SubscriptionsListenRequestParams, watch: Watch
    ) -> SubscriptionsListenResult:
        bus = InMemorySubscriptionBus()
        stream = ListenHandler(bus, max_subscriptions=1)
        self._open.add(stream)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, watch, bus, stream)
                result = await stream(context, params)
                tasks.cancel_scope.cancel()
            return result
        finally:
            self._open.discard(stream)

    async def _follow(self, watch: Watch, bus: InMemorySubscriptionBus, stream: ListenHandler) -> None:
        while True:
            await anyio.sleep(INTERVAL)
            try:
                events = await self._pool.run(watch.look)
            except Fault:
                stream.close()  # what ended it is told by the next request: this one says nothing it was not asked for
                return
            for event in events:
                await bus.publish(event)


def _state(workspace: Workspace, path: bytes) -> object:
    """Return what is at a path, for comparing; None when there is nothing the caller can see."""
    try:
        attributes = walk(workspace, path)
    except Fault as fault:
        if fault.kind not in _GONE:
            raise
        return None
    return attributes.node, attributes.content, attributes.size, attributes.mtime_ns


def _names(workspace: Workspace) -> object:
    return [name for name, _ in workspace.list(ROOT)]

"""Telling clients what changed: the streams of ``subscriptions/listen``.

1. What is told is what its caller could see by looking: each subscribed resource is looked up under the caller's authority, so nothing
   hidden moves a stream.
2. A look costs nothing while no version of a branch moved. Nothing is kept between two streams, in any process.
3. A stream ends when the authority behind it does, and when the door drains. Streams are few.
4. The event loop only waits; looking runs in the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

_LISTS = "\0lists"
_GONE = frozenset({Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY})


class Watch:
    """What one stream saw last; `look` tells what is different now."""

    def __init__(self, room: Room, uris: Sequence[str], *, lists: bool) -> None:
        """Watch resources and, when `lists` says so, the list of them. Raises `Kind.INVALID` for what is no URI."""
        self._room = room
        self._paths: dict[str, dict[str, bytes]] = {}
        for uri in uris:
            branch, path = parse_uri(uri)
            self._paths.setdefault(branch, {})[uri] = path
        self._lists = lists
        self._versions: dict[str, int] = {}
        self._seen: dict[str, object] = {}

    def look(self) -> list[ServerEvent]:
        """Return what changed since the look before; nothing at the first. Blocks. Raises the fault of an authority that has ended."""
        events: list[ServerEvent] = []
        for branch, paths in self._paths.items():
            with self._room.open({"branch": branch}) as workspace:
                if self._moved(branch, workspace):
                    events += [ResourceUpdated(uri) for uri, path in paths.items() if self._differs(uri, _state(workspace, path))]
        if self._lists:
            with self._room.open({}) as workspace:
                if self._moved(_LISTS, workspace) and self._differs(_LISTS, _names(workspace)):
                    events.append(ResourcesListChanged())
        return events

    def _moved(self, key: str, workspace: Workspace) -> bool:
        """Tell whether anything happened on a branch since the last look. Raises the fault of an authority that has ended."""
        workspace.check()
        former, self._versions[key] = self._versions.get(key), workspace.version()
        return former != self._versions[key]

    def _differs(self, key: str, state: object) -> bool:
        first = key not in self._seen
        former, self._seen[key] = self._seen.get(key), state
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
        try:
            watch = Watch(self._room_of(context), uris, lists=bool(wanted.resources_list_changed))
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

"""The protocol: which method of MCP is answered by what, over the official SDK's server.

1. Every answer is made in the pool, by a function over the port, for the caller of that one request. Nothing is kept between two.
2. A failure of a tool is a result the model reads. A failure of anything else is a JSON-RPC error, by one total table.
3. What is listed is for one caller: answers are private and immediately stale.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from interfaces.faults import Fault
from interfaces.mcp.catalogue import TOOLS
from interfaces.mcp.listening import Listening
from interfaces.mcp.prompts import PROMPTS, get_prompt
from interfaces.mcp.resources import TEMPLATES, complete, list_resources, read_resource
from interfaces.mcp.room import Room
from interfaces.mcp.telling import CODES, describe_fault
from interfaces.port import Control
from interfaces.web.pool import Pool

P = ParamSpec("P")
T = TypeVar("T")

CALLER = "agent-nas.caller"
"""Where the scope of a request says whom it speaks for."""

INSTRUCTIONS = (
    "Files of one branch of a versioned tree, under a lease. You work on your own run's branch; main changes only through propose. What"
    " your lease does not cover does not exist for you. Lists and reads come in pages: when truncated is true, repeat with cursor. An"
    " error says what happened, why, and what to do next. Begin with status."
)

_COMPLETIONS = 100


class Protocol:
    """The methods of MCP over `Control`. Belongs to one event loop."""

    def __init__(self, control: Control, pool: Pool, streams: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Answer from `control`, blocking calls in `pool`, with at most `streams` streams of changes; `clock` never goes back."""
        self._control = control
        self._pool = pool
        self._clock = clock
        self.listening = Listening(pool, self._room, streams)

    def make_server(self, version: str) -> Server[Any]:
        """Return the SDK's server that asks this."""
        return Server(
            "agent-nas",
            title="Agent NAS",
            version=version,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda name: TOOLS[name].takes if name in TOOLS else None,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
            on_subscriptions_listen=self.listening,
        )

    async def list_tools(self, context: ServerRequestContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Return the tools the caller's lease lets do anything."""
        caller = self._room(context).caller
        return types.ListToolsResult(tools=[tool.describe() for tool in TOOLS.values() if tool.is_for(caller)])

    async def call_tool(self, context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Return what a tool answers."""
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:200]}")
        return await self._pool.run(tool.answer, self._room(context), params.arguments or {})

    async def list_resources(self, context: ServerRequestContext, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """Return a page of the resources in the root of the caller's branch."""
        return await self._ask(list_resources, self._room(context), (params.cursor if params else None) or "")

    async def list_templates(
        self, context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the templates of every resource."""
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(self, context: ServerRequestContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return what is at a URI."""
        return await self._ask(read_resource, self._room(context), params.uri)

    async def list_prompts(self, context: ServerRequestContext, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Return every prompt."""
        return types.ListPromptsResult(prompts=[template.prompt for template in PROMPTS.values()])

    async def get_prompt(self, context: ServerRequestContext, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return a prompt with its text."""
        return await self._ask(get_prompt, self._room(context), params.name, params.arguments or {})

    async def complete(self, context: ServerRequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return how an argument of a template can go on; of prompts nothing is known."""
        if not isinstance(params.ref, types.ResourceTemplateReference):
            return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))
        known = (params.context.arguments if params.context else None) or {}
        values = await self._ask(complete, self._room(context), params.argument.name, params.argument.value, known)
        return types.CompleteResult(completion=types.Completion(values=values[:_COMPLETIONS], has_more=len(values) > _COMPLETIONS))

    async def _ask(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._pool.run(call, *args, **kwargs)
        except Fault as fault:
            raise MCPError(CODES[fault.kind], fault.message, describe_fault(fault)) from fault

    def _room(self, context: ServerRequestContext) -> Room:
        assert context.request is not None
        return Room(self._control, context.request.scope[CALLER], self._clock)

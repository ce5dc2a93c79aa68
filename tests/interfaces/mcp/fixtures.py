"""The tools, resources and prompts that the public conformance suite asks a server for. They exist in tests alone.

The suite judges a server by what these do: it lists, calls and reads them by fixed names. They are registered beside the real ones on
the SDK's server that the door serves (`conformance_server`), so what is judged is the door, its authentication and its limits included.
"""

from __future__ import annotations

import base64
import json
from typing import Annotated, Any

import anyio
from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import Prompt, UserMessage
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    ListRootsResult,
    RequestParams,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Events(EventStore):
    """Events of streams in memory, replayed in order."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id)
        if not 1 <= last <= len(self._events):
            return None
        stream = self._events[last - 1][0]
        for number, (of, message) in enumerate(self._events[last:], last + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class Answered(BaseModel):
    response: str = Field(description="The answer")


class Defaults(BaseModel):
    name: str = Field(default="John Doe")
    age: int = Field(default=30)
    score: float = Field(default=95.5)
    status: str = Field(default="active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = Field(default=True)


class Enums(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": ["one", "two", "three"]})
    titledSingle: str = Field(json_schema_extra={"oneOf": [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]})
    untitledMulti: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": ["read", "write"]}})
    titledMulti: list[str] = Field(
        json_schema_extra={"items": {"anyOf": [{"const": "feature", "title": "Feature"}, {"const": "bug", "title": "Bug"}]}}
    )
    legacyEnum: str = Field(json_schema_extra={"enum": ["s", "m"], "enumNames": ["Small", "Medium"]})


def text(content: str) -> TextContent:
    return TextContent(type="text", text=content)


def embedded(uri: str, content: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=content))


def image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def asking(message: str, **properties: str) -> ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text(prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=tokens))


def make_fixtures() -> MCPServer:
    """Return the SDK's server with every fixture."""
    server = MCPServer("agent-nas-fixtures", version="1", request_state_security=RequestStateSecurity(keys=[b"k" * 32]))
    add_plain_tools(server)
    add_talking_tools(server)
    add_asking_tools(server)
    add_changing_tools(server)
    add_resources(server)
    add_prompts(server)
    add_requests(server)
    return server


def add_plain_tools(server: MCPServer) -> None:
    @server.tool()
    def test_simple_text() -> str:
        """Gives text"""
        return "This is a simple text response for testing."

    @server.tool()
    def test_image_content() -> list[ImageContent]:
        """Gives an image"""
        return [image()]

    @server.tool()
    def test_audio_content() -> list[AudioContent]:
        """Gives a sound"""
        return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]

    @server.tool()
    def test_embedded_resource() -> list[EmbeddedResource]:
        """Gives a resource"""
        return [embedded("test://embedded-resource", "This is an embedded resource content.")]

    @server.tool()
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Gives text, an image and a resource"""
        data = embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
        return [text("Multiple content types test:"), image(), data]

    @server.tool()
    def test_error_handling() -> str:
        """Fails"""
        raise RuntimeError("This tool intentionally returns an error for testing")

    @server.tool()
    def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "<none>") -> str:
        """Says which region a header and an argument named"""
        return f"region={region}"

    @server.tool(name="json_schema_2020_12_tool")
    def json_schema() -> str:
        """Has a schema with everything of draft 2020-12"""
        return "json_schema_2020_12_tool"

    server._tool_manager._tools["json_schema_2020_12_tool"].parameters = SCHEMA_2020_12


def add_talking_tools(server: MCPServer) -> None:
    @server.tool()
    async def test_tool_with_logging(ctx: Context) -> str:
        """Logs three times"""
        for step in ("started", "processing data", "completed"):
            await ctx.info(f"Tool execution {step}")
            await anyio.sleep(0.05)
        return "Tool with logging executed successfully"

    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        """Reports progress three times"""
        for done in (0, 50, 100):
            await ctx.report_progress(progress=done, total=100, message=f"Completed step {done} of 100")
            await anyio.sleep(0.05)
        return "done"

    @server.tool()
    async def test_reconnection(ctx: Context) -> str:
        """Closes its stream in the middle"""
        await ctx.info("Before disconnect")
        await ctx.close_sse_stream()
        await anyio.sleep(0.2)
        await ctx.info("After reconnect")
        return "Reconnection test completed"

    @server.tool()
    async def test_missing_capability(ctx: Context) -> str:
        """Needs a client that samples"""
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.sampling is None:
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", {"requiredCapabilities": {"sampling": {}}})
        return "Client declared sampling capability; proceeding."


def add_asking_tools(server: MCPServer) -> None:
    @server.tool()
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Asks the client's model"""
        message = SamplingMessage(role="user", content=text(prompt))
        result = await ctx.session.create_message(messages=[message], max_tokens=100, related_request_id=ctx.request_id)
        return f"LLM response: {result.content.text if isinstance(result.content, TextContent) else 'no text'}"

    async def elicit(ctx: Context, message: str, schema: type[BaseModel], title: str) -> str:
        result = await ctx.elicit(message=message, schema=schema)
        return f"{title}: action={result.action}, content={result.data.model_dump_json() if result.action == 'accept' else '{}'}"

    @server.tool()
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Asks a person"""
        return await elicit(ctx, message, Answered, "User response")

    @server.tool()
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Asks a person, with defaults"""
        return await elicit(ctx, "Please provide user information", Defaults, "Elicitation result")

    @server.tool()
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Asks a person to choose"""
        return await elicit(ctx, "Please select values", Enums, "Elicitation completed")

    add_input_required_tools(server)


def add_input_required_tools(server: MCPServer) -> None:
    @server.tool()
    async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
        """Needs a name"""
        answer = (ctx.input_responses or {}).get("user_name")
        if answer is None:
            return InputRequiredResult(input_requests={"user_name": asking("What is your name?", name="string")})
        return f"Hello, {named(answer)}!"

    @server.tool()
    async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
        """Needs a model's answer"""
        answer = (ctx.input_responses or {}).get("capital_question")
        if answer is None:
            return InputRequiredResult(input_requests={"capital_question": sampling("What is the capital of France?", 100)})
        return f"Model said: {answer.content.text if isinstance(answer, CreateMessageResult) else '?'}"  # type: ignore[union-attr]

    @server.tool()
    async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
        """Needs the client's roots"""
        answer = (ctx.input_responses or {}).get("client_roots")
        if answer is None:
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        return f"Client exposed {len(answer.roots) if isinstance(answer, ListRootsResult) else 0} root(s)."

    @server.tool()
    async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
        """Needs its state back"""
        if "confirm" in (ctx.input_responses or {}) and ctx.request_state == "nonce":
            return "state-ok: confirmation received"
        return InputRequiredResult(input_requests={"confirm": asking("Please confirm", ok="boolean")}, request_state="nonce")

    @server.tool()
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
        """Needs three things at once"""
        wanted: dict[str, InputRequest] = {
            "user_name": asking("What is your name?", name="string"),
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": ListRootsRequest(),
        }
        if wanted.keys() <= (ctx.input_responses or {}).keys():
            return "All inputs received."
        return InputRequiredResult(input_requests=wanted, request_state="multiple-inputs")

    @server.tool()
    async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
        """Needs two answers, one after the other"""
        state = json.loads(ctx.request_state) if ctx.request_state else {"round": 0}
        answers = ctx.input_responses or {}
        if state["round"] == 2 and "step2" in answers:
            return f"{state['name']} likes {answers['step2'].content['color']}."  # type: ignore[union-attr, index]
        if state["round"] == 1 and "step1" in answers:
            wanted = {"step2": asking("Step 2: What is your favorite color?", color="string")}
            return InputRequiredResult(input_requests=wanted, request_state=json.dumps({"round": 2, "name": named(answers["step1"])}))
        wanted = {"step1": asking("Step 1: What is your name?", name="string")}
        return InputRequiredResult(input_requests=wanted, request_state=json.dumps({"round": 1}))

    @server.tool()
    async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
        """Needs its state back unchanged"""
        if ctx.request_state is not None:
            return f"state-ok: {ctx.request_state}"
        return InputRequiredResult(input_requests={"confirm": asking("Please confirm", ok="boolean")}, request_state="round-1")

    @server.tool()
    async def test_input_required_result_capabilities(ctx: Context) -> InputRequiredResult:
        """Asks for what the client can give"""
        can = ctx.client_capabilities
        wanted: dict[str, InputRequest] = {}
        if can is None or can.sampling is not None:
            wanted["sample"] = sampling("Say hello", 50)
        if can is None or can.elicitation is not None:
            wanted["ask"] = asking("What is your name?", name="string")
        return InputRequiredResult(input_requests=wanted, request_state="capability-gated")


def named(answer: object) -> object:
    return answer.content.get("name") if isinstance(answer, ElicitResult) and answer.content else "?"


def add_changing_tools(server: MCPServer) -> None:
    def dynamic() -> str:
        """Comes and goes"""
        return "dynamic"

    @server.tool()
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Changes the list of tools"""
        server.add_tool(dynamic, name="test_dynamic_tool")
        server.remove_tool("test_dynamic_tool")
        await ctx.notify_tools_changed()
        return "tool list changed"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Changes the list of prompts"""
        server.add_prompt(Prompt.from_function(dynamic, name="test_dynamic_prompt", description="dynamic"))
        server.remove_prompt("test_dynamic_prompt")
        await ctx.notify_prompts_changed()
        return "prompt list changed"


def add_resources(server: MCPServer) -> None:
    @server.resource("test://static-text")
    def static_text() -> str:
        """Text"""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary")
    def static_binary() -> bytes:
        """An image"""
        return base64.b64decode(PIXEL)

    @server.resource("test://template/{id}/data")
    def template(id: str) -> str:
        """Data by id"""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.resource("test://watched-resource")
    def watched() -> str:
        """To subscribe to"""
        return "Watched resource content"


def add_prompts(server: MCPServer) -> None:
    @server.prompt()
    def test_simple_prompt() -> list[UserMessage]:
        """Without arguments"""
        return [UserMessage(role="user", content=text("This is a simple prompt for testing."))]

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
        """With arguments"""
        return [UserMessage(role="user", content=text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        """With a resource"""
        resource = embedded(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(role="user", content=resource), UserMessage(role="user", content=text("Please process it."))]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """With an image"""
        return [UserMessage(role="user", content=image()), UserMessage(role="user", content=text("Please analyze the image above."))]

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> list[UserMessage] | InputRequiredResult:
        """Needs a context"""
        answer = (ctx.input_responses or {}).get("user_context")
        if answer is None:
            return InputRequiredResult(input_requests={"user_context": asking("What context should the prompt use?", context="string")})
        known = answer.content.get("context") if isinstance(answer, ElicitResult) and answer.content else "?"
        return [UserMessage(role="user", content=text(f"Use the following context: {known}"))]

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=[], total=0, has_more=False)


def add_requests(server: MCPServer) -> None:
    async def accept(ctx: ServerRequestContext, params: RequestParams) -> EmptyResult:
        return EmptyResult()

    for method, kind in (
        ("logging/setLevel", SetLevelRequestParams),
        ("resources/subscribe", SubscribeRequestParams),
        ("resources/unsubscribe", UnsubscribeRequestParams),
    ):
        server._lowlevel_server.add_request_handler(method, kind, accept)

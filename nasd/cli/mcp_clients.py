"""Paste-ready configuration for the clients people use, over HTTP and over standard input and output. Pure.

1. A secret is named, not shown: the variable or the file it is in. What each client writes for that is its own.
2. Each entry is data, so a client that is added is one entry and no code.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interfaces.port import Document

NAME = "agent-nas"
VARIABLE = "NAS_LEASE"
"""The variable that holds the secret, for clients that read one."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the door is and how it is reached: its `url`, or the `program` to start with the file of the secret (empty: the variable)."""

    url: str
    program: str
    secret_file: str = ""


@dataclass(frozen=True, slots=True)
class ClientForm:
    """How one client is told of a server: where the text belongs, and the text for each transport (None: it has not that one)."""

    title: str
    place: str
    http: Callable[[Endpoint], str] | None
    stdio: Callable[[Endpoint], str] | None


def render_client(client: str, transport: str, endpoint: Endpoint) -> Document:
    """Return where the configuration of a client belongs and its text. `KeyError` for a client that is not in `CLIENTS`.

    A transport the client does not have is replaced by the one it has, and the document says which it is.
    """
    form = CLIENTS[client]
    chosen = transport if getattr(form, transport) else ("stdio" if transport == "http" else "http")
    render: Callable[[Endpoint], str] = getattr(form, chosen)
    return {"client": client, "title": form.title, "transport": chosen, "place": form.place, "text": render(endpoint), "url": endpoint.url}


def _program(endpoint: Endpoint) -> dict[str, Any]:
    arguments = ["mcp", "--url", endpoint.url]
    return {"command": endpoint.program, "args": arguments + (["--lease-file", endpoint.secret_file] if endpoint.secret_file else [])}


def _json(root: str, entry: Mapping[str, Any]) -> str:
    return json.dumps({root: {NAME: entry}}, indent=2) + "\n"


def _headers(reference: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {reference}"}}


def _program_with(reference: str, **more: Any) -> Callable[[Endpoint], dict[str, Any]]:
    """Return what gives a program's entry: with the variable passed on by `reference` where no file has the secret."""

    def entry(endpoint: Endpoint) -> dict[str, Any]:
        return {**more, **_program(endpoint)} | ({} if endpoint.secret_file else {"env": {VARIABLE: reference}})

    return entry


def _claude_http(endpoint: Endpoint) -> str:
    return _json("mcpServers", {"type": "http", "url": endpoint.url, **_headers(f"${{{VARIABLE}}}")})


def _claude_stdio(endpoint: Endpoint) -> str:
    return _json("mcpServers", _program_with(f"${{{VARIABLE}}}", type="stdio")(endpoint))


def _cursor_http(endpoint: Endpoint) -> str:
    return _json("mcpServers", {"url": endpoint.url, **_headers(f"${{env:{VARIABLE}}}")})


def _cursor_stdio(endpoint: Endpoint) -> str:
    return _json("mcpServers", _program_with(f"${{env:{VARIABLE}}}", type="stdio")(endpoint))


def _vscode(entry: Mapping[str, Any]) -> str:
    asked = {"type": "promptString", "id": "nas-lease", "description": "The secret of the lease", "password": True}
    return json.dumps({"inputs": [asked], "servers": {NAME: entry}}, indent=2) + "\n"


def _vscode_http(endpoint: Endpoint) -> str:
    return _vscode({"type": "http", "url": endpoint.url, **_headers("${input:nas-lease}")})


def _vscode_stdio(endpoint: Endpoint) -> str:
    return _vscode(_program_with("${input:nas-lease}", type="stdio")(endpoint))


def _desktop_stdio(endpoint: Endpoint) -> str:
    # This client passes no variables on, so the secret has to be in a file.
    entry = _program(endpoint if endpoint.secret_file else Endpoint(endpoint.url, endpoint.program, "/path/to/lease"))
    return _json("mcpServers", entry)


def _windsurf_http(endpoint: Endpoint) -> str:
    return _json("mcpServers", {"serverUrl": endpoint.url, **_headers(f"${{env:{VARIABLE}}}")})


def _gemini_http(endpoint: Endpoint) -> str:
    return _json("mcpServers", {"httpUrl": endpoint.url, **_headers(f"${VARIABLE}")})


def _gemini_stdio(endpoint: Endpoint) -> str:
    return _json("mcpServers", _program_with(f"${VARIABLE}")(endpoint))


def _codex_http(endpoint: Endpoint) -> str:
    return f'[mcp_servers.{NAME}]\nurl = {json.dumps(endpoint.url)}\nbearer_token_env_var = "{VARIABLE}"\n'


def _codex_stdio(endpoint: Endpoint) -> str:
    program = _program(endpoint)
    lines = [f"[mcp_servers.{NAME}]", f"command = {json.dumps(program['command'])}", f"args = {json.dumps(program['args'])}"]
    return "\n".join(lines + ([] if endpoint.secret_file else [f'env_vars = ["{VARIABLE}"]'])) + "\n"


def _inspector_http(endpoint: Endpoint) -> str:
    return (
        f"npx @modelcontextprotocol/inspector --cli {shlex.quote(endpoint.url)} --transport http"
        f' --header "Authorization: Bearer ${VARIABLE}" --method tools/list\n'
    )


def _python_http(endpoint: Endpoint) -> str:
    return (
        "import asyncio\n"
        "from os import environ\n\n"
        "import httpx2\n"
        "from mcp import Client\n"
        "from mcp.client.streamable_http import streamable_http_client\n\n\n"
        "async def main():\n"
        f'    headers = {{"Authorization": "Bearer " + environ["{VARIABLE}"]}}\n'
        "    async with httpx2.AsyncClient(headers=headers) as http:\n"
        f"        async with Client(streamable_http_client({json.dumps(endpoint.url)}, http_client=http)) as client:\n"
        '            print(await client.call_tool("status", {}))\n\n\n'
        "asyncio.run(main())\n"
    )


CLIENTS: Mapping[str, ClientForm] = {
    "claude": ClientForm("Claude Code", ".mcp.json in the project (or: claude mcp add-json)", _claude_http, _claude_stdio),
    "claude-desktop": ClientForm("Claude Desktop", "claude_desktop_config.json", None, _desktop_stdio),
    "cursor": ClientForm("Cursor", ".cursor/mcp.json in the project", _cursor_http, _cursor_stdio),
    "vscode": ClientForm("VS Code", ".vscode/mcp.json in the project", _vscode_http, _vscode_stdio),
    "windsurf": ClientForm("Windsurf", "~/.codeium/windsurf/mcp_config.json", _windsurf_http, _cursor_stdio),
    "gemini": ClientForm("Gemini CLI", ".gemini/settings.json in the project", _gemini_http, _gemini_stdio),
    "codex": ClientForm("Codex", "~/.codex/config.toml", _codex_http, _codex_stdio),
    "inspector": ClientForm("MCP inspector", "a shell", _inspector_http, None),
    "python": ClientForm("the official Python SDK", "a program", _python_http, None),
}

"""Configurations to paste: each is in its client's own form, and none holds a secret."""

from __future__ import annotations

import ast
import json
import shlex
import tomllib

import pytest

from nasd.cli.mcp_clients import CLIENTS, Endpoint, render_client

HTTP = Endpoint("http://127.0.0.1:8420/mcp", "/usr/bin/nas")
FILE = Endpoint("http://127.0.0.1:8420/mcp", "/usr/bin/nas", "/run/lease")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("endpoint", [HTTP, FILE])
def test_every_client_gets_text_it_can_read(client: str, transport: str, endpoint: Endpoint) -> None:
    document = render_client(client, transport, endpoint)
    text = document["text"]
    assert endpoint.url in text
    assert document["transport"] in {"http", "stdio"}
    if client == "codex":
        assert tomllib.loads(text)["mcp_servers"]["agent-nas"]
    elif client == "python":
        ast.parse(text)
    elif client == "inspector":
        assert shlex.split(text)[0] == "npx"
    else:
        assert any("agent-nas" in root for root in json.loads(text).values())


@pytest.mark.parametrize("client", [name for name, form in CLIENTS.items() if form.stdio])
def test_a_secret_in_a_file_is_named_and_a_variable_is_passed_on(client: str) -> None:
    assert "/run/lease" in render_client(client, "stdio", FILE)["text"]
    text = render_client(client, "stdio", HTTP)["text"]
    assert "NAS_LEASE" in text or "/path/to/lease" in text


def test_a_transport_a_client_does_not_have_is_replaced_and_said() -> None:
    assert render_client("claude-desktop", "http", HTTP)["transport"] == "stdio"
    assert render_client("python", "stdio", HTTP)["transport"] == "http"


def test_claude_code_reads_the_secret_from_its_environment() -> None:
    entry = json.loads(render_client("claude", "http", HTTP)["text"])["mcpServers"]["agent-nas"]
    assert entry == {"type": "http", "url": HTTP.url, "headers": {"Authorization": "Bearer ${NAS_LEASE}"}}

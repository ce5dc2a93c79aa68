"""Real MCP clients against a real daemon: the inspector's command line, the official SDK over both transports, the public suites."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.e2e.conftest import NAS, Nas

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def modules() -> Path:
    """The node packages of the suites, from the cache or from npm."""
    done = subprocess.run([str(ROOT / "script" / "node-modules")], capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm gives no packages: {done.stderr.strip()[-300:]}")
    return Path(done.stdout.strip())


def door(nas: Nas) -> str:
    url: str = nas.json("status")["doors"]["mcp"]
    return url


def over_http(url: str, secret: str, act: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await act(client)

    asyncio.run(run())


def over_stdio(nas: Nas, secret: str, act: Callable[[Client], Awaitable[None]], *, url: str, mode: str = "auto") -> None:
    program = StdioServerParameters(command=str(NAS), args=["mcp", "--url", url], env=nas.environment | {"NAS_LEASE": secret})

    async def run() -> None:
        async with Client(stdio_client(program), mode=mode) as client:
            await act(client)

    asyncio.run(run())


async def do_usual_work(client: Client, name: str) -> None:
    """Look, write, edit, search, remember, commit and propose, as an agent does, in files called `name`."""
    assert "README.md" in str((await client.call_tool("list", {})).structured_content)
    for tool, arguments in (
        ("write", {"path": f"work/{name}.txt", "content": f"alpha\nbeta of {name}\n"}),
        ("edit", {"path": f"work/{name}.txt", "old_text": "beta", "new_text": "gamma"}),
        ("memory_create", {"path": f"/memories/{name}.md", "file_text": "seen it\n"}),
        ("commit", {"message": "notes"}),
    ):
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
    found = await client.call_tool("search", {"text": f"gamma of {name}"})
    assert [item["path"] for item in found.structured_content["items"]] == [f"work/{name}.txt"]
    proposed = await client.call_tool("propose", {"message": "notes of the agent"})
    assert proposed.structured_content["decision"] == "merged", proposed.content


def test_the_official_client_works_over_http(shared: Nas) -> None:
    run = shared.start()
    over_http(door(shared), run["secret"], partial(do_usual_work, name="http"))
    assert shared.get_file("main", "work/http.txt") == b"alpha\ngamma of http\n"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_works_over_standard_streams(shared: Nas, mode: str) -> None:
    over_stdio(shared, shared.start()["secret"], partial(do_usual_work, name=mode), url=door(shared), mode=mode)
    assert shared.get_file("main", f"memory/{mode}.md") == b"seen it\n"


def test_the_inspector_lists_calls_and_reads(shared: Nas, modules: Path) -> None:
    run, url = shared.start(), door(shared)

    def inspect(*arguments: str) -> Any:
        command = [str(modules / ".bin" / "mcp-inspector"), "--cli", url, "--transport", "http"]
        done = subprocess.run(
            [*command, "--header", f"Authorization: Bearer {run['secret']}", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": shared.environment["HOME"]},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert "read" in [tool["name"] for tool in inspect("--method", "tools/list")["tools"]]
    written = inspect(
        "--method", "tools/call", "--tool-name", "write", "--tool-arg", "path=seen.txt", "--tool-arg", "content=by the inspector"
    )
    assert written["structuredContent"]["created"] is True
    resources = inspect("--method", "resources/list")["resources"]
    [uri] = [resource["uri"] for resource in resources if resource["name"] == "seen.txt"]
    assert inspect("--method", "resources/read", "--uri", uri)["contents"][0]["text"] == "by the inspector"
    assert [prompt["name"] for prompt in inspect("--method", "prompts/list")["prompts"]] == ["orient", "review"]
    assert inspect("--method", "resources/templates/list")["resourceTemplates"]


def test_a_configuration_is_what_its_client_starts(shared: Nas, tmp_path: Path) -> None:
    run = shared.start()
    (tmp_path / "lease").write_text(run["secret"])
    printed = shared.json("mcp", "config", "--client", "claude-desktop", "--secret-file", str(tmp_path / "lease"))
    entry: Mapping[str, Any] = json.loads(printed["text"])["mcpServers"]["agent-nas"]
    assert run["secret"] not in printed["text"]

    async def act() -> None:
        program = StdioServerParameters(command=entry["command"], args=entry["args"], env=shared.environment)
        async with Client(stdio_client(program)) as client:
            assert run["branch"] in str((await client.call_tool("status", {})).structured_content)

    asyncio.run(act())


def test_a_revoked_lease_ends_a_conversation_with_its_next_request(shared: Nas) -> None:
    run = shared.start()

    async def act(client: Client) -> None:
        assert not (await client.call_tool("list", {})).is_error
        await asyncio.to_thread(shared.run, "lease", "revoke", run["lease"])
        with pytest.raises(MCPError) as ended:
            await client.call_tool("list", {})
        assert ended.value.error.data["code"] == "revoked"

    over_http(door(shared), run["secret"], act)


def test_a_conversation_over_standard_streams_outlives_the_daemon(bare: Nas, tree: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    bare.init("--import", str(tree))
    bare.run("serve", "--background", "--listen", listen)

    async def act(client: Client) -> None:
        await client.call_tool("write", {"path": "kept", "content": "1"})
        await asyncio.to_thread(bare.run, "stop")
        with pytest.raises(MCPError) as away:
            await client.call_tool("read", {"path": "kept"})
        assert "does not answer" in str(away.value)
        await asyncio.to_thread(bare.run, "serve", "--background", "--listen", listen)
        assert (await client.call_tool("read", {"path": "kept"})).structured_content["text"] == "1"

    over_stdio(bare, bare.start()["secret"], act, url=f"http://{listen}/mcp")


@pytest.mark.slow
def test_the_public_suites_find_nothing_the_official_server_does_not_have(modules: Path) -> None:
    done = subprocess.run([str(ROOT / "script" / "conformance-mcp")], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    totals = [line.split("Total: ")[1] for line in done.stdout.splitlines() if "Total: " in line]
    assert totals[:4] == ["40 passed, 0 failed", "73 passed, 0 failed", "84 passed, 0 failed", "152 passed, 0 failed"]

"""The door over its own wire: who may come in, what is bounded, and that no worker needs another's memory."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from interfaces.web.limits import Limits
from tests.house_of_doors import HouseOfDoors, Started
from tests.interfaces.mcp.rooms import Desk, post, rpc, served, text_of, with_client

ERAS = ["2025-11-25", "2026-07-28"]


@pytest.fixture(scope="module")
def url(house: HouseOfDoors) -> Iterator[str]:
    with served(house) as base:
        yield base


def call(url: str, secret: str, tool: str, **arguments: object) -> str:
    """Call a tool by one request of its own, without any conversation before, and return what is told."""
    answer = post(url, rpc("tools/call", name=tool, arguments=arguments), secret, **{"mcp-protocol-version": "2025-11-25"})
    assert answer.status_code == 200, answer.text
    return "\n".join(block["text"] for block in answer.json()["result"]["content"])


@pytest.mark.parametrize("era", ERAS)
def test_a_client_of_either_era_lists_calls_and_reads(url: str, run: Started, era: str) -> None:
    async def act(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"read", "write", "propose", "memory_view"} <= set(names)
        written = await client.call_tool("write", {"path": "wire.txt", "content": "over the wire\n"})
        assert not written.is_error
        read = await client.call_tool("read", {"path": "wire.txt"})
        assert (text_of(read), read.structured_content["size"]) == ("over the wire\n", 14)
        resources = await client.list_resources()
        assert f"nas://{run.branch.replace('/', '%2F')}/wire.txt" in [resource.uri for resource in resources.resources]
        contents = (await client.read_resource(f"nas://{run.branch.replace('/', '%2F')}/wire.txt")).contents
        assert contents[0].text == "over the wire\n"  # type: ignore[union-attr]
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["orient", "review"]
        assert run.branch in (await client.get_prompt("orient")).messages[0].content.text  # type: ignore[union-attr]

    with_client(url, run.secret, act, mode="legacy" if era == ERAS[0] else "auto")


def test_every_request_stands_alone(url: str, run: Started) -> None:
    assert call(url, run.secret, "write", path="alone", content="x").startswith("Created alone")
    assert call(url, run.secret, "read", path="alone") == "x"


def test_basic_credentials_are_as_good_as_a_bearer(url: str, run: Started) -> None:
    basic = base64.b64encode(f"{run.lease}:{run.secret}".encode()).decode()
    answer = post(url, rpc("tools/list"), authorization=f"Basic {basic}")
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer wrong", "Basic !!", "Digest x"])
def test_a_stranger_is_told_how_to_come_in(url: str, authorization: str | None) -> None:
    answer = post(url, rpc("tools/list"), **({"authorization": authorization} if authorization else {}))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"]["data"]["code"] == "unauthenticated"


def test_a_page_of_another_origin_and_a_name_that_is_not_ours_are_refused(url: str, run: Started) -> None:
    assert post(url, rpc("tools/list"), run.secret, origin="http://evil.example").status_code == 403
    assert post(url, rpc("tools/list"), run.secret, host="evil.example").status_code == 421
    assert post(url, rpc("tools/list"), run.secret, origin=url.removesuffix("/mcp")).status_code == 200
    assert post(url, rpc("tools/list"), run.secret, origin="http://127.0.0.1:1").status_code == 403


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_what_a_session_would_be_for_is_refused_as_the_standard_allows(url: str, run: Started, method: str) -> None:
    answer = httpx2.request(method, url, headers={"authorization": f"Bearer {run.secret}"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_there_is_one_path(url: str, run: Started) -> None:
    assert post(url + "/more", rpc("tools/list"), run.secret).status_code == 404
    assert post(url + "/", rpc("tools/list"), run.secret).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 40 + b"1" + b"}" * 40, 400),
        (b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"\\ud800"}}}', 400),
        (b"x" * 5000, 413),
    ],
)
def test_a_body_is_bounded_before_anything_reads_it(house: HouseOfDoors, run: Started, body: bytes, status: int) -> None:
    with served(house, Limits(document_bytes=4096 if status == 413 else 1 << 20)) as url:
        answer = post(url, body, run.secret)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"]


def test_a_lease_that_only_reads_sees_no_tool_that_writes_and_cannot_call_one(house: HouseOfDoors, url: str) -> None:
    run = house.start_run(actions=["list", "read"])

    async def act(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "read" in names
        assert not names & {"write", "edit", "delete", "move", "propose", "memory_create"}
        refused = await client.call_tool("write", {"path": "x", "content": "y"})
        assert refused.is_error
        assert "denied" in text_of(refused)

    with_client(url, run.secret, act)


def test_what_a_lease_cannot_see_is_told_like_what_is_not_there(house: HouseOfDoors, url: str) -> None:
    run = house.start_run(paths=["src/**"])

    def told(name: str) -> str:
        async def act(client: Client) -> str:
            with pytest.raises(MCPError) as missing:
                await client.read_resource(f"nas://main/{name}/plan.txt")
            result = await client.call_tool("read", {"path": f"{name}/plan.txt"})
            return f"{missing.value.error} {result}"

        return with_client(url, run.secret, act)

    assert told("secret") == told("secreu").replace("secreu", "secret")


def test_an_unknown_tool_is_an_error_of_the_protocol(url: str, run: Started) -> None:
    async def act(client: Client) -> None:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("format_disk", {})
        assert unknown.value.error.code == -32602

    with_client(url, run.secret, act)


def test_a_revoked_lease_ends_a_conversation_with_its_next_request(house: HouseOfDoors, url: str) -> None:
    run = house.start_run()

    async def act(client: Client) -> None:
        assert not (await client.call_tool("list", {})).is_error
        house.call(house.owner, "lease.revoke", {"lease": run.lease, "reason": "enough"})
        with pytest.raises(MCPError) as ended:
            await client.call_tool("list", {})
        assert ended.value.error.data["code"] == "revoked"

    with_client(url, run.secret, act)
    answer = post(url, rpc("tools/list"), run.secret)
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (401, "revoked")


def test_a_write_is_seen_by_another_door_at_once(house: HouseOfDoors, url: str, run: Started) -> None:
    call(url, run.secret, "write", path="both", content="1")
    assert Desk(house, run.secret).call("read", path="both")["text"] == "1"


def test_paths_of_the_template_are_completed(url: str, run: Started) -> None:
    from mcp_types import ResourceTemplateReference

    reference = ResourceTemplateReference(uri="nas://{branch}/{+path}")

    async def act(client: Client) -> None:
        branch = await client.complete(reference, {"name": "branch", "value": ""})
        assert branch.completion.values == [run.branch, "main"]
        path = await client.complete(reference, {"name": "path", "value": "src/"})
        assert path.completion.values == ["src/a.py", "src/b.py"]
        root = await client.complete(reference, {"name": "path", "value": "s"}, {"branch": "main"})
        assert root.completion.values == ["secret/", "src/"]

    with_client(url, run.secret, act)

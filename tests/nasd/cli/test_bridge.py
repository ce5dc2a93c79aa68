"""Standard input and output: every line that asks is answered, whatever happens to the door meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value

from nasd.cli.bridge import Bridge, encode_value, headers_of
from tests.house_of_doors import HouseOfDoors, Started, open_house
from tests.interfaces.mcp.rooms import served

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HouseOfDoors]:
    with open_house(tmp_path_factory.mktemp("house")) as opened:
        yield opened


@pytest.fixture
def run(house: HouseOfDoors) -> Started:
    return house.start_run()


@pytest.fixture(scope="module")
def url(house: HouseOfDoors) -> Iterator[str]:
    with served(house) as base:
        yield base


def ask(request_id: object, method: str, **parameters: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": parameters}


def talk(url: str, secret: str, *messages: object, pause: float = 0.0) -> list[dict[str, Any]]:
    """Send lines and return what came back once the bridge ended."""
    answers: list[str] = []

    async def lines() -> AsyncIterator[str]:
        for message in messages:
            yield message if isinstance(message, str) else json.dumps(message)
            await anyio.sleep(pause)

    async def write(line: str) -> None:
        answers.append(line)

    async def run() -> None:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=20, trust_env=False) as client:
            await Bridge(client, url, write).run(lines())

    asyncio.run(run())
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in answers)
    return [json.loads(line) for line in answers]


def test_a_conversation_of_the_older_era(url: str, run: Started) -> None:
    started, listed = talk(url, run.secret, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, ask("a", "tools/list"))
    assert (started["id"], started["result"]["protocolVersion"]) == (0, "2025-11-25")
    assert listed["id"] == "a"
    assert "read" in [tool["name"] for tool in listed["result"]["tools"]]


def test_a_request_of_the_newer_era_stands_alone(url: str, run: Started) -> None:
    [answer] = talk(url, run.secret, ask(7, "tools/call", name="read", arguments={"path": "README.md"}, _meta=META))
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "hello\n")


def test_requests_run_side_by_side_and_each_is_answered_once(url: str, run: Started) -> None:
    answers = talk(url, run.secret, *(ask(number, "tools/call", name="list", arguments={}, _meta=META) for number in range(12)))
    assert sorted(answer["id"] for answer in answers) == list(range(12))


def test_lines_that_are_no_messages_are_told_so(url: str, run: Started) -> None:
    broken, batch = talk(url, run.secret, "{", "[]", "", "   ")
    assert (broken["id"], broken["error"]["code"]) == (None, -32700)
    assert (batch["id"], batch["error"]["code"]) == (None, -32600)


def test_a_refusal_of_the_door_answers_the_request_it_was_for(url: str) -> None:
    [answer] = talk(url, "wrong", ask("x", "tools/list", _meta=META))
    assert answer["id"] == "x"
    assert answer["error"]["data"]["code"] == "unauthenticated"


def test_a_door_that_is_away_is_an_answer_and_the_next_request_is_tried_again(house: HouseOfDoors, run: Started) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gone, again = talk(f"http://127.0.0.1:{port}/mcp", run.secret, ask(1, "tools/list", _meta=META), ask(2, "tools/list", _meta=META))
    assert {gone["id"], again["id"]} == {1, 2}
    assert "does not answer" in gone["error"]["message"]


def test_what_is_not_mcp_is_an_answer_too(house: HouseOfDoors, run: Started) -> None:
    with served(house) as url:
        [answer] = talk(url.removesuffix("/mcp") + "/mcp/nowhere", run.secret, ask(1, "tools/list", _meta=META))
    assert answer["error"]["data"]["code"] == "not-found"


def test_a_cancelled_request_is_let_go(url: str, run: Started) -> None:
    listen = ask("l", "subscriptions/listen", notifications={"resourcesListChanged": True}, _meta=META)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "l"}}
    answers = talk(url, run.secret, listen, cancel, ask(2, "tools/list", _meta=META), pause=0.3)
    assert [answer.get("method") or answer["id"] for answer in answers] == ["notifications/subscriptions/acknowledged", 2]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda inner: st.dictionaries(
            st.sampled_from(["params", "_meta", "method", "name", "uri", "id", "io.modelcontextprotocol/protocolVersion"]), inner
        ),
    )
)
def test_any_message_has_headers_that_can_be_sent(message: object) -> None:
    if isinstance(message, dict):
        for name, value in headers_of(message, "2025-11-25").items():
            httpx2.Headers({name: value})


@given(st.text(max_size=20))
def test_a_header_says_what_the_message_says(text: str) -> None:
    assert decode_header_value(encode_value(text)) == text

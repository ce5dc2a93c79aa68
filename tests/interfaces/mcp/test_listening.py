"""Streams of changes: what was subscribed to is told, what is hidden moves nothing, and an ended lease ends its stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from tests.house_of_doors import HouseOfDoors, Started
from tests.interfaces.mcp.rooms import Desk, served, with_client


@pytest.fixture(scope="module")
def url(house: HouseOfDoors) -> Iterator[str]:
    with served(house) as base:
        yield base


def uri_of(run: Started, path: str) -> str:
    return f"nas://{run.branch.replace('/', '%2F')}/{path}"


def test_a_change_of_a_subscribed_resource_is_told(house: HouseOfDoors, url: str, run: Started) -> None:
    desk, uri = Desk(house, run.secret), uri_of(run, "watched")

    async def act(client: Client) -> None:
        async with client.listen(resource_subscriptions=[uri], resources_list_changed=True) as stream:
            await anyio.to_thread.run_sync(lambda: desk.call("write", path="elsewhere/x", content="1"))
            with anyio.fail_after(10):
                assert await anext(stream) == ResourcesListChanged()
            await anyio.to_thread.run_sync(lambda: desk.call("write", path="watched", content="1"))
            seen = set()
            with anyio.fail_after(10):
                while len(seen) < 2:
                    seen.add(await anext(stream))
            assert seen == {ResourceUpdated(uri), ResourcesListChanged()}

    with_client(url, run.secret, act)


def test_a_change_the_lease_cannot_see_is_not_told(house: HouseOfDoors, url: str) -> None:
    run = house.start_run(paths=["src/**"])
    desk = Desk(house, house.owner)
    hidden, visible = uri_of(run, "docs/one.md"), uri_of(run, "src/a.py")

    async def act(client: Client) -> None:
        async with client.listen(resource_subscriptions=[hidden, visible], resources_list_changed=True) as stream:
            house.house.write(house.house.runs.find(run.run), {"docs/one.md": b"2", "new": b"2"})
            await anyio.sleep(1.2)
            house.house.write(house.house.runs.find(run.run), {"src/a.py": b"2"})
            with anyio.fail_after(10):
                assert await anext(stream) == ResourceUpdated(visible)

    with_client(url, run.secret, act)
    assert desk.call("status")["truncated"] is False


def test_a_stream_ends_when_its_lease_does(house: HouseOfDoors, url: str) -> None:
    run = house.start_run()

    async def act(client: Client) -> None:
        async with client.listen(resource_subscriptions=[uri_of(run, "x")]) as stream:
            house.call(house.owner, "lease.revoke", {"lease": run.lease})
            with anyio.fail_after(10):
                assert [event async for event in stream] == []

    with_client(url, run.secret, act)


def test_a_stream_ends_by_itself_when_the_door_drains(house: HouseOfDoors, run: Started) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(served(house))

        async def act(client: Client) -> None:
            async with client.listen(resources_list_changed=True) as stream:
                stopping = asyncio.create_task(asyncio.to_thread(stack.close))
                with anyio.fail_after(15):
                    assert [event async for event in stream] == []
            await stopping

        with_client(url, run.secret, act)


def test_too_many_resources_and_what_is_none_are_refused(url: str, run: Started) -> None:
    async def act(client: Client) -> None:
        for uris in ([uri_of(run, str(number)) for number in range(65)], ["http://elsewhere/x"]):
            with pytest.raises(MCPError):
                async with client.listen(resource_subscriptions=uris):
                    raise AssertionError("the stream began")

    with_client(url, run.secret, act)

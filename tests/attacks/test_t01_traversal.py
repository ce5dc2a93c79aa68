"""T1: a path that means another one. CVE-2025-53110 (prefix check), CVE-2026-48827 (git over ssh), CVE-2026-42600."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import quote, urlsplit

import pytest

from tests.attacks.stand import LOOT, Repository, Stand
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.model import Refused
from tests.contract.doors.site import Held

DOTS = ("..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "..%00", "..;", ".. ", "%c0%ae%c0%ae", "\uff0e\uff0e", "..%5c", "..\\", "....//..")
SLASHES = ("/", "%2f", "%252f", "\\", "%5c", "//", "/./", "%c0%af", "\u2215")
TARGETS = ("secret/plan.txt", "workshop/tools.txt", "etc/passwd")
SIBLINGS = (
    "workshop/tools.txt",
    "work/../workshop/tools.txt",
    "workshop",
    "work%00shop/tools.txt",
    "/secret/plan.txt",
    "//secret/plan.txt",
)


def corpus() -> list[str]:
    """Return paths that somebody reads as one outside of `work`."""
    made = [f"work{slash}{dots}{slash}{target}" for dots, slash, target in itertools.product(DOTS, SLASHES, TARGETS[:2])]
    deep = [f"work/{'/'.join([dots] * 8)}/{TARGETS[2]}" for dots in DOTS]
    return list(dict.fromkeys([*made, *deep, *SIBLINGS, *TARGETS]))


Ask = Callable[[str, str], bytes]


def raw_http(stand: Stand, held: Held) -> Iterator[Ask]:
    with closing(Wire(stand.doors["http"])) as wire:
        base, headers = f"/v1/branches/{quote(held.branch, safe='')}/files/", {"Authorization": f"Bearer {held.secret}"}
        yield lambda method, path: wire.send(method, base + _sendable(path), headers, b"x" if method == "PUT" else None).told()


def raw_webdav(stand: Stand, held: Held) -> Iterator[Ask]:
    given = stand.credentials(held, "webdav")
    user = base64.b64encode(f"{given['settings']['user']}:{given['settings']['password']}".encode()).decode()
    base = urlsplit(given["url"]).path

    def ask(method: str, path: str) -> bytes:
        headers = {"Authorization": f"Basic {user}"}
        if method == "PUT":  # through the other name of a copy, which servers forget to check
            headers |= {"Destination": given["url"] + _sendable(path), "Overwrite": "T"}
            return wire.send("COPY", f"{base}work/a.txt", headers).told()
        return wire.send(method, base + _sendable(path), headers).told()

    with closing(Wire(given["url"])) as wire:
        yield ask


def raw_s3(stand: Stand, held: Held) -> Iterator[Ask]:
    client = S3.connect(stand, held)
    assert isinstance(client, Bucket)

    def ask(method: str, path: str) -> bytes:
        client.told.clear()
        try:
            if method == "GET":  # as a key, and as the source of a copy
                client.ask("PUT", "work/copied", headers={"x-amz-copy-source": f"/{client._bucket}/{_sendable(path)}"})
                client.ask("GET", "work/copied")
            client.ask(method, _sendable(path), b"x" if method == "PUT" else b"")
        except Refused:
            return b"".join(client.told)
        return b"".join(client.told)

    with closing(client):
        yield ask


def raw_mcp(stand: Stand, held: Held) -> Iterator[Ask]:
    given = stand.credentials(held, "mcp")
    headers = {**given["settings"]["headers"], "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def ask(method: str, path: str) -> bytes:
        arguments = {"path": path} if method == "GET" else {"path": path, "content": "x"}
        call = {"name": "read" if method == "GET" else "write", "arguments": arguments}
        question = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return wire.send("POST", urlsplit(given["url"]).path, headers, json.dumps(question).encode()).told()

    with closing(Wire(given["url"])) as wire:
        yield ask


def _sendable(path: str) -> str:
    return quote(path, safe="/%;\\.")


@pytest.mark.parametrize("door", [raw_http, raw_webdav, raw_s3, raw_mcp], ids=["http", "webdav", "s3", "mcp"])
def test_no_spelling_of_a_path_leaves_the_lease(stand: Stand, door: Callable[[Stand, Held], Iterator[Ask]]) -> None:
    held = stand.start(paths=["work/**"])
    asking = door(stand, held)
    ask = next(asking)
    paths = corpus()
    assert len(paths) >= 200
    for path, method in itertools.product(paths, ("GET", "PUT")):
        told = ask(method, path)
        assert LOOT not in told, f"{method} {path}"
        assert b"root:" not in told, f"{method} {path}"
    asking.close()
    assert stand.nas.get_file(held.branch, "secret/plan.txt") == LOOT + b" in the plan\n"
    assert stand.nas.get_file(held.branch, "workshop/tools.txt") == LOOT + b" in the workshop\n"
    outside = [denied for denied in stand.denials(held) if not denied["path"].startswith("work/")]
    assert outside, "what was refused is not in the record"


def test_no_path_of_a_push_leaves_the_lease(stand: Stand) -> None:
    held = stand.start(paths=["work/**"])
    with closing(Repository(stand, held)) as repository:
        blob = repository.blob(b"x")
        for name in (b"..", b".", b"../secret", b"a/../../secret", b"", b"/etc"):
            work = repository.tree([("100644", name, blob)])
            done = repository.push(repository.commit(repository.tree([("40000", b"work", work)])))
            assert done.returncode != 0, name
        sibling = repository.tree([("40000", b"workshop", repository.tree([("100644", b"tools.txt", blob)]))])
        assert repository.push(repository.commit(sibling)).returncode != 0
    assert stand.denials(held)

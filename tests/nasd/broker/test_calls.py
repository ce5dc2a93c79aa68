"""Requests with a secret put in at the last hop, over a real socket: pinned, bounded, and clean when they come back."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from nasd.broker.calls import call
from nasd.broker.wire import Bounds
from tests.nasd.broker.upstream import Seen, Upstream, upstream
from trust.accounts import Account, parse_account
from trust.requests import Request
from trust.secret import Secret

CANARY = "canary/0123456789"


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


def account(url: str, **more: Any) -> Account:
    return parse_account({"name": "api", "kind": "bearer", "url": url, "secret": "env://API", "rules": ["* **"]} | more)


def ask(
    account: Account, method: str = "GET", path: str = "/x", body: bytes = b"", bounds: Bounds | None = None, **more: Any
) -> dict[str, Any]:
    request = Request(method, path, more.get("query", ()), more.get("headers", {}), hashlib.sha256(body).hexdigest(), len(body))
    return call(account, request, body, Secret(CANARY.encode()), bounds or Bounds())


@pytest.mark.parametrize(
    ("more", "header", "value"),
    [
        ({}, "authorization", f"Bearer {CANARY}"),
        ({"kind": "header", "header": "X-Api-Key"}, "x-api-key", CANARY),
        ({"kind": "basic", "username": "me"}, "authorization", "Basic " + base64.b64encode(f"me:{CANARY}".encode()).decode()),
    ],
)
def test_the_server_gets_the_secret_and_the_caller_never(server: Upstream, more: dict[str, Any], header: str, value: str) -> None:
    answered = ask(
        account(server.url + "/v1", **more), "POST", "/things", b"{}", headers={"content-type": "application/json"}, query=(("a", "b c"),)
    )
    assert server.seen[0].headers[header] == value
    assert (server.seen[0].method, server.seen[0].target, server.seen[0].body) == ("POST", "/v1/things?a=b%20c", b"{}")
    shown = base64.b64decode(answered["body"])
    assert answered["removed"] == 1
    assert "[secret removed]" in json.loads(shown)["headers"][header]
    assert CANARY not in json.dumps(answered)
    assert answered["sha256"] == hashlib.sha256(shown).hexdigest()


def test_only_known_headers_come_back_and_clean(server: Upstream) -> None:
    def respond(_: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Location": f"/next?token={CANARY}", "Set-Cookie": "a=b", "X-RateLimit-Remaining": "3", "X-Odd": "1"}, b""

    server.answers["/x"] = respond
    headers = dict(ask(account(server.url))["headers"])
    assert headers["location"] == "/next?token=[secret removed]"
    assert headers["x-ratelimit-remaining"] == "3"
    assert not {"set-cookie", "x-odd"} & set(headers)


def test_a_redirect_is_an_answer_and_nobody_follows_it(server: Upstream) -> None:
    with upstream() as evil:
        server.answers["/x"] = lambda _: (302, {"Location": f"{evil.url}/steal"}, b"")
        assert ask(account(server.url))["status"] == 302
        assert evil.seen == []
    assert len(server.seen) == 1


def test_no_proxy_of_the_environment_is_asked(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    with upstream() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert ask(account(server.url))["status"] == 200
        assert proxy.seen == []


def test_the_body_that_was_judged_is_the_one_that_is_sent(server: Upstream) -> None:
    request = Request("POST", "/x", (), {}, hashlib.sha256(b"judged").hexdigest(), 6)
    with pytest.raises(Fault, match="decided about"):
        call(account(server.url), request, b"other!", Secret(CANARY.encode()), Bounds())
    assert server.seen == []


def test_a_body_with_a_secret_of_ours_goes_nowhere(server: Upstream) -> None:
    with pytest.raises(Fault) as refused:
        ask(account(server.url), "POST", body=b'{"t": "anl1.abc.def"}')
    assert refused.value.kind is Kind.DENIED
    assert server.seen == []


def test_what_no_rule_names_never_reaches_the_server(server: Upstream) -> None:
    with pytest.raises(Fault) as refused:
        ask(account(server.url, rules=["GET a/**"]), "GET", "/b")
    assert refused.value.kind is Kind.INVALID
    assert server.seen == []


def test_an_answer_that_is_too_large_is_none(server: Upstream) -> None:
    server.answers["/x"] = lambda _: (200, {}, b"x" * 1001)
    with pytest.raises(Fault) as refused:
        ask(account(server.url), bounds=Bounds(5, 1000))
    assert refused.value.kind is Kind.TOO_LARGE


def test_an_encoding_that_hides_the_secret_is_refused(server: Upstream) -> None:
    server.answers["/x"] = lambda _: (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b")
    with pytest.raises(Fault) as refused:
        ask(account(server.url))
    assert refused.value.kind is Kind.UNSUPPORTED


@contextmanager
def dripping(first: bytes) -> Iterator[str]:
    """Serve one connection that sends something and then a byte now and then, for ever."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                try:
                    connection.sendall(first)
                    while not stop.wait(0.05):
                        connection.sendall(b"a")
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    "first", [b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_server_that_never_ends_is_left_at_the_deadline(first: bytes) -> None:
    with dripping(first) as url:
        began = time.monotonic()
        with pytest.raises(Fault, match=r"not within 0\.5 seconds") as refused:
            ask(account(url), bounds=Bounds(0.5, 1 << 20))
        assert refused.value.kind is Kind.UNAVAILABLE
        assert time.monotonic() - began < 3


def test_a_server_that_is_not_there_is_a_fault_without_the_secret() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(Fault) as refused:
        ask(account(f"http://127.0.0.1:{port}"))
    assert refused.value.kind is Kind.UNAVAILABLE
    assert CANARY not in refused.value.message


def test_a_secret_that_would_be_two_headers_is_not_sent(server: Upstream) -> None:
    request = Request("GET", "/x", (), {}, hashlib.sha256(b"").hexdigest(), 0)
    with pytest.raises(Fault, match="no header can hold") as refused:
        call(account(server.url), request, b"", Secret(b"canary-1\r\nX-Evil: 1"), Bounds())
    assert "canary" not in refused.value.message
    assert server.seen == []

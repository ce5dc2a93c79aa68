"""T18: a page in a browser that speaks to the loopback. CVE-2025-66414, CVE-2025-66416, CVE-2026-34742, CVE-2025-49596."""

from __future__ import annotations

import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.attacks.stand import Stand
from tests.contract.doors.clients.wire import Wire
from tests.nasd.identities.test_sources import DOORS

HOSTS = ("rebound.attacker.example", "127.0.0.1.nip.example", "localhost.attacker.example", "")
ORIGINS = ("https://attacker.example", "null", "http://127.0.0.1:1")


@pytest.mark.parametrize("door", DOORS)
def test_no_door_answers_under_a_name_that_is_not_ours(stand: Stand, door: str) -> None:
    method, path = DOORS[door]
    parts, token = urlsplit(stand.doors["http"]), stand.nas.token()
    for host in HOSTS:
        with closing(socket.create_connection((parts.hostname, parts.port), timeout=30)) as connection:
            lines = [
                f"{method} {path} HTTP/1.1",
                f"Host: {host}",
                f"Authorization: Bearer {token}",
                "Connection: close",
                "",
                "",
            ]
            connection.sendall("\r\n".join(lines).encode())
            answer = b"".join(iter(lambda connection=connection: connection.recv(1 << 16), b""))
        assert answer.split(b" ", 2)[1] in {b"400", b"421"}, (host, answer)


@pytest.mark.parametrize("door", sorted(set(DOORS) - {"s3", "s3 object", "health", "api"}))
def test_no_page_of_another_site_gets_an_answer(stand: Stand, door: str) -> None:
    method, path = DOORS[door]
    with closing(Wire(stand.doors["http"])) as wire:
        for origin in ORIGINS:
            headers = {"Origin": origin, "Authorization": f"Bearer {stand.nas.token()}", "Sec-Fetch-Site": "cross-site"}
            reply = wire.send(method, path, headers, None)
            assert reply.status in {400, 401, 403}, (origin, reply.told())
            assert "access-control-allow-origin" not in {name.lower() for name in reply.headers}


def test_being_on_the_loopback_is_no_credential(stand: Stand) -> None:
    with closing(Wire(stand.doors["http"])) as wire:
        for path in ("/v1/runs", "/v1/records", "/dav/", "/git/main.git/info/refs?service=git-upload-pack", "/mcp", "/v1/accounts"):
            assert wire.send("GET", path, {}, None).status in {401, 405}, path

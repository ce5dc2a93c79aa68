"""Where requests come from, at every listener: names that point here (DNS rebinding), pages of other sites, and sockets of browsers."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interfaces.http import Door, HttpServer
from interfaces.web.pool import Pool
from tests.nasd.identities.conftest import Served, bearer, served_house

PUBLIC = "nas.example"
DOORS: Mapping[str, tuple[str, str]] = {
    "http": ("GET", "/v1/runs"),
    "health": ("GET", "/healthz"),
    "api": ("GET", "/openapi.json"),
    "webdav": ("PROPFIND", "/dav/"),
    "webdav options": ("OPTIONS", "/dav/"),
    "webdav at the root": ("OPTIONS", "/"),
    "git": ("GET", "/git/main.git/info/refs?service=git-upload-pack"),
    "lfs": ("POST", "/git/main.git/info/lfs/objects/batch"),
    "mcp": ("POST", "/mcp"),
    "s3": ("GET", "/"),
    "s3 object": ("GET", "/main/README.md"),
}
"""A question for each door; what is answered without a credential is among them."""
PAGES = frozenset(DOORS) - {"s3", "s3 object"}
"""The doors that take no page of another site; S3's are the bucket's to say, and every request there is signed."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_house(tmp_path_factory.mktemp("sources"), frozenset({"localhost", "127.0.0.1", "::1", PUBLIC})) as served:
        yield served


def speak(url: str, text: str) -> tuple[int, str]:
    """Say something to the server byte by byte, and return the status and all that came back."""
    parts = urlsplit(url)
    with closing(socket.create_connection((parts.hostname, parts.port), timeout=20)) as connection:
        connection.sendall(text.encode("latin-1"))
        received = bytearray()
        while piece := connection.recv(1 << 16):
            received += piece
    answer = received.decode("latin-1")
    return int(answer.split(" ", 2)[1]), answer


def request(method: str, path: str, headers: Mapping[str, str], version: str = "1.1") -> str:
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers.items()), "Connection: close", "", ""]
    return "\r\n".join(lines)


HOSTS = (
    "evil.example",
    "evil.example:8420",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "user@localhost",
    "localhost/x",
    "[::1",
    "",
)


@pytest.mark.parametrize(("door", "host"), list(itertools.product(DOORS, HOSTS)))
def test_a_name_that_is_not_ours_is_answered_by_no_door(site: Served, door: str, host: str) -> None:
    method, path = DOORS[door]
    status, answer = speak(site.url, request(method, path, {"Host": host, **bearer(site.house.owner)}))
    assert status == 421, answer
    assert "hello" not in answer


@pytest.mark.parametrize("door", DOORS)
def test_no_name_two_names_and_a_name_in_the_request_line_are_none(site: Served, door: str) -> None:
    method, path = DOORS[door]
    owner = bearer(site.house.owner)["authorization"]
    asked = (
        request(method, path, {"Authorization": owner}),
        request(method, path, {"Authorization": owner}, "1.0"),
        request(method, path, {"Host": "localhost", "HOST": "evil.example", "Authorization": owner}),
        request(method, f"http://evil.example{path}", {"Host": "evil.example", "Authorization": owner}),
    )
    for text in asked:
        status, answer = speak(site.url, text)
        assert status in {400, 421}, answer


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1:1", "[::1]:8420", PUBLIC, f"{PUBLIC}:443", PUBLIC.upper()])
def test_every_declared_name_is_answered_by_every_door(site: Served, name: str) -> None:
    for door, (method, path) in DOORS.items():
        status, answer = speak(
            site.url, request(method, path, {"Host": name, "Depth": "1", "Content-Length": "0", **bearer(site.house.owner)})
        )
        assert status != 421, (door, answer)
        assert status < 400 or door in {"mcp", "lfs", "s3", "s3 object"}, (door, answer)


@pytest.mark.parametrize("door", sorted(PAGES))
def test_a_page_of_another_site_another_port_or_no_place_reaches_nothing(site: Served, door: str) -> None:
    method, path = DOORS[door]
    port = urlsplit(site.url).port
    for origin in ("https://evil.example", "null", "http://localhost:3000", f"http://127.0.0.1:{port}", "http://localhost", "file://"):
        if method == "OPTIONS" and path == "/":
            continue  # with Origin this is a preflight of S3, which has no rule for it
        headers = {"Host": f"localhost:{port}", "Origin": origin, **bearer(site.house.owner)}
        status, answer = speak(site.url, request(method, path, headers))
        assert status == 403, (origin, answer)
        assert "access-control-allow" not in answer.lower()


@pytest.mark.parametrize("door", sorted(PAGES))
def test_what_a_browser_asks_for_another_site_without_saying_its_origin_reaches_nothing(site: Served, door: str) -> None:
    method, path = DOORS[door]
    for place, mode in (("cross-site", "no-cors"), ("same-site", "no-cors"), ("cross-site", "cors"), ("anything", "navigate!")):
        headers = {"Host": "localhost", "Sec-Fetch-Site": place, "Sec-Fetch-Mode": mode, **bearer(site.house.owner)}
        assert speak(site.url, request(method, path, headers))[0] == 403, (place, mode)


def test_a_link_may_be_followed_from_anywhere_and_a_form_may_not_be_sent(site: Served) -> None:
    told = {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", **bearer(site.house.owner)}
    assert speak(site.url, request("GET", "/dav/main/README.md", told))[0] == 200
    assert speak(site.url, request("POST", "/v1/runs", told))[0] == 403


def test_its_own_page_may_ask_where_it_came_from(site: Served) -> None:
    for host, origin in (
        ("localhost:8420", "http://localhost:8420"),
        (PUBLIC, f"https://{PUBLIC}"),
        (f"{PUBLIC}:443", f"https://{PUBLIC}"),
    ):
        headers = {"Host": host, "Origin": origin, "Sec-Fetch-Site": "same-origin", **bearer(site.house.owner)}
        assert speak(site.url, request("GET", "/v1/runs", headers))[0] == 200


@pytest.mark.parametrize("path", ["/mcp", "/v1/events", "/dav/", "/"])
def test_there_are_no_websockets(site: Served, path: str) -> None:
    headers = {
        "Host": "localhost",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    status, answer = speak(site.url, request("GET", path, headers))
    assert status >= 400
    assert "sec-websocket-accept" not in answer.lower()


def test_a_preflight_of_s3_tells_a_page_nothing_where_no_rule_names_it(site: Served) -> None:
    for path in ("/main", "/main/README.md", "/absent"):
        headers = {"Host": "localhost", "Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
        status, answer = speak(site.url, request("OPTIONS", path, headers))
        assert status == 403
        assert "access-control-allow" not in answer.lower()


def test_the_unix_socket_of_the_daemon_checks_names_and_pages_as_well(site: Served, tmp_path: Path) -> None:
    pool = Pool("socket", 2)
    server = HttpServer(Door(site.house.control, version="1", pool=pool), socket_path=tmp_path / "s")
    server.start()
    assert server.wait_started(20)
    try:
        for headers, wanted in (
            ({"Host": "localhost"}, 200),
            ({"Host": "evil.example"}, 421),
            ({"Host": "localhost", "Origin": "https://evil.example"}, 403),
        ):
            with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
                connection.settimeout(20)
                connection.connect(str(tmp_path / "s"))
                connection.sendall(request("GET", "/v1/runs", {**headers, **bearer(site.house.owner)}).encode())
                assert int(connection.recv(1 << 16).split(b" ", 2)[1]) == wanted
    finally:
        server.drain(5)
        pool.close()

"""Who gets in, what strangers are told, and how failures read."""

from __future__ import annotations

import base64
import logging
import socket
import time

import pytest

from interfaces.faults import Kind
from interfaces.web.guard import host_name
from interfaces.web.problems import STATUS
from tests.interfaces.http.conftest import Site

PUBLIC = ("/healthz", "/readyz", "/openapi.json")


def test_every_kind_has_a_status() -> None:
    assert set(STATUS) == set(Kind)
    assert all(400 <= status < 600 for status in STATUS.values())


def test_a_stranger_is_told_health_and_the_description_and_nothing_else(site: Site) -> None:
    site.secret = ""
    for path in PUBLIC:
        assert site.ask("GET", path).status == 200
        assert site.ask("HEAD", path).content == b""
        assert site.ask("POST", path, b"").headers["allow"] == "GET, HEAD"
    for method, path in (
        ("GET", "/"),
        ("GET", "/v1/echoes/a"),
        ("GET", "/v1/events"),
        ("POST", "/v1/echoes"),
        ("GET", "/v1/branches/a/files/b"),
        ("GET", "/healthz/"),
    ):
        answer = site.ask(method, path)
        assert (answer.status, answer.document["code"]) == (401, "unauthenticated"), path
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert site.room.calls == []


@pytest.mark.parametrize("credential", ["Basic dXNlcjpwYXNz", "Basic !", "Bearer", "Bearer  ", "anl1-secret-of-a-lease"])
def test_a_secret_travels_in_its_header_only(site: Site, credential: str) -> None:
    site.secret = ""
    assert site.ask("GET", "/v1/echoes/a", Authorization=credential).status == 401
    assert site.ask("GET", f"/v1/echoes/a?access_token={site.room and 'anl1-secret-of-a-lease'}").status == 401


def test_basic_carries_a_lease_and_its_secret(site: Site) -> None:
    credentials = base64.b64encode(f"lease-1:{site.secret}".encode()).decode()
    site.secret = ""
    assert site.ask("GET", "/v1/echoes/a", Authorization=f"Basic {credentials}").status == 200


def test_an_expired_lease_says_so(site: Site) -> None:
    site.secret = "expired"
    answer = site.ask("GET", "/v1/echoes/a")
    assert (answer.status, answer.document["code"], answer.document["hint"]) == (401, "expired", "start another run")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_readiness_is_a_status(site: Site) -> None:
    site.room.ready_now = False
    assert site.ask("GET", "/readyz").status == 503


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "evil@localhost", "", "[::1", "localhost:99999999"]
)
def test_a_name_that_was_pointed_at_this_machine_is_refused(site: Site, host: str) -> None:
    answer = site.ask("GET", "/healthz", Host=host)
    assert (answer.status, answer.document["code"]) == (421, "denied")


@pytest.mark.parametrize(
    ("host", "name"), [("localhost", "localhost"), ("LOCALHOST:80", "localhost"), ("127.0.0.1:8420", "127.0.0.1"), ("[::1]:8420", "::1")]
)
def test_own_names_pass(site: Site, host: str, name: str) -> None:
    assert host_name(host) == name
    assert site.ask("GET", "/healthz", Host=host).status == 200


def test_pages_of_other_origins_may_not_call(site: Site) -> None:
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "file://", "http://[::1", "http://localhost:1"):
        assert site.ask("GET", "/v1/echoes/a", Origin=origin).status == 403, origin
    assert site.ask("GET", "/v1/echoes/a", Host="localhost:8420", Origin="http://localhost:8420").status == 200
    assert [name for name, _ in site.room.calls] == ["echo.show"]


def test_a_fault_is_a_problem_document(site: Site) -> None:
    answer = site.ask("POST", "/v1/echoes/a/refuse", {})
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.document == {
        "type": "urn:agent-nas:fault:gated",
        "title": "Forbidden",
        "status": 403,
        "detail": "the policy asks a person",
        "instance": f"urn:agent-nas:request:{answer.headers['x-request-id']}",
        "code": "gated",
        "message": "the policy asks a person",
        "hint": "wait for the gate",
        "policy": "big-ones (policy.yaml:7:3)",
        "gate": "gate-1",
    }


def test_a_defect_tells_a_client_nothing_and_the_log_everything(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    answer = site.ask("POST", "/v1/echoes/a/break", {})
    assert (answer.status, answer.document["code"]) == (500, "internal")
    assert b"secret detail" not in answer.content
    assert "secret detail" in caplog.text
    assert answer.headers["x-request-id"] in caplog.text


def test_a_request_keeps_a_plain_id_and_loses_a_crooked_one(site: Site) -> None:
    assert site.ask("GET", "/healthz", X_Request_Id="trace-7").headers["x-request-id"] == "trace-7"
    for crooked in ("a b", "x" * 65, "<script>"):
        assert len(site.ask("GET", "/healthz", X_Request_Id=crooked).headers["x-request-id"]) == 16


def test_the_access_log_has_no_secret_and_no_query(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nas.access")
    site.ask("GET", "/v1/echoes/a?tag=private")
    site.ask("GET", "/v1/echoes/a%0Ab?tag=private")
    # A line is written once its answer was sent, so the client may be here first.
    while len(lines := [record.getMessage() for record in caplog.records if record.name == "nas.access"]) < 2:
        time.sleep(0.01)
    assert lines[0].startswith("http GET /v1/echoes/a 200 ")
    assert lines[1].startswith("http GET /v1/echoes/a%0Ab 200 ")
    assert "private" not in caplog.text
    assert site.secret not in caplog.text


def test_a_head_without_end_is_cut_off(site: Site) -> None:
    answer = site.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * 40_000)
    assert answer.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("line", [b"X-Big: " + b"x" * 40_000, b"\r\n".join(b"X-%d: y" % number for number in range(6_000))])
def test_a_whole_head_that_comes_at_once_is_held_to_the_same_length(site: Site, line: bytes) -> None:
    assert site.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n\r\n").startswith(b"HTTP/1.1 431")


def test_a_target_is_held_to_the_length_of_a_head(site: Site) -> None:
    assert site.raw(b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 431")


def test_many_headers_are_cut_off(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        for number in range(400):
            try:
                connection.sendall(b"X-%d: " % number + b"y" * 100 + b"\r\n")
            except OSError:
                break
        assert connection.recv(100).startswith(b"HTTP/1.1 431")


def test_a_head_that_never_ends_is_given_up_on(site: Site) -> None:
    assert site.raw(b"GET /healthz HTTP/1.1\r\nHost: loc").startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "line",
    [
        b"OPTIONS * HTTP/1.1",
        b"CONNECT localhost:80 HTTP/1.1",
        b"GET http://localhost HTTP/1.1",
        b"GET  HTTP/1.1",
        b"BREW / HTTP/1.1",
        b"\xff",
    ],
)
def test_a_crooked_request_line_is_refused(site: Site, line: bytes) -> None:
    answer = site.raw(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401", b"HTTP/1.1 404", b"HTTP/1.1 405"))
    assert site.ask("GET", "/healthz").status == 200


def test_a_request_that_two_servers_would_cut_differently_is_refused(site: Site) -> None:
    head = site.head("POST", "/v1/echoes", "Content-Type: application/json", "Content-Length: 4", "Transfer-Encoding: chunked")
    assert site.raw(head + b"0\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert site.room.calls == []


def test_trailers_do_not_change_a_request(site: Site) -> None:
    head = site.head("POST", "/v1/echoes", "Content-Type: application/json", "Transfer-Encoding: chunked", "Connection: close")
    assert site.raw(head + b'f\r\n{"name": "one"}\r\n0\r\nIdempotency-Key: smuggled\r\n\r\n').startswith(b"HTTP/1.1 201")
    assert site.room.calls == [("echo.make", {"name": "one"})]


def test_one_connection_carries_many_requests(site: Site) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = site.raw(request * 50 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer.count(b"HTTP/1.1 200") == 51

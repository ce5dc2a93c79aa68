"""Changing files through the door."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import pytest

from tests.interfaces.http.conftest import Home
from tests.interfaces.http.test_reads import wait_until


def test_a_file_is_created_then_replaced_with_its_entity_tag(home: Home) -> None:
    created = home.ask("PUT", f"{home.files}/a", b"one")
    assert (created.status, home.read(b"a")) == (201, b"one")
    assert created.headers["etag"] == created.document["etag"] == home.ask("HEAD", f"{home.files}/a").headers["etag"]
    replaced = home.ask("PUT", f"{home.files}/a", b"two two")
    assert (replaced.status, home.read(b"a")) == (200, b"two two")
    assert replaced.headers["etag"] != created.headers["etag"]


def test_an_upload_sent_in_chunks_arrives_whole(home: Home) -> None:
    content = os.urandom(2 << 20)
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (content[: 1 << 20], content[1 << 20 :])) + b"0\r\n\r\n"
    head = home.head("PUT", f"{home.files}/chunks", "Transfer-Encoding: chunked", "Connection: close")
    assert home.raw(head + body).startswith(b"HTTP/1.1 201")
    assert home.read(b"chunks") == content


def test_parents_are_made_only_when_asked_for(home: Home) -> None:
    assert home.ask("PUT", f"{home.files}/x/y/z", b"1").status == 404
    assert home.ask("PUT", f"{home.files}/x/y/z?parents=1", b"1").status == 201
    assert home.read(b"x/y/z") == b"1"
    assert home.ask("PUT", f"{home.files}/x/y/z?parents=1", b"2").status == 200


def test_a_mode_makes_a_program(home: Home) -> None:
    assert home.ask("PUT", f"{home.files}/run?mode=755", b"#!/bin/sh").document["mode"] == "0755"
    assert home.ask("PUT", f"{home.files}/run", b"#!/bin/sh -e").document["mode"] == "0755"
    assert home.ask("PUT", f"{home.files}/run?mode=644", b"x").document["mode"] == "0644"
    for mode in ("8", "", "77777", "-1"):
        assert home.ask("PUT", f"{home.files}/run?mode={mode}", b"x").status == 400


def test_a_stale_writer_loses_and_changes_nothing(home: Home) -> None:
    etag = home.ask("PUT", f"{home.files}/a", b"one").headers["etag"]
    assert home.ask("PUT", f"{home.files}/a", b"two", If_Match=etag).status == 200
    for method, path, body, condition in (
        ("PUT", "a", b"three", {"If_Match": etag}),
        ("PUT", "a", b"three", {"If_Match": f"W/{etag}"}),
        ("PUT", "a", b"three", {"If_None_Match": "*"}),
        ("PUT", "missing", b"three", {"If_Match": "*"}),
        ("PUT", "a", b"three", {"If_Unmodified_Since": "Mon, 01 Jan 2001 00:00:00 GMT"}),
        ("PUT", "a", b"three", {"If_Unmodified_Since": "no date"}),
        ("DELETE", "a", None, {"If_Match": etag}),
        ("POST", "a?op=append", b"three", {"If_Match": etag}),
        ("POST", "a?op=move", {"to": "b"}, {"If_Match": etag}),
        ("POST", "d?op=mkdir", None, {"If_Match": "*"}),
        ("POST", "l?op=symlink", {"target": "a"}, {"If_Match": "*"}),
    ):
        answer = home.ask(method, f"{home.files}/{path}", body, **condition)
        assert (answer.status, answer.document["code"]) == (412, "precondition-failed"), (method, path, condition)
    assert home.ask("PUT", f"{home.files}/a", b"three", If_Match="no quotes").status == 400
    assert home.read(b"a") == b"two"
    assert [home.read(name) for name in (b"missing", b"b", b"d", b"l")] == [None] * 4


def test_of_many_writers_with_one_entity_tag_exactly_one_wins(home: Home) -> None:
    etag = home.ask("PUT", f"{home.files}/a", b"start").headers["etag"]
    statuses: list[int] = []
    threads = [
        threading.Thread(
            target=lambda number=number: statuses.append(home.ask("PUT", f"{home.files}/a", b"%d" % number * 9, If_Match=etag).status)
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [412] * 7


def test_a_connection_that_breaks_leaves_the_file_as_it_was(home: Home) -> None:
    home.put(b"a", b"before")
    with socket.create_connection(("127.0.0.1", home.port)) as connection:
        head = home.head("PUT", f"{home.files}/a", "Content-Length: 3000000")
        connection.sendall(head + b"x" * 2_000_000)
    wait_until(lambda: home.open_files() == 0)
    assert home.ask("GET", f"{home.files}/a").content == b"before"


def test_a_body_that_stops_arriving_is_given_up_on(home: Home) -> None:
    head = home.head("PUT", f"{home.files}/a", "Content-Length: 10")
    assert home.raw(head + b"half").startswith(b"HTTP/1.1 408")
    assert home.read(b"a") is None


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_body_over_the_limit_is_refused(home: Home, framing: str) -> None:
    size = 9 << 20
    if framing == "length":
        answer = home.raw(home.head("PUT", f"{home.files}/a", f"Content-Length: {size}"))
    else:
        with socket.create_connection(("127.0.0.1", home.port), timeout=20) as connection:
            connection.sendall(home.head("PUT", f"{home.files}/a", "Transfer-Encoding: chunked"))
            sender = threading.Thread(target=_send_chunks, args=(connection, size))
            sender.start()
            answer = connection.recv(65536)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            sender.join()
    assert answer.startswith(b"HTTP/1.1 413")
    assert home.read(b"a") is None


def _send_chunks(connection: socket.socket, size: int) -> None:
    piece = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    try:
        for _ in range(size // 0x10000 + 2):
            connection.sendall(piece)
    except OSError:
        return


def test_a_part_is_never_taken_for_a_whole_file(home: Home) -> None:
    home.put(b"a", b"0123456789")
    assert home.ask("PUT", f"{home.files}/a", b"x", Content_Range="bytes 0-0/10").status == 400
    assert home.read(b"a") == b"0123456789"


def test_appending_makes_or_extends_a_file(home: Home) -> None:
    assert home.ask("POST", f"{home.files}/log?op=append", b"one\n").status == 201
    assert home.ask("POST", f"{home.files}/log?op=append", b"two\n").status == 200
    assert home.read(b"log") == b"one\ntwo\n"


def test_directories_are_made_and_removed_when_empty(home: Home) -> None:
    assert home.ask("POST", f"{home.files}/d?op=mkdir").status == 201
    assert home.ask("POST", f"{home.files}/d?op=mkdir").document["code"] == "exists"
    assert home.ask("PUT", f"{home.files}/d", b"").document["code"] == "is-a-directory"
    home.put(b"d/a", b"")
    assert home.ask("DELETE", f"{home.files}/d").document["code"] == "not-empty"
    assert home.ask("DELETE", f"{home.files}/d/a").status == 204
    assert home.ask("DELETE", f"{home.files}/d").status == 204
    assert home.ask("DELETE", f"{home.files}/d").status == 404
    assert home.ask("DELETE", home.files).document["code"] == "not-permitted"


def test_moves_and_copies_replace_nothing_unless_asked(home: Home) -> None:
    home.put(b"a", b"a")
    home.put(b"d/b c", b"b")
    for operation in ("copy", "move"):
        assert home.ask("POST", f"{home.files}/a?op={operation}", {"to": "d/b%20c"}).document["code"] == "exists"
        assert home.ask("POST", f"{home.files}/a?op={operation}", {"to": "missing/b"}).status == 404
        assert home.ask("POST", f"{home.files}/a?op={operation}", {"to": "../b"}).status == 400
        assert home.ask("POST", f"{home.files}/a?op={operation}", {}).status == 400
        assert home.ask("POST", f"{home.files}/a?op={operation}", {"to": "b", "replace": "yes"}).status == 400
    assert home.ask("POST", f"{home.files}/a?op=copy", {"to": "c"}).status == 201
    assert home.ask("POST", f"{home.files}/a?op=move", {"to": "d/b%20c", "replace": True}).document["segment"] == "b%20c"
    assert (home.read(b"c"), home.read(b"d/b c"), home.read(b"a")) == (b"a", b"a", None)
    assert home.ask("POST", f"{home.files}/d?op=copy", {"to": "e"}).document["code"] == "not-permitted"


def test_nothing_is_written_through_a_symlink(home: Home) -> None:
    home.put(b"real", b"real")
    assert home.ask("POST", f"{home.files}/link?op=symlink", {"target": "real"}).document["target"] == "real"
    for answer in (home.ask("PUT", f"{home.files}/link", b"x"), home.ask("POST", f"{home.files}/link?op=append", b"x")):
        assert (answer.status, answer.document["code"]) == (409, "exists")
    assert home.read(b"real") == b"real"
    assert home.ask("DELETE", f"{home.files}/link").status == 204


def test_an_unknown_operation_names_the_known_ones(home: Home) -> None:
    answer = home.ask("POST", f"{home.files}/a?op=explode")
    assert answer.status == 400
    assert "append, copy, mkdir, move, symlink" in answer.document["hint"]
    assert home.ask("PATCH", f"{home.files}/a", b"").headers["allow"] == "DELETE, GET, HEAD, POST, PUT"


def test_a_stranger_uploads_nothing(home: Home) -> None:
    secret, home.secret = home.secret, "wrong"
    answer = home.raw(home.head("PUT", f"{home.files}/a", "Content-Length: 1000000", "Expect: 100-continue", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 401")
    home.secret = secret
    assert home.read(b"a") is None

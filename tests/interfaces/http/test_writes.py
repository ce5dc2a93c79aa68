"""Changing files through the door."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import pytest

from tests.interfaces.http.conftest import Site
from tests.interfaces.http.test_reads import FILES, put


def read(site: Site, path: str) -> bytes:
    return (site.room.folder / path).read_bytes()


def test_a_file_is_created_then_replaced_with_its_entity_tag(site: Site) -> None:
    created = site.ask("PUT", f"{FILES}/a", b"one")
    assert (created.status, read(site, "a")) == (201, b"one")
    assert created.headers["etag"] == created.document["etag"] == site.ask("HEAD", f"{FILES}/a").headers["etag"]
    replaced = site.ask("PUT", f"{FILES}/a", b"two two")
    assert (replaced.status, read(site, "a")) == (200, b"two two")
    assert replaced.headers["etag"] != created.headers["etag"]


def test_an_upload_sent_in_chunks_arrives_whole(site: Site) -> None:
    content = os.urandom(2 << 20)
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (content[: 1 << 20], content[1 << 20 :])) + b"0\r\n\r\n"
    head = site.head("PUT", f"{FILES}/chunks", "Transfer-Encoding: chunked", "Connection: close")
    assert site.raw(head + body).startswith(b"HTTP/1.1 201")
    assert read(site, "chunks") == content


def test_parents_are_made_only_when_asked_for(site: Site) -> None:
    assert site.ask("PUT", f"{FILES}/x/y/z", b"1").status == 404
    assert site.ask("PUT", f"{FILES}/x/y/z?parents=1", b"1").status == 201
    assert read(site, "x/y/z") == b"1"
    assert site.ask("PUT", f"{FILES}/x/y/z?parents=1", b"2").status == 200


def test_a_mode_makes_a_program(site: Site) -> None:
    assert site.ask("PUT", f"{FILES}/run?mode=755", b"#!/bin/sh").document["mode"] == "0755"
    assert site.ask("PUT", f"{FILES}/run", b"#!/bin/sh -e").document["mode"] == "0755"
    assert site.ask("PUT", f"{FILES}/run?mode=644", b"x").document["mode"] == "0644"
    for mode in ("8", "", "77777", "-1"):
        assert site.ask("PUT", f"{FILES}/run?mode={mode}", b"x").status == 400


def test_a_stale_writer_loses_and_changes_nothing(site: Site) -> None:
    etag = site.ask("PUT", f"{FILES}/a", b"one").headers["etag"]
    assert site.ask("PUT", f"{FILES}/a", b"two", If_Match=etag).status == 200
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
        answer = site.ask(method, f"{FILES}/{path}", body, **condition)
        assert (answer.status, answer.document["code"]) == (412, "precondition-failed"), (method, path, condition)
    assert site.ask("PUT", f"{FILES}/a", b"three", If_Match="no quotes").status == 400
    assert read(site, "a") == b"two"
    assert os.listdir(site.room.folder) == ["a"]


def test_of_many_writers_with_one_entity_tag_exactly_one_wins(site: Site) -> None:
    etag = site.ask("PUT", f"{FILES}/a", b"start").headers["etag"]
    statuses: list[int] = []
    threads = [
        threading.Thread(
            target=lambda number=number: statuses.append(site.ask("PUT", f"{FILES}/a", b"%d" % number * 9, If_Match=etag).status)
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [412] * 7


def test_a_connection_that_breaks_leaves_the_file_as_it_was(site: Site) -> None:
    put(site, b"a", b"before")
    with socket.create_connection(("127.0.0.1", site.server.port)) as connection:
        head = site.head("PUT", f"{FILES}/a", "Content-Length: 3000000")
        connection.sendall(head + b"x" * 2_000_000)
    assert site.ask("GET", f"{FILES}/a").content == b"before"
    assert list(site.spool.iterdir()) == []


def test_a_body_that_stops_arriving_is_given_up_on(site: Site) -> None:
    head = site.head("PUT", f"{FILES}/a", "Content-Length: 10")
    assert site.raw(head + b"half").startswith(b"HTTP/1.1 408")
    assert not (site.room.folder / "a").exists()


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_body_over_the_limit_is_refused(site: Site, framing: str) -> None:
    size = 9 << 20
    if framing == "length":
        answer = site.raw(site.head("PUT", f"{FILES}/a", f"Content-Length: {size}"))
    else:
        with socket.create_connection(("127.0.0.1", site.server.port), timeout=20) as connection:
            connection.sendall(site.head("PUT", f"{FILES}/a", "Transfer-Encoding: chunked"))
            sender = threading.Thread(target=_send_chunks, args=(connection, size))
            sender.start()
            answer = connection.recv(65536)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            sender.join()
    assert answer.startswith(b"HTTP/1.1 413")
    assert not (site.room.folder / "a").exists()


def _send_chunks(connection: socket.socket, size: int) -> None:
    piece = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    try:
        for _ in range(size // 0x10000 + 2):
            connection.sendall(piece)
    except OSError:
        return


def test_a_part_is_never_taken_for_a_whole_file(site: Site) -> None:
    put(site, b"a", b"0123456789")
    assert site.ask("PUT", f"{FILES}/a", b"x", Content_Range="bytes 0-0/10").status == 400
    assert read(site, "a") == b"0123456789"


def test_appending_makes_or_extends_a_file(site: Site) -> None:
    assert site.ask("POST", f"{FILES}/log?op=append", b"one\n").status == 201
    assert site.ask("POST", f"{FILES}/log?op=append", b"two\n").status == 200
    assert read(site, "log") == b"one\ntwo\n"


def test_directories_are_made_and_removed_when_empty(site: Site) -> None:
    assert site.ask("POST", f"{FILES}/d?op=mkdir").status == 201
    assert site.ask("POST", f"{FILES}/d?op=mkdir").document["code"] == "exists"
    assert site.ask("PUT", f"{FILES}/d", b"").document["code"] == "is-a-directory"
    put(site, b"d/a", b"")
    assert site.ask("DELETE", f"{FILES}/d").document["code"] == "not-empty"
    assert site.ask("DELETE", f"{FILES}/d/a").status == 204
    assert site.ask("DELETE", f"{FILES}/d").status == 204
    assert site.ask("DELETE", f"{FILES}/d").status == 404
    assert site.ask("DELETE", FILES).document["code"] == "not-permitted"


def test_moves_and_copies_replace_nothing_unless_asked(site: Site) -> None:
    put(site, b"a", b"a")
    put(site, b"d/b c", b"b")
    for operation in ("copy", "move"):
        assert site.ask("POST", f"{FILES}/a?op={operation}", {"to": "d/b%20c"}).document["code"] == "exists"
        assert site.ask("POST", f"{FILES}/a?op={operation}", {"to": "missing/b"}).status == 404
        assert site.ask("POST", f"{FILES}/a?op={operation}", {"to": "../b"}).status == 400
        assert site.ask("POST", f"{FILES}/a?op={operation}", {}).status == 400
        assert site.ask("POST", f"{FILES}/a?op={operation}", {"to": "b", "replace": "yes"}).status == 400
    assert site.ask("POST", f"{FILES}/a?op=copy", {"to": "c"}).status == 201
    assert site.ask("POST", f"{FILES}/a?op=move", {"to": "d/b%20c", "replace": True}).document["segment"] == "b%20c"
    assert (read(site, "c"), read(site, "d/b c"), (site.room.folder / "a").exists()) == (b"a", b"a", False)
    assert site.ask("POST", f"{FILES}/d?op=copy", {"to": "e"}).document["code"] == "not-permitted"


def test_nothing_is_written_through_a_symlink(site: Site) -> None:
    put(site, b"real", b"real")
    assert site.ask("POST", f"{FILES}/link?op=symlink", {"target": "real"}).document["target"] == "real"
    for answer in (site.ask("PUT", f"{FILES}/link", b"x"), site.ask("POST", f"{FILES}/link?op=append", b"x")):
        assert (answer.status, answer.document["code"]) == (409, "exists")
    assert read(site, "real") == b"real"
    assert site.ask("DELETE", f"{FILES}/link").status == 204


def test_an_unknown_operation_names_the_known_ones(site: Site) -> None:
    answer = site.ask("POST", f"{FILES}/a?op=explode")
    assert answer.status == 400
    assert "append, copy, mkdir, move, symlink" in answer.document["hint"]
    assert site.ask("PATCH", f"{FILES}/a", b"").headers["allow"] == "DELETE, GET, HEAD, POST, PUT"


def test_a_stranger_uploads_nothing(site: Site) -> None:
    site.secret = "wrong"
    answer = site.raw(site.head("PUT", f"{FILES}/a", "Content-Length: 1000000", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 401")
    assert site.room.workspaces == []

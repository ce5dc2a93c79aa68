"""PUT, MKCOL and DELETE."""

from __future__ import annotations

import socket
import threading

from tests.interfaces.webdav.dav import Dav, DavHouse


def test_a_file_is_made_and_replaced(dav: Dav) -> None:
    made, replaced = dav.put("a", b"one"), dav.put("a", b"two")
    assert (made.status, replaced.status) == (201, 204)
    assert dav.get("a").body == b"two"
    assert replaced.headers["etag"] == dav.etag("a")


def test_nothing_is_made_above_a_file(dav: Dav) -> None:
    assert dav.put("no/such/a").status == 409
    assert dav.put("README.md/a").status == 409
    assert dav.mkcol("no/such").status == 409


def test_a_collection_is_not_put(dav: Dav) -> None:
    assert dav.put("src").status == 405
    assert dav.put("src/").status == 405


def test_a_stale_condition_changes_nothing(dav: Dav) -> None:
    tag = dav.etag("README.md")
    assert dav.put("README.md", b"x", if_match='"stale"').status == 412
    assert dav.put("README.md", b"x", if_none_match="*").status == 412
    assert dav.put("fresh", b"x", if_match="*").status == 412
    assert dav.delete("README.md", if_match='"stale"').status == 412
    assert dav.etag("README.md") == tag
    assert dav.put("README.md", b"x", if_match=tag).status == 204
    assert dav.put("fresh", b"x", if_none_match="*").status == 201


def test_of_many_who_believe_the_same_one_wins(dav: Dav) -> None:
    tag = dav.etag("README.md")
    answers: list[int] = []

    def write(number: int) -> None:
        answers.append(dav.put("README.md", b"%d" % number, if_match=tag).status)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [204] + [412] * 7


def test_who_asks_before_sending_is_answered_before_sending(dav: Dav) -> None:
    for tag, expected in {'"stale"': b"HTTP/1.1 412 ", dav.etag("README.md"): b"HTTP/1.1 100 "}.items():
        host, port = dav.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            head = [
                f"PUT {dav.href('README.md')} HTTP/1.1",
                f"host: {dav.address}",
                f"authorization: {dav.credentials}",
                f"if-match: {tag}",
                "content-length: 6",
                "expect: 100-continue",
            ]
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            assert connection.recv(1000).startswith(expected)


def test_a_target_with_a_fragment_is_refused_and_deletes_nothing(dav: Dav) -> None:
    host, port = dav.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        head = [
            f"DELETE {dav.href('src/')}#part HTTP/1.1",
            f"host: {dav.address}",
            f"authorization: {dav.credentials}",
            "content-length: 0",
        ]
        connection.sendall("\r\n".join([*head, "", ""]).encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert dav.get("src/a.py").status == 200


def test_a_part_is_not_put(dav: Dav) -> None:
    answer = dav.put("README.md", b"x", content_range="bytes 0-0/6")
    assert answer.status == 400
    assert dav.get("README.md").body == b"hello\n"


def test_a_body_that_a_proxy_cut_leaves_the_file_as_it_was(dav: Dav) -> None:
    for body in (b"", b"abc", b"abcdef"):
        answer = dav.ask("PUT", "README.md", iter([body] if body else []), {"x-expected-entity-length": "5"})
        assert (answer.status, answer.code) == (400, "invalid")
    assert dav.get("README.md").body == b"hello\n"
    assert dav.ask("PUT", "README.md", iter([b"ab", b"cde"]), {"x-expected-entity-length": "5"}).status == 204


def test_a_time_can_come_with_the_content(dav: Dav) -> None:
    answer = dav.put("a", b"x", x_oc_mtime="1700000000")
    assert answer.headers["x-oc-mtime"] == "accepted"
    assert dav.ask("HEAD", "a").headers["last-modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"


def test_no_room_is_507(door: DavHouse) -> None:
    _, dav = door.start(budgets={"bytes_written": 100})
    answer = dav.put("a", b"x" * 200)
    assert (answer.status, answer.code) == (507, "budget-spent")
    assert b"quota-not-exceeded" in answer.body
    assert dav.get("a").status == 404


def test_a_collection_is_made_once(dav: Dav) -> None:
    assert dav.mkcol("made").status == 201
    assert dav.mkcol("made/").status == 405
    assert dav.mkcol("README.md").status == 405
    assert dav.ask("MKCOL", "other", b"<x/>").status == 415


def test_a_collection_goes_with_everything_in_it(dav: Dav) -> None:
    for path in ("d", "d/e", "d/e/f"):
        dav.mkcol(path)
    for path in ("d/1", "d/e/2", "d/e/f/3"):
        dav.put(path)
    assert dav.delete("d").status == 204
    assert dav.get("d").status == 404
    assert dav.delete("d").status == 404


def test_a_deep_tree_goes_too(door: DavHouse) -> None:
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    node = 1
    for _ in range(1020):
        node = workspace.mkdir(node, b"d", 0o755).node
    assert dav.delete("d").status == 204
    assert dav.get("d").status == 404


def test_what_stays_is_named_and_the_rest_goes(dav: Dav) -> None:
    dav.mkcol("d")
    dav.mkcol("d/e")
    for path in ("d/1", "d/e/2"):
        dav.put(path)
    dav.lock("d/e/2")
    answer = dav.delete("d")
    assert answer.status == 207
    assert list(answer.responses()) == [dav.href("d/e/2")]
    assert b" 423 " in answer.body
    assert dav.get("d/1").status == 404
    assert dav.get("d/e/2").status == 200


def test_the_root_of_a_branch_stays(dav: Dav) -> None:
    assert dav.delete("").status == 403
    assert dav.mkcol("").status == 405


def test_main_is_read_only(door: DavHouse) -> None:
    main = door.owner("/dav/main/")
    for answer in (main.put("x"), main.mkcol("x"), main.delete("README.md"), main.transfer("MOVE", "README.md", "x")):
        assert (answer.status, answer.code) == (403, "read-only")
    assert main.get("README.md").status == 200

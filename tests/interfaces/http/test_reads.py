"""Reading files through the door."""

from __future__ import annotations

import email
import http.client
import os
import socket
import time
from collections.abc import Callable
from contextlib import closing
from urllib.parse import quote

import pytest

from interfaces.port import AttributeChange, walk
from tests.interfaces.http.conftest import Home


def test_a_file_is_read_with_validators_and_never_runs_in_a_browser(home: Home) -> None:
    home.put(b"page.html", b"<script>")
    answer = home.ask("GET", f"{home.files}/page.html")
    assert (answer.status, answer.content) == (200, b"<script>")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["etag"].startswith('"')
    assert "last-modified" in answer.headers


def test_a_long_file_streams_byte_for_byte_and_is_closed(home: Home) -> None:
    content = os.urandom(3 << 20)
    home.put(b"big", content)
    answer = home.ask("GET", f"{home.files}/big")
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    wait_until(lambda: home.open_files() == 0)


def test_a_client_that_stops_reading_is_cut_off_and_the_file_closed(home: Home) -> None:
    home.put(b"big", b"x" * (32 << 20))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", home.port))
        connection.sendall(home.head("GET", f"{home.files}/big"))
        wait_until(lambda: home.open_files() == 1)
        wait_until(lambda: home.open_files() == 0)


def test_a_file_that_shrinks_while_it_streams_breaks_the_connection(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.put(b"big", b"x" * (32 << 20))
    connection = http.client.HTTPConnection("127.0.0.1", home.port, timeout=20)
    connection.request("GET", f"{home.files}/big", headers={"Authorization": f"Bearer {home.secret}"})
    response = connection.getresponse()
    assert response.read(1000) == b"x" * 1000
    with home.workspace() as workspace:
        workspace.set_attributes(walk(workspace, b"big").node, AttributeChange(size=1))
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    response.close()
    connection.close()
    assert "broke off: the file shrank while it was read" in caplog.text


def test_a_lease_that_ends_while_a_file_streams_breaks_the_connection(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.put(b"big", b"x" * (32 << 20))
    with closing(http.client.HTTPConnection("127.0.0.1", home.port, timeout=20)) as connection:
        connection.request("GET", f"{home.files}/big", headers={"Authorization": f"Bearer {home.secret}"})
        response = connection.getresponse()
        assert response.read(1000) == b"x" * 1000
        home.house.call(home.house.owner, "lease.revoke", {"lease": home.run.lease, "reason": "enough"})
        with pytest.raises(http.client.IncompleteRead), response:
            response.read()
    assert "was revoked" in caplog.text


def test_a_budget_of_bytes_ends_a_file_that_is_longer(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.put(b"big", b"x" * (8 << 20))
    home.run = home.house.start_run(budgets={"bytes_read": 3 << 20})
    home.secret = home.run.secret
    home.put(b"big", b"x" * (8 << 20))
    with closing(http.client.HTTPConnection("127.0.0.1", home.port, timeout=20)) as connection:
        connection.request("GET", f"{home.files}/big", headers={"Authorization": f"Bearer {home.secret}"})
        with pytest.raises(http.client.IncompleteRead) as caught, connection.getresponse() as response:
            response.read()
    assert len(caught.value.partial) <= 3 << 20
    assert "has spent its budget of bytes read" in caplog.text


def test_ranges_are_answered_as_the_standard_says(home: Home) -> None:
    home.put(b"digits", b"0123456789")
    for asked, status, content, described in (
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-5,3-9", 200, b"0123456789", None),
        ("bytes=5-2", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
    ):
        answer = home.ask("GET", f"{home.files}/digits", Range=asked)
        assert (answer.status, answer.headers.get("content-range")) == (status, described), asked
        assert content is None or answer.content == content, asked


def test_a_range_of_another_state_of_the_file_is_the_whole_file(home: Home) -> None:
    home.put(b"digits", b"0123456789")
    etag = home.ask("HEAD", f"{home.files}/digits").headers["etag"]
    assert home.ask("GET", f"{home.files}/digits", Range="bytes=0-1", If_Range=etag).status == 206
    assert home.ask("GET", f"{home.files}/digits", Range="bytes=0-1", If_Range='"other"').status == 200


def test_a_client_that_has_the_file_is_told_so_and_pays_nothing(home: Home) -> None:
    home.run = home.house.start_run(budgets={"reads": 2})
    home.secret = home.run.secret
    home.put(b"a", b"a")
    first = home.ask("GET", f"{home.files}/a")
    for condition in ({"If_None_Match": first.headers["etag"]}, {"If_Modified_Since": first.headers["last-modified"]}):
        answer = home.ask("GET", f"{home.files}/a", **condition)
        assert (answer.status, answer.content) == (304, b"")
        assert answer.headers["etag"] == first.headers["etag"]
    assert home.ask("GET", f"{home.files}/a", If_None_Match='"other"', If_Modified_Since=first.headers["last-modified"]).status == 200
    assert home.ask("GET", f"{home.files}/a", If_Match='"other"').status == 412


def test_head_says_what_get_would_without_content(home: Home) -> None:
    home.put(b"a", b"12345")
    answer = home.ask("HEAD", f"{home.files}/a")
    assert (answer.status, answer.content, answer.headers["content-length"]) == (200, b"", "5")
    assert home.ask("HEAD", f"{home.files}/missing").status == 404


def test_names_are_any_bytes(home: Home) -> None:
    for name, encoded in ((b"\xff\xfe", "%ff%FE"), (b"a b%", "a%20b%25"), (b"\n", "%0A"), ("é".encode(), "%c3%a9"), (b"%41", "%2541")):
        home.put(b"d/" + name, name)
        assert home.ask("GET", f"{home.files}/d/{encoded}").content == name
    items = home.ask("GET", f"{home.files}/d?list").document["items"]
    assert [item["segment"] for item in items] == ["%0A", "%2541", "a%20b%25", "%C3%A9", "%FF%FE"]
    assert items[-1]["name"] == r"\xff\xfe"


def test_a_path_cannot_leave_the_tree_or_be_written_two_ways(home: Home) -> None:
    home.put(b"a", b"a")
    for path in ("..", "a/..", "%2e%2e/a", ".", "./a", "a//b", "/a", "a/", "a%2Fb", "a%00", "%zz", "%"):
        answer = home.ask("GET", f"{home.files}/{path}")
        assert (answer.status, answer.document["code"]) == (400, "invalid"), path


def test_a_directory_is_listed_page_by_page_while_it_changes(home: Home) -> None:
    for number in range(7):
        home.put(b"d/%d" % number, b"")
    first = home.ask("GET", f"{home.files}/d?list&limit=3").document
    assert ([item["name"] for item in first["items"]], first["truncated"]) == (["0", "1", "2"], True)
    home.put(b"d/1a", b"")
    assert home.ask("DELETE", f"{home.files}/d/0").status == 204
    second = home.ask("GET", f"{home.files}/d?list&limit=9&cursor={first['next']}").document
    assert ([item["name"] for item in second["items"]], second["truncated"], second["next"]) == (["3", "4", "5", "6"], False, None)
    for limit in ("0", "x", "10001"):
        assert home.ask("GET", f"{home.files}/d?list&limit={limit}").status == 400


def test_what_is_not_a_file_says_what_it_is(home: Home) -> None:
    home.put(b"d/a", b"a")
    with home.workspace() as workspace:
        workspace.symlink(walk(workspace, b"d").node, b"link", b"a\xff")
    assert home.ask("GET", f"{home.files}/d").document["code"] == "is-a-directory"
    assert home.ask("GET", f"{home.files}/d/a?list").document["code"] == "not-a-directory"
    assert home.ask("GET", f"{home.files}/d/link").document["code"] == "not-permitted"
    node = home.ask("GET", f"{home.files}/d/link?stat").document
    assert (node["type"], node["target"]) == ("symlink", "a%FF")
    assert home.ask("GET", f"{home.files}?stat").document["type"] == "directory"


def test_a_missing_branch_and_a_missing_file_are_not_found(home: Home) -> None:
    for path in (f"{home.files}/missing", "/v1/branches/other/files/a", "/v1/branches/builder/run-1/files/a"):
        answer = home.ask("GET", path)
        assert (answer.status, answer.document["code"]) == (404, "not-found")


def test_several_ranges_are_parts_of_one_answer(home: Home) -> None:
    content = os.urandom(2 << 20)
    home.put(b"big", content)
    answer = home.ask("GET", f"{home.files}/big", Range="bytes=0-9, 100-1048675, -5")
    assert answer.status == 206
    assert answer.headers["content-length"] == str(len(answer.content))
    assert "content-range" not in answer.headers
    message = email.message_from_bytes(f"content-type: {answer.headers['content-type']}\r\n\r\n".encode() + answer.content)
    parts = [(part["content-range"], part.get_payload(decode=True)) for part in message.get_payload()]
    size = len(content)
    assert parts == [
        (f"bytes 0-9/{size}", content[:10]),
        (f"bytes 100-1048675/{size}", content[100:1048676]),
        (f"bytes {size - 5}-{size - 1}/{size}", content[-5:]),
    ]
    wait_until(lambda: home.open_files() == 0)


def test_a_search_tells_lines_and_pages(home: Home) -> None:
    home.put(b"src/a.py", b"one\nneedle here\nNeedle there\n")
    home.put(b"src/b\xff.txt", b"needle\n")
    found = home.ask("GET", f"{home.files}/src?search=needle").document
    assert [(item["segments"], item["line"]) for item in found["items"]] == [("src/a.py", 2), ("src/b%FF.txt", 1)]
    assert (found["truncated"], found["next"]) == (False, None)
    assert len(home.ask("GET", f"{home.files}?search=needle&ignore_case=1&glob=*.py").document["items"]) == 2
    first = home.ask("GET", f"{home.files}/src?search=needle&limit=1").document
    rest = home.ask("GET", f"{home.files}/src?search=needle&limit=1&cursor={quote(first['next'])}").document
    assert [item["path"] for item in (*first["items"], *rest["items"])] == ["src/a.py", r"src/b\xff.txt"]
    assert home.ask("GET", f"{home.files}?search=x&limit=0").status == 400
    assert home.ask("GET", f"{home.files}/missing?search=x").status == 404


def test_a_commit_is_read_as_it_was_and_cannot_be_changed(home: Home) -> None:
    home.put(b"a", b"before")
    commit = home.house.call(home.secret, "commit.make", {"branch": home.run.branch})["commit"]
    home.put(b"a", b"after")
    assert home.ask("GET", f"{home.files}/a?at={commit}").content == b"before"
    assert home.ask("GET", f"{home.files}/a").content == b"after"
    assert home.ask("PUT", f"{home.files}/a?at={commit}", b"x").document["code"] == "read-only"
    assert home.ask("GET", f"{home.files}/a?at={'0' * 40}").status == 404


def test_what_a_lease_cannot_see_is_absent_in_every_word(home: Home) -> None:
    home.put(b"secret/key", b"k")
    home.put(b"open/a", b"a")
    home.secret = home.house.call(home.house.owner, "run.start", {"role": "coder", "paths": ["open/**"]})["secret"]
    branch = home.house.control.authenticate(home.secret).run
    files = f"/v1/branches/{branch}/files"
    for method, query in (("GET", ""), ("HEAD", ""), ("GET", "?stat"), ("GET", "?list"), ("GET", "?search=k"), ("DELETE", "")):
        hidden, absent = (home.ask(method, f"{files}/{name}{query}", X_Request_Id="same") for name in (".nas", "sna."))
        assert hidden.status == absent.status == 404
        assert hidden.content.replace(b".nas", b"sna.") == absent.content
        assert {**hidden.headers, "date": ""} == {**absent.headers, "date": ""}


def test_everything_opened_is_closed(home: Home) -> None:
    home.put(b"a", b"a" * 100_000)
    for path in ("a", "missing", "a?stat", "a?list"):
        home.ask("GET", f"{home.files}/{path}")
    home.ask("GET", f"{home.files}/a", Range="bytes=999999-")
    wait_until(lambda: home.open_files() == 0)


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once a condition holds; the test's own limit ends a wait for what never does."""
    while not condition():
        time.sleep(0.01)

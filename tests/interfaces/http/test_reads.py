"""Reading files through the door."""

from __future__ import annotations

import http.client
import os
import socket
import time

import pytest

from tests.interfaces.http.conftest import Site

FILES = "/v1/branches/builder%2Frun-1/files"


def put(site: Site, path: bytes, content: bytes) -> None:
    full = os.fsencode(site.room.folder) + b"/" + path
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(content)


def test_a_file_is_read_with_validators_and_never_runs_in_a_browser(site: Site) -> None:
    put(site, b"page.html", b"<script>")
    answer = site.ask("GET", f"{FILES}/page.html")
    assert (answer.status, answer.content) == (200, b"<script>")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["etag"].startswith('"')
    assert "last-modified" in answer.headers


def test_a_long_file_streams_byte_for_byte_and_is_closed(site: Site) -> None:
    content = os.urandom(3 << 20)
    put(site, b"big", content)
    answer = site.ask("GET", f"{FILES}/big")
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    site.ask("GET", f"{FILES}?list")
    assert site.room.workspaces[0].closed == 1
    assert all(handle.descriptor == -1 for handle in site.room.workspaces[0].opened)


def test_a_client_that_stops_reading_is_cut_off_and_the_file_closed(site: Site) -> None:
    put(site, b"big", b"x" * (32 << 20))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", site.server.port))
        connection.sendall(site.head("GET", f"{FILES}/big"))
        while not site.room.workspaces or not site.room.workspaces[0].closed:
            time.sleep(0.01)
    assert site.room.workspaces[0].opened[0].descriptor == -1


def test_a_file_that_shrinks_while_it_streams_breaks_the_connection(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    put(site, b"big", b"x" * (32 << 20))
    connection = http.client.HTTPConnection("127.0.0.1", site.server.port, timeout=20)
    connection.request("GET", f"{FILES}/big", headers={"Authorization": f"Bearer {site.secret}"})
    response = connection.getresponse()
    assert response.read(1000) == b"x" * 1000
    os.truncate(site.room.folder / "big", 1)
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    response.close()
    connection.close()
    assert "broke off: the file shrank while it was read" in caplog.text


def test_ranges_are_answered_as_the_standard_says(site: Site) -> None:
    put(site, b"digits", b"0123456789")
    for asked, status, content, described in (
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("bytes=5-2", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
    ):
        answer = site.ask("GET", f"{FILES}/digits", Range=asked)
        assert (answer.status, answer.headers.get("content-range")) == (status, described), asked
        assert content is None or answer.content == content, asked


def test_a_range_of_another_state_of_the_file_is_the_whole_file(site: Site) -> None:
    put(site, b"digits", b"0123456789")
    etag = site.ask("HEAD", f"{FILES}/digits").headers["etag"]
    assert site.ask("GET", f"{FILES}/digits", Range="bytes=0-1", If_Range=etag).status == 206
    assert site.ask("GET", f"{FILES}/digits", Range="bytes=0-1", If_Range='"other"').status == 200


def test_a_client_that_has_the_file_is_told_so_without_opening_it(site: Site) -> None:
    put(site, b"a", b"a")
    first = site.ask("GET", f"{FILES}/a")
    for condition in ({"If_None_Match": first.headers["etag"]}, {"If_Modified_Since": first.headers["last-modified"]}):
        answer = site.ask("GET", f"{FILES}/a", **condition)
        assert (answer.status, answer.content) == (304, b"")
        assert site.room.workspaces[-1].opened == []
    assert site.ask("GET", f"{FILES}/a", If_None_Match='"other"', If_Modified_Since=first.headers["last-modified"]).status == 200
    assert site.ask("GET", f"{FILES}/a", If_Match='"other"').status == 412


def test_head_says_what_get_would_without_content(site: Site) -> None:
    put(site, b"a", b"12345")
    answer = site.ask("HEAD", f"{FILES}/a")
    assert (answer.status, answer.content, answer.headers["content-length"]) == (200, b"", "5")
    assert site.ask("HEAD", f"{FILES}/missing").status == 404


def test_names_are_any_bytes(site: Site) -> None:
    for name, encoded in ((b"\xff\xfe", "%ff%FE"), (b"a b%", "a%20b%25"), (b"\n", "%0A"), ("é".encode(), "%c3%a9"), (b"%41", "%2541")):
        put(site, b"d/" + name, name)
        assert site.ask("GET", f"{FILES}/d/{encoded}").content == name
    items = site.ask("GET", f"{FILES}/d?list").document["items"]
    assert [item["segment"] for item in items] == ["%0A", "%2541", "a%20b%25", "%C3%A9", "%FF%FE"]
    assert items[-1]["name"] == r"\xff\xfe"


def test_a_path_cannot_leave_the_tree_or_be_written_two_ways(site: Site) -> None:
    put(site, b"a", b"a")
    for path in ("..", "a/..", "%2e%2e/a", ".", "./a", "a//b", "/a", "a/", "a%2Fb", "a%00", "%zz", "%"):
        answer = site.ask("GET", f"{FILES}/{path}")
        assert (answer.status, answer.document["code"]) == (400, "invalid"), path


def test_a_directory_is_listed_page_by_page_while_it_changes(site: Site) -> None:
    for number in range(7):
        put(site, b"d/%d" % number, b"")
    first = site.ask("GET", f"{FILES}/d?list&limit=3").document
    assert ([item["name"] for item in first["items"]], first["truncated"]) == (["0", "1", "2"], True)
    put(site, b"d/1a", b"")
    os.unlink(site.room.folder / "d" / "0")
    second = site.ask("GET", f"{FILES}/d?list&limit=9&cursor={first['next']}").document
    assert ([item["name"] for item in second["items"]], second["truncated"], second["next"]) == (["3", "4", "5", "6"], False, None)
    for limit in ("0", "x", "10001"):
        assert site.ask("GET", f"{FILES}/d?list&limit={limit}").status == 400


def test_what_is_not_a_file_says_what_it_is(site: Site) -> None:
    put(site, b"d/a", b"a")
    os.symlink(b"a\xff", site.room.folder / "d" / "link")
    assert site.ask("GET", f"{FILES}/d").document["code"] == "is-a-directory"
    assert site.ask("GET", f"{FILES}/d/a?list").document["code"] == "not-a-directory"
    assert site.ask("GET", f"{FILES}/d/link").document["code"] == "not-permitted"
    node = site.ask("GET", f"{FILES}/d/link?stat").document
    assert (node["type"], node["target"]) == ("symlink", "a%FF")
    assert site.ask("GET", f"{FILES}?stat").document["type"] == "directory"


def test_a_missing_branch_and_a_missing_file_are_not_found(site: Site) -> None:
    for path in (f"{FILES}/missing", "/v1/branches/other/files/a", "/v1/branches/builder/run-1/files/a"):
        answer = site.ask("GET", path)
        assert (answer.status, answer.document["code"]) == (404, "not-found")


def test_every_workspace_is_closed(site: Site) -> None:
    put(site, b"a", b"a")
    for path in ("a", "missing", "a?stat", "a?list"):
        site.ask("GET", f"{FILES}/{path}")
    site.ask("GET", f"{FILES}/a", Range="bytes=9-")
    assert [workspace.closed for workspace in site.room.workspaces] == [1] * 5

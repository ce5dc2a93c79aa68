"""GET and HEAD."""

from __future__ import annotations

from tests.interfaces.webdav.dav import Dav, DavHouse


def test_a_file_is_read_with_its_tag_type_and_length(dav: Dav) -> None:
    answer = dav.get("README.md")
    assert (answer.status, answer.body) == (200, b"hello\n")
    assert answer.headers["content-length"] == "6"
    assert answer.headers["content-type"] == "text/markdown"
    assert answer.headers["etag"].startswith('"')
    assert "last-modified" in answer.headers


def test_head_says_what_get_says_without_content(dav: Dav) -> None:
    got, head = dav.get("README.md"), dav.ask("HEAD", "README.md")
    assert head.body == b""
    assert {name: got.headers[name] for name in ("etag", "content-length", "content-type")} == {
        name: head.headers[name] for name in ("etag", "content-length", "content-type")
    }


def test_a_tag_changes_with_the_content_and_with_nothing_else(dav: Dav) -> None:
    first = dav.put("a.txt", b"one").headers["etag"]
    dav.patch("a.txt", "<D:set><D:prop><Z:a>1</Z:a></D:prop></D:set>")
    assert dav.transfer("MOVE", "a.txt", "c.txt").status == 201
    assert dav.etag("c.txt") == first
    assert dav.put("c.txt", b"two").headers["etag"] != first
    assert dav.etag("c.txt") == dav.get("c.txt").headers["etag"] != first


def test_what_a_client_has_is_not_sent_again(dav: Dav) -> None:
    tag = dav.etag("README.md")
    answer = dav.get("README.md", if_none_match=tag)
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)
    assert dav.get("README.md", if_match='"other"').status == 412


def test_a_range_is_a_part(dav: Dav) -> None:
    dav.put("ten", b"0123456789")
    answer = dav.get("ten", range="bytes=2-4")
    assert (answer.status, answer.body, answer.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert dav.get("ten", range="bytes=-3").body == b"789"
    assert dav.get("ten", range="bytes=7-").body == b"789"


def test_a_range_outside_is_416_and_one_of_another_state_is_the_whole(dav: Dav) -> None:
    dav.put("ten", b"0123456789")
    answer = dav.get("ten", range="bytes=10-")
    assert (answer.status, answer.headers["content-range"]) == (416, "bytes */10")
    assert dav.get("ten", range="bytes=0-1", if_range='"other"').status == 200
    assert dav.get("ten", range="bytes=0-1", if_range=dav.etag("ten")).status == 206


def test_a_large_file_streams_both_ways(dav: Dav) -> None:
    content = bytes(range(256)) * 4096 * 5
    assert dav.ask("PUT", "large", iter([content[: 1 << 20], content[1 << 20 :]])).status == 201
    assert dav.get("large").body == content
    assert dav.get("large", range="bytes=100000-3000000").body == content[100_000:3_000_001]


def test_content_cannot_run_in_a_browser(dav: Dav) -> None:
    dav.put("page.html", b"<script>alert(1)</script>")
    answer = dav.get("page.html")
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_collection_is_a_page_of_links(dav: Dav) -> None:
    dav.put("a%3Cb%26.txt")
    answer = dav.get("")
    assert answer.status == 200
    assert b'href="./a%3Cb%26.txt">a&lt;b&amp;.txt<' in answer.body
    assert b'href="./src/"' in answer.body


def test_what_is_not_there_is_404_in_the_same_words(dav: Dav) -> None:
    assert [dav.get(path).status for path in ("nothing", "nothing/below", "README.md/below")] == [404] * 3
    assert dav.get("nothing").code == "not-found"


def test_a_stranger_is_asked_for_credentials(door: DavHouse) -> None:
    stranger = Dav(door.address, "/dav/main/")
    answer = stranger.get("README.md")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")


def test_options_tell_everybody_the_classes(door: DavHouse) -> None:
    answer = Dav(door.address, "/dav/").ask("OPTIONS", "no/such/place")
    assert answer.status == 200
    assert answer.headers["dav"] == "1, 2, 3"
    assert answer.headers["ms-author-via"] == "DAV"
    assert "PROPPATCH" in answer.headers["allow"]


def test_a_method_that_does_not_exist_is_refused(dav: Dav) -> None:
    answer = dav.ask("REPORT", "README.md")
    assert answer.status == 405
    assert "PROPFIND" in answer.headers["allow"]


def test_a_host_that_is_not_this_server_is_refused(dav: Dav) -> None:
    assert dav.ask("GET", "README.md", b"", {"host": "evil.example"}).status == 421
    assert dav.ask("GET", "README.md", b"", {"origin": "https://evil.example"}).status == 403

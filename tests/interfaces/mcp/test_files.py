"""Looking: lists and reads are bounded, continue exactly, and never mix two states."""

from __future__ import annotations

import base64

import pytest

from tests.house_of_doors import HouseOfDoors, Started
from tests.interfaces.mcp.rooms import Desk, fill


def test_a_directory_is_listed_in_pages(desk: Desk, run: Started) -> None:
    fill(desk, run, {f"many/{number:02}": b"x" * number for number in range(7)})
    names, cursor, pages = [], {}, 0
    while True:
        page = desk.call("list", path="many", limit=3, **cursor)
        names += [item["path"] for item in page["items"]]
        pages += 1
        if not page["truncated"]:
            break
        cursor = {"cursor": page["cursor"]}
    assert names == [f"many/{number:02}" for number in range(7)]
    assert (pages, page["cursor"]) == (3, None)


def test_listing_a_file_gives_it(desk: Desk) -> None:
    [item] = desk.call("list", path="src/a.py")["items"]
    assert (item["path"], item["type"], item["size"]) == ("src/a.py", "file", 6)


def test_names_that_are_no_text_can_be_given_back(desk: Desk, run: Started) -> None:
    fill(desk, run, {"odd/back\\slash": b"1"})
    run_of = desk.house.house.runs.find(run.run)
    working = desk.house.house.appliance.engine.working(run_of.branch)
    parent = next(entry.node for name, entry in working.list(1) if name == b"odd")
    working.create(parent, b"\xff\xfe", 0o644)
    working.close()
    paths = [item["path"] for item in desk.call("list", path="odd")["items"]]
    assert paths == ["odd/back\\\\slash", "odd/\\xff\\xfe"]
    for path in paths:
        assert desk.call("read", path=path)["path"] == path


def test_a_file_is_read_within_its_budget_and_continues_exactly(desk: Desk, run: Started) -> None:
    content = "".join(f"line {number} é€𝄞\n" for number in range(2000))
    fill(desk, run, {"long": content.encode()})
    text, first, cursor = "", 1, {}
    while True:
        page = desk.call("read", path="long", max_tokens=500, **cursor)
        assert len(page["text"].encode()) <= 1500
        assert page["first_line"] == first
        assert page["text"].endswith("\n")
        text, first = text + page["text"], page["last_line"] + 1
        if not page["truncated"]:
            break
        cursor = {"cursor": page["cursor"]}
    assert text == content
    assert first == 2001


def test_a_line_longer_than_the_budget_is_cut_between_characters(desk: Desk, run: Started) -> None:
    content = "€" * 1000 + "\nend"
    fill(desk, run, {"wide": content.encode()})
    text, cursor = "", {}
    while True:
        page = desk.call("read", path="wide", max_tokens=100, **cursor)
        text += page["text"]
        if not page["truncated"]:
            break
        assert page["first_line"] == 1
        cursor = {"cursor": page["cursor"]}
    assert text == content
    assert (page["first_line"], page["last_line"]) == (1, 2)


def test_lines_are_chosen_by_number(desk: Desk, run: Started) -> None:
    fill(desk, run, {"ten": b"".join(b"%d\n" % number for number in range(1, 11))})
    page = desk.call("read", path="ten", first_line=4, lines=3)
    assert (page["text"], page["first_line"], page["last_line"], page["truncated"]) == ("4\n5\n6\n", 4, 6, True)
    assert desk.call("read", path="ten", cursor=page["cursor"])["text"] == "7\n8\n9\n10\n"
    last = desk.call("read", path="ten", first_line=10)
    assert (last["text"], last["truncated"]) == ("10\n", False)
    beyond = desk.call("read", path="ten", first_line=99)
    assert (beyond["text"], beyond["truncated"]) == ("", False)


def test_a_read_does_not_continue_in_another_content(desk: Desk) -> None:
    desk.call("write", path="moving", content="one\n" * 500)
    page = desk.call("read", path="moving", max_tokens=100)
    desk.call("write", path="moving", content="two\n" * 500)
    kind, told = desk.refused("read", path="moving", cursor=page["cursor"])
    assert kind == "conflict"
    assert "changed since the page before" in told


def test_binary_is_told_to_be_and_read_as_base64(desk: Desk, run: Started) -> None:
    content = bytes(range(256)) * 20
    fill(desk, run, {"image": content})
    kind, told = desk.refused("read", path="image")
    assert kind == "unsupported"
    assert "base64" in told
    collected, cursor = b"", {}
    while True:
        page = desk.call("read", path="image", encoding="base64", max_tokens=100, **cursor)
        assert len(page["text"]) <= 300
        collected += base64.b64decode(page["text"])
        if not page["truncated"]:
            break
        cursor = {"cursor": page["cursor"]}
    assert collected == content


def test_text_that_is_cut_at_the_end_of_the_file_is_no_text(desk: Desk, run: Started) -> None:
    fill(desk, run, {"broken": "é".encode()[:1]})
    assert desk.refused("read", path="broken")[0] == "unsupported"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"path": "nowhere"}, "not-found"),
        ({"path": "src"}, "is-a-directory"),
        ({"path": "src/a.py/b"}, "not-a-directory"),
        ({"path": "../etc"}, "invalid"),
        ({"path": "a//b"}, "invalid"),
        ({"path": "README.md", "cursor": "x"}, "invalid"),
        ({"path": "README.md", "cursor": "1.1.other"}, "conflict"),
        ({"path": "README.md", "max_tokens": 1}, "invalid"),
        ({"path": 7}, "invalid"),
        ({}, "invalid"),
        ({"path": "README.md", "extra": 1}, "invalid"),
        ({"path": "README.md", "branch": "no/such"}, "not-found"),
    ],
)
def test_a_read_that_cannot_be_says_why_and_what_next(desk: Desk, arguments: dict[str, object], kind: str) -> None:
    told = desk.refused("read", **arguments)
    assert told[0] == kind, told[1]


def test_a_symlink_says_where_it_points(house: HouseOfDoors, desk: Desk, run: Started) -> None:
    workspace = house.control.workspace(house.control.authenticate(run.secret), run.branch)
    workspace.symlink(1, b"link", b"README.md")
    kind, told = desk.refused("read", path="link")
    assert kind == "invalid"
    assert "symlink to README.md" in told


def test_search_finds_text_and_tells_what_it_could_not_search(desk: Desk, run: Started) -> None:
    fill(desk, run, {"find/one": b"a\nneedle\n", "find/two": b"needle\n"})
    page = desk.call("search", text="needle", path="find", limit=1)
    assert [(item["path"], item["line"], item["excerpt"]) for item in page["items"]] == [("find/one", 2, "needle")]
    rest = desk.call("search", text="needle", path="find", cursor=page["cursor"])
    assert [item["path"] for item in rest["items"]] == ["find/two"]
    assert [item["path"] for item in desk.call("search", glob="*.py")["items"]] == ["src/a.py", "src/b.py"]


def test_search_without_the_right_to_read_reports_each_file(house: HouseOfDoors) -> None:
    desk = Desk(house, house.start_run(actions=["list"], paths=["src/**"]).secret)
    result = desk.result("search", text="a")
    assert result.structured_content["failed"] == 2
    assert [failure["code"] for failure in result.structured_content["failures"]] == ["denied", "denied"]
    assert "could not be searched" in result.content[1].text  # type: ignore[union-attr]


def test_the_budget_of_reads_is_spent_and_said(house: HouseOfDoors) -> None:
    desk = Desk(house, house.start_run(budgets={"reads": 1}).secret)
    desk.call("read", path="README.md")
    kind, told = desk.refused("read", path="src/a.py")
    assert kind == "budget-spent"
    assert "Next:" in told

"""Changing: what is answered is there for every door, conditions hold, and nothing is replaced unasked."""

from __future__ import annotations

import base64
import threading

import pytest

from interfaces.faults import Fault, Kind
from interfaces.mcp.changes import lines_of, numbered_excerpt, replace_text
from tests.house_of_doors import HouseOfDoors, Started
from tests.interfaces.mcp.rooms import Desk, fill


def test_a_file_is_written_with_the_directories_on_its_way(desk: Desk) -> None:
    made = desk.call("write", path="new/dir/file.txt", content="hé\n")
    assert (made["created"], made["size"]) == (True, 4)
    read = desk.call("read", path="new/dir/file.txt")
    assert (read["text"], read["tag"]) == ("hé\n", made["tag"])
    again = desk.call("write", path="new/dir/file.txt", content_base64=base64.b64encode(b"\0\1").decode())
    assert (again["created"], again["size"]) == (False, 2)


def test_a_write_with_a_tag_replaces_that_content_or_nothing(desk: Desk) -> None:
    first = desk.call("write", path="guarded", content="one")
    second = desk.call("write", path="guarded", content="two", if_tag=first["tag"])
    kind, told = desk.refused("write", path="guarded", content="three", if_tag=first["tag"])
    assert kind == "precondition-failed"
    assert "changed since it was read" in told
    assert desk.call("read", path="guarded")["text"] == "two"
    assert desk.refused("write", path="gone/away", content="x", if_tag=second["tag"])[0] == "not-found"
    assert desk.refused("list", path="gone")[0] == "not-found"


def test_create_only_does_not_replace(desk: Desk) -> None:
    desk.call("write", path="only", content="one", create_only=True)
    assert desk.refused("write", path="only", content="two", create_only=True)[0] == "exists"
    assert desk.call("read", path="only")["text"] == "one"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"path": "x"}, "invalid"),
        ({"path": "x", "content": "a", "content_base64": "YQ=="}, "invalid"),
        ({"path": "x", "content_base64": "not base64!"}, "invalid"),
        ({"path": "", "content": "a"}, "invalid"),
        ({"path": "src", "content": "a"}, "is-a-directory"),
        ({"path": "README.md/x", "content": "a"}, "not-a-directory"),
        ({"path": "n" * 300, "content": "a"}, "invalid"),
    ],
)
def test_a_write_that_cannot_be_changes_nothing_and_says_why(desk: Desk, arguments: dict[str, object], kind: str) -> None:
    told = desk.refused("write", **arguments)
    assert told[0] == kind, told[1]


def test_an_edit_replaces_exact_text_once(desk: Desk) -> None:
    desk.call("write", path="code.py", content="a = 1\nb = 1\nc = 2\n")
    kind, told = desk.refused("edit", path="code.py", old_text="= 1", new_text="= 3")
    assert kind == "conflict"
    assert "2 times, in lines 1, 2" in told
    assert desk.refused("edit", path="code.py", old_text="zzz", new_text="")[0] == "conflict"
    done = desk.call("edit", path="code.py", old_text="b = 1", new_text="b = 3")
    assert (done["replacements"], done["line"]) == (1, 2)
    assert desk.call("edit", path="code.py", old_text="=", new_text=":", replace_all=True)["replacements"] == 3
    assert desk.call("read", path="code.py")["text"] == "a : 1\nb : 3\nc : 2\n"


def test_edits_of_many_callers_at_once_are_all_there(house: HouseOfDoors, run: Started, desk: Desk) -> None:
    desk.call("write", path="shared", content="".join(f"<{number}>\n" for number in range(8)))
    refused: list[str] = []

    def edit(number: int) -> None:
        result = Desk(house, run.secret).result("edit", path="shared", old_text=f"<{number}>", new_text=f"[{number}]")
        if result.is_error:
            refused.append(result.meta["agent-nas/fault"]["code"])  # type: ignore[index]

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = desk.call("read", path="shared")["text"]
    assert text.count("[") == 8 - len(refused)
    assert set(refused) <= {"precondition-failed"}


def test_a_file_that_is_not_text_or_too_large_is_not_edited(desk: Desk, run: Started) -> None:
    fill(desk, run, {"bytes": b"\xff\xfe", "huge": b"x" * ((8 << 20) + 1)})
    assert desk.refused("edit", path="bytes", old_text="a", new_text="b")[0] == "unsupported"
    assert desk.refused("edit", path="huge", old_text="x", new_text="y")[0] == "too-large"


def test_a_move_and_a_copy_do_not_replace_unasked(desk: Desk) -> None:
    desk.call("write", path="m/one", content="1")
    desk.call("write", path="m/two", content="2")
    for tool in ("move", "copy"):
        kind, told = desk.refused(tool, path="m/one", to="m/two")
        assert kind == "exists"
        assert "replace" in told
    desk.call("copy", path="m/one", to="m/deep/er/three")
    desk.call("move", path="m/one", to="m/two", replace=True)
    desk.call("move", path="m/deep", to="m/moved")
    assert [item["path"] for item in desk.call("search", glob="m/**")["items"]] == [
        "m",
        "m/moved",
        "m/moved/er",
        "m/moved/er/three",
        "m/two",
    ]
    assert desk.call("read", path="m/two")["text"] == "1"
    assert desk.refused("move", path="m/nothing", to="x")[0] == "not-found"
    assert desk.refused("move", path="m", to="m/moved/m")[0] == "into-itself"
    assert desk.refused("copy", path="m", to="x")[0] == "is-a-directory"
    assert desk.refused("copy", path="m/nothing", to="made/for/nothing")[0] == "not-found"
    assert desk.refused("move", path="m/nothing", to="made/for/nothing")[0] == "not-found"
    assert desk.refused("list", path="made")[0] == "not-found"


def test_a_directory_is_deleted_with_its_content_only_when_asked(desk: Desk) -> None:
    desk.call("write", path="del/a/b", content="1")
    desk.call("write", path="del/c", content="1")
    assert desk.refused("delete", path="del")[0] == "not-empty"
    assert desk.call("delete", path="del/c")["removed"] == 1
    assert desk.call("delete", path="del", recursive=True)["removed"] == 3
    assert desk.refused("list", path="del")[0] == "not-found"
    assert desk.refused("delete", path="")[0] == "invalid"


def test_a_directory_that_is_there_is_fine_and_a_file_is_not(desk: Desk) -> None:
    assert desk.call("make_directory", path="made/here")["created"]
    assert not desk.call("make_directory", path="made/here")["created"]
    assert desk.refused("make_directory", path="README.md")[0] == "exists"


def test_nothing_is_written_outside_of_the_lease_or_on_main(house: HouseOfDoors) -> None:
    desk = Desk(house, house.start_run(paths=["src/**"]).secret)
    assert desk.refused("write", path="docs/x", content="1")[0] in {"denied", "not-found"}
    assert desk.refused("write", path="README.md", content="1")[0] in {"denied", "not-found"}
    assert desk.refused("write", path="src/a.py", content="1", branch="main")[0] == "read-only"
    assert desk.refused("delete", path="secret/plan.txt")[0] == "not-found"


def test_replacing_tells_how_often_and_where() -> None:
    assert replace_text("x\ny\nx\n", "x", "z", everywhere=True) == ("z\ny\nz\n", 2, 1)
    assert lines_of("aXa\nX\n\nX", "X") == [1, 2, 4]
    with pytest.raises(Fault) as refused:
        replace_text("x\nx", "x", "y", everywhere=False)
    assert refused.value.kind is Kind.CONFLICT


def test_an_excerpt_shows_the_change_and_what_is_around_it() -> None:
    text = "\n".join(str(number) for number in range(1, 21))
    assert numbered_excerpt(text, 10, 11).split("\n") == [f"{number:6}\t{number}" for number in range(7, 15)]
    assert len(numbered_excerpt("x" * 100_000, 1, 1)) <= 4000

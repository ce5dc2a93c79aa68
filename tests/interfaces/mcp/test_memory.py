"""The memory-tool convention: its paths, its words, its errors, over memory/ of the branch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.mcp.memory import insert_text, render_size
from tests.house_of_doors import HouseOfDoors, Started
from tests.interfaces.mcp.rooms import Desk, fill

LISTED = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"


def first_line(text: str) -> str:
    return text.partition(" (")[0]


def test_a_memory_nobody_wrote_to_is_empty(desk: Desk) -> None:
    assert desk.told("memory_view", path="/memories") == f"{LISTED.format('/memories')}\n0B\t/memories"


def test_a_directory_shows_two_levels_without_what_is_hidden(desk: Desk, run: Started) -> None:
    fill(desk, run, {f"memory/{name}": b"x" * 1536 for name in ("a/b/c", "a/d", "e", ".hidden", "node_modules/m")})
    assert desk.told("memory_view", path="/memories").split("\n") == [
        LISTED.format("/memories"),
        "0B\t/memories",
        "0B\t/memories/a",
        "0B\t/memories/a/b",
        "1.5K\t/memories/a/d",
        "1.5K\t/memories/e",
    ]
    assert desk.told("memory_view", path="/memories/a").split("\n")[2:] == [
        "0B\t/memories/a/b",
        "1.5K\t/memories/a/b/c",
        "1.5K\t/memories/a/d",
    ]


def test_a_note_lives_through_the_six_commands(desk: Desk) -> None:
    assert desk.told("memory_create", path="/memories/n.md", file_text="one\ntwo\n") == "File created successfully at: /memories/n.md"
    assert (
        desk.told("memory_insert", path="/memories/n.md", insert_line=1, insert_text="half") == "The file /memories/n.md has been edited."
    )
    edited = desk.told("memory_str_replace", path="/memories/n.md", old_str="half", new_str="1.5")
    assert edited.startswith("The memory file has been edited.")
    assert "     2\t1.5" in edited
    assert desk.told("memory_view", path="/memories/n.md") == (
        "Here's the content of /memories/n.md with line numbers:\n     1\tone\n     2\t1.5\n     3\ttwo\n     4\t"
    )
    assert desk.told("memory_view", path="/memories/n.md", view_range=[2, 2]).endswith(":\n     2\t1.5")
    assert desk.told("memory_rename", old_path="/memories/n.md", new_path="/memories/deep/m.md") == (
        "Successfully renamed /memories/n.md to /memories/deep/m.md"
    )
    assert desk.call("read", path="memory/deep/m.md")["text"] == "one\n1.5\ntwo\n"
    assert desk.told("memory_delete", path="/memories/deep") == "Successfully deleted /memories/deep"


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("memory_view", {"path": "/memories/none"}, "The path /memories/none does not exist. Please provide a valid path."),
        ("memory_create", {"path": "/memories/there", "file_text": ""}, "Error: File /memories/there already exists"),
        (
            "memory_str_replace",
            {"path": "/memories/none", "old_str": "a"},
            "Error: The path /memories/none does not exist. Please provide a valid path.",
        ),
        (
            "memory_str_replace",
            {"path": "/memories/folder", "old_str": "a"},
            "Error: The path /memories/folder does not exist. Please provide a valid path.",
        ),
        (
            "memory_str_replace",
            {"path": "/memories/there", "old_str": "zz"},
            "No replacement was performed, old_str `zz` did not appear verbatim in /memories/there.",
        ),
        (
            "memory_str_replace",
            {"path": "/memories/there", "old_str": "x"},
            "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 3. Please ensure it is unique",
        ),
        (
            "memory_insert",
            {"path": "/memories/none", "insert_line": 0, "insert_text": "a"},
            "Error: The path /memories/none does not exist",
        ),
        (
            "memory_insert",
            {"path": "/memories/there", "insert_line": 4, "insert_text": "a"},
            "Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the file: [0, 3]",
        ),
        ("memory_delete", {"path": "/memories/none"}, "Error: The path /memories/none does not exist"),
        ("memory_rename", {"old_path": "/memories/none", "new_path": "/memories/x"}, "Error: The path /memories/none does not exist"),
        (
            "memory_rename",
            {"old_path": "/memories/there", "new_path": "/memories/folder"},
            "Error: The destination /memories/folder already exists",
        ),
    ],
)
def test_errors_have_the_words_of_the_convention(desk: Desk, run: Started, tool: str, arguments: dict[str, object], message: str) -> None:
    fill(desk, run, {"memory/there": b"x\ny\nx\n", "memory/folder/note": b""})
    assert desk.refused(tool, **arguments)[1].startswith(f"{message} (")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/memories/../src/a.py", "/memoriesx", "memories/a", "", "/memories//a", "/memories/a/./b"]
)
def test_nothing_outside_of_the_memory_can_be_named(desk: Desk, path: str) -> None:
    for tool, arguments in (
        ("memory_view", {"path": path}),
        ("memory_create", {"path": path, "file_text": "x"}),
        ("memory_delete", {"path": path}),
        ("memory_rename", {"old_path": path, "new_path": "/memories/y"}),
    ):
        assert desk.refused(tool, **arguments)[0] == "invalid"


def test_the_memory_itself_is_neither_deleted_nor_renamed(desk: Desk, run: Started) -> None:
    fill(desk, run, {"memory/a": b"1"})
    assert desk.refused("memory_delete", path="/memories")[0] == "not-permitted"
    assert desk.refused("memory_rename", old_path="/memories", new_path="/memories/x")[0] == "not-permitted"
    assert desk.refused("memory_create", path="/memories", file_text="")[0] == "exists"


def test_a_memory_the_lease_does_not_cover_reads_as_one_that_is_not_there(house: HouseOfDoors) -> None:
    run = house.start_run(paths=["src/**"])
    desk = Desk(house, run.secret)
    fill(desk, run, {"memory/secret.md": b"1"})
    assert desk.told("memory_view", path="/memories").endswith("\n0B\t/memories")
    hidden, missing = desk.refused("memory_view", path="/memories/secret.md"), desk.refused("memory_view", path="/memories/secreu.md")
    assert hidden[1].replace("secret", "X") == missing[1].replace("secreu", "X")


def test_a_range_outside_of_the_note_and_a_note_too_long_are_refused(desk: Desk, run: Started) -> None:
    fill(desk, run, {"memory/short": b"a\nb", "memory/long": b"\n" * 1_000_000, "memory/wide": b"x" * 500_000})
    assert desk.refused("memory_view", path="/memories/short", view_range=[3, 1])[0] == "invalid"
    assert desk.refused("memory_view", path="/memories/short", view_range=[0, 1])[0] == "invalid"
    assert "exceeds maximum line limit of 999,999 lines" in desk.refused("memory_view", path="/memories/long")[1]
    assert desk.refused("memory_view", path="/memories/wide")[0] == "too-large"


@pytest.mark.parametrize(
    ("size", "told"), [(0, "0B"), (1023, "1023B"), (1536, "1.5K"), (5 << 20, "5.0M"), (3 << 40, "3.0T"), (5 << 50, "5120.0T")]
)
def test_sizes_are_for_people(size: int, told: str) -> None:
    assert render_size(size) == told


@given(st.text("ab\n", max_size=12), st.text("xy\n", min_size=1, max_size=5), st.data())
def test_what_is_inserted_stands_on_lines_of_its_own_and_loses_nothing(content: str, text: str, data: st.DataObject) -> None:
    lines = content.splitlines(keepends=True)
    after = data.draw(st.integers(0, len(lines)))
    result = insert_text(lines, after, text).split("\n")
    before = "".join(lines[:after]).splitlines()
    following = "".join(lines[after:]).splitlines()
    inserted = text.removesuffix("\n").split("\n")
    assert result[: len(before)] == before
    assert result[len(before) : len(before) + len(inserted)] == inserted
    assert result[len(before) + len(inserted) :][: len(following)] == following

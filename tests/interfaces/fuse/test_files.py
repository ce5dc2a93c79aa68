"""Where writes through an appending descriptor go."""

from __future__ import annotations

from typing import cast

import pytest

from interfaces.faults import Fault, Kind
from interfaces.fuse.files import Files
from interfaces.port import Access, Handle, Workspace


class Content:
    """The bytes of one file, and handles on it that append or write in place."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.open_handles = 0
        self.refuses_appends = False

    def open(self, node: int, access: Access) -> Handle:
        if access.append and self.refuses_appends:
            raise Fault(Kind.BUDGET, "spent")
        self.open_handles += 1
        return cast("Handle", ContentHandle(self, append=access.append))


class ContentHandle:
    """A handle that writes where the store's would."""

    def __init__(self, content: Content, *, append: bool) -> None:
        self._content = content
        self._append = append

    def write(self, offset: int, data: bytes) -> int:
        start = len(self._content.data) if self._append else offset
        self._content.data[start : start + len(data)] = data
        return len(data)

    def close(self) -> None:
        self._content.open_handles -= 1


@pytest.fixture
def content() -> Content:
    return Content(b"start")


@pytest.fixture
def files(content: Content) -> Files:
    return Files(cast("Workspace", content))


def open_for_append(files: Files, size: int) -> int:
    """Open the file with O_APPEND and return its number."""
    return files.add(files.open(7, Access(write=True), append=True), size)


def test_a_write_at_the_believed_end_is_an_append(files: Files, content: Content) -> None:
    number = open_for_append(files, 5)
    files.write(number, 5, b" one")
    files.write(number, 9, b" two")
    assert content.data == b"start one two"


def test_an_append_finds_the_end_that_another_door_moved(files: Files, content: Content) -> None:
    number = open_for_append(files, 5)
    content.data += b" theirs"
    files.write(number, 5, b" ours")
    assert content.data == b"start theirs ours"


def test_a_page_of_a_mapping_is_written_in_place_through_an_appending_descriptor(files: Files, content: Content) -> None:
    number = open_for_append(files, 5)
    files.write(number, 0, b"START")
    assert content.data == b"START"


def test_the_believed_end_is_shared_by_all_opens_of_a_node(files: Files, content: Content) -> None:
    appender = open_for_append(files, 5)
    plain = files.add(files.open(7, Access(write=True), append=False), 5)
    files.write(plain, 5, b" plain")
    files.write(appender, 11, b" appended")
    assert content.data == b"start plain appended"
    files.note_size(7, 3)
    del content.data[3:]
    files.write(appender, 3, b"!")
    assert content.data == b"sta!"


def test_closing_releases_every_handle_and_numbers_are_not_used_again(files: Files, content: Content) -> None:
    first = open_for_append(files, 5)
    files.release(first).close()
    second = open_for_append(files, 5)
    assert second != first
    files.close()
    assert content.open_handles == 0


def test_an_open_that_is_refused_half_way_leaves_nothing_open(files: Files, content: Content) -> None:
    content.refuses_appends = True
    with pytest.raises(Fault):
        open_for_append(files, 5)
    assert content.open_handles == 0

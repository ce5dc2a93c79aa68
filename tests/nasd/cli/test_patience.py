"""Progress is told to people, and only when there is something to wait for."""

from __future__ import annotations

import io
import threading

import pytest

from nasd.cli.patience import Patience, patience


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and when it was written to."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal
        self.written = threading.Event()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def told_to(stream: Terminal) -> str:
    told = Patience("Importing", stream)
    told.report("files", 3, 9)
    thread = threading.Thread(target=told.keep)
    thread.start()
    assert stream.written.wait(30)
    told.finish()
    thread.join()
    return stream.getvalue()


def test_a_terminal_sees_one_line_that_moves_and_goes() -> None:
    said = told_to(Terminal(terminal=True))
    assert said.startswith("\r\x1b[KImporting: files 3 of 9")
    assert said.endswith("\r\x1b[K")
    assert "\n" not in said


def test_a_pipe_sees_whole_lines() -> None:
    assert told_to(Terminal(terminal=False)) == "Importing: files 3 of 9\n"


def test_what_is_done_at_once_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with patience("Importing") as told:
        told.report("files", 1, 0)
    assert capsys.readouterr().err == ""


def test_a_failure_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), patience("Importing"):
        raise ZeroDivisionError

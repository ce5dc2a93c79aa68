"""The channel raises nothing but FUSEError, whatever happens below it."""

from __future__ import annotations

import errno
import inspect
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pyfuse3
import pytest

from interfaces.faults import Fault, Kind
from interfaces.fuse.attributes import Caller
from interfaces.fuse.channels.loop import Loop
from interfaces.fuse.channels.pyfuse3_channel import Channel, operation_names
from interfaces.fuse.operations import Operations

ASKING = [name for name in operation_names() if name not in ("init", "supports_dot_lookup", "enable_writeback_cache", "enable_acl")]


class Failing:
    """Operations that all fail alike."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*_: object) -> Any:
            raise self._error

        return fail


def ask(name: str, error: Exception) -> int:
    """Ask the channel for an operation while all fail, and return the errno it answers with."""
    channel = Channel(cast("Operations", Failing(error)), Caller(0, 0), lambda: None)
    loop = Loop(lambda: None, 1.0)
    channel.attach(loop)
    method = getattr(channel, name)
    arguments = [_argument(parameter) for parameter in inspect.signature(method).parameters]
    with pytest.raises(pyfuse3.FUSEError) as caught:
        loop.run(method(*arguments))
    return int(caught.value.errno)


def _argument(name: str) -> object:
    if name == "ctx":
        return SimpleNamespace(uid=0, gid=0, pid=1, umask=0)
    if name == "fields":
        return SimpleNamespace(**{f"update_{field}": False for field in ("mode", "size", "mtime", "atime", "uid", "gid")})
    return b"" if "name" in name or name in ("value", "buf", "target") else 1


def test_every_operation_of_pyfuse3_that_changes_or_reads_is_answered() -> None:
    left_to_the_kernel = {"access", "poll", "stacktrace"}
    assert {name for name in vars(pyfuse3.Operations) if not name.startswith("_")} - left_to_the_kernel == set(operation_names())


@pytest.mark.parametrize("name", [name for name in ASKING if name != "flush"])
def test_a_fault_becomes_its_errno(name: str) -> None:
    assert ask(name, Fault(Kind.BUDGET, "spent")) == errno.EDQUOT


@pytest.mark.parametrize("name", [name for name in ASKING if name != "flush"])
def test_a_defect_is_logged_with_its_traceback_and_answered_with_eio(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert ask(name, ZeroDivisionError("ours")) == errno.EIO
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_closing_asks_nothing() -> None:
    assert ask("flush", ZeroDivisionError()) == errno.ENOSYS


def test_an_absent_name_is_answered_so_that_the_kernel_remembers_it() -> None:
    channel = Channel(cast("Operations", Failing(Fault(Kind.NOT_FOUND, "absent"))), Caller(0, 0), lambda: None)
    with pytest.raises(StopIteration) as caught:
        channel.lookup(1, b"absent", cast("Any", None)).send(None)
    assert (caught.value.value.st_ino, caught.value.value.entry_timeout) == (0, 1e9)

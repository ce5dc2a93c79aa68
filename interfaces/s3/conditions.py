"""Conditional requests as S3 has them: tags without lists of weak ones, dates beside tags, conditions of writes and removals. Pure.

1. Reading: ``If-Match`` and ``If-Unmodified-Since`` fail with ``PreconditionFailed``; ``If-None-Match`` and ``If-Modified-Since`` with
   304. A tag wins over the date beside it.
2. Writing: ``If-None-Match: *`` wants no object, ``If-Match`` the object with that tag; without an object it is ``NoSuchKey``, as AWS says.
3. Copying: the same four under ``x-amz-copy-source-if-...``, all failing with ``PreconditionFailed``.
4. A write is judged twice: before its body is read, and in the moment it takes the name. Where the two differ it is a
   conflict, and the client tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from interfaces.port import Attributes, Condition
from interfaces.s3.faults import S3Fault

SOURCE = "x-amz-copy-source-"


@dataclass(frozen=True, slots=True)
class State:
    """What conditions compare: the tag without quotes, and the second of the last change."""

    etag: str
    modified: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What an object has to be to be deleted: its tag, the second of its last change, its size, each as it was sent; empty: anything."""

    etag: str = ""
    modified: str = ""
    size: str = ""

    def __bool__(self) -> bool:
        return bool(self.etag or self.modified or self.size)


def judge_removal(expected: Expected, state: State | None, size: int) -> None:
    """Return when an object in this state (None: a delete marker) may be deleted. Raises ``PreconditionFailed``, ``InvalidArgument``."""
    if not expected:
        return
    if expected.etag == "*" and state is None:
        # A key that has only a marker is absent, and deleting what is absent succeeds.
        return
    if (
        state is None
        or (expected.etag and expected.etag != "*" and not _matches(expected.etag, state.etag))
        or (expected.modified and _read_time(expected.modified) != state.modified)
        or (expected.size and expected.size != str(size))
    ):
        raise S3Fault("PreconditionFailed")


def judge_read(headers: Mapping[str, str], state: State) -> None:
    """Return when a read may go on. Raises ``PreconditionFailed``, ``NotModified``."""
    if not _required(headers, "", state):
        raise S3Fault("PreconditionFailed", elements={"Condition": "If-Match" if "if-match" in headers else "If-Unmodified-Since"})
    if _known(headers, "", state):
        raise S3Fault("NotModified", headers={"etag": f'"{state.etag}"'})


def judge_source(headers: Mapping[str, str], state: State) -> None:
    """Return when a copy may read its source. Raises ``PreconditionFailed``."""
    if not _required(headers, SOURCE, state) or _known(headers, SOURCE, state):
        raise S3Fault("PreconditionFailed")


def judge_write(headers: Mapping[str, str], etag: str | None) -> None:
    """Return when a write may replace the object with `etag` (None: there is none). Raises ``PreconditionFailed``, ``NoSuchKey``."""
    unwanted, wanted = headers.get("if-none-match"), headers.get("if-match")
    if unwanted is not None and etag is not None and (unwanted.strip() == "*" or _matches(unwanted, etag)):
        raise S3Fault("PreconditionFailed", elements={"Condition": "If-None-Match"})
    if wanted is None:
        return
    if etag is None:
        raise S3Fault("NoSuchKey")
    if wanted.strip() != "*" and not _matches(wanted, etag):
        raise S3Fault("PreconditionFailed", elements={"Condition": "If-Match"})


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Tell whether a write has a condition."""
    return "if-match" in headers or "if-none-match" in headers


def condition_of_write(headers: Mapping[str, str], standing: Attributes | None, etag_of: Callable[[Attributes], str]) -> Condition | None:
    """Judge a write on what stands there now, and return what judges it again when it takes the name (None: nothing has to).

    Raises as `judge_write`.
    """
    if not is_conditional(headers):
        return None
    judge_write(headers, etag_of(standing) if standing else None)
    # Of a write that changed its mind meanwhile only this one says for certain what is wrong.
    wants_none = headers.get("if-none-match", "").strip() == "*"
    return demand_same(standing, otherwise="PreconditionFailed" if wants_none else "ConditionalRequestConflict")


def demand_same(standing: Attributes | None, *, otherwise: str = "ConditionalRequestConflict") -> Condition:
    """Return the condition that a name still stands for the content it was judged by; it raises the code `otherwise`."""
    judged = standing.content if standing else None

    def judge_again(found: Attributes | None) -> None:
        if (found.content if found else None) != judged:
            raise S3Fault(otherwise)

    return judge_again


def _required(headers: Mapping[str, str], prefix: str, state: State) -> bool:
    if (wanted := headers.get(f"{prefix}if-match")) is not None:
        return wanted.strip() == "*" or _matches(wanted, state.etag)
    since = _seconds(headers.get(f"{prefix}if-unmodified-since"))
    return since is None or state.modified <= since


def _known(headers: Mapping[str, str], prefix: str, state: State) -> bool:
    if (unwanted := headers.get(f"{prefix}if-none-match")) is not None:
        return unwanted.strip() == "*" or _matches(unwanted, state.etag)
    since = _seconds(headers.get(f"{prefix}if-modified-since"))
    return since is not None and state.modified <= since


def _matches(value: str, etag: str) -> bool:
    return any(tag.strip().removeprefix("W/").strip('"') == etag for tag in value.split(","))


def _read_time(text: str) -> int:
    """Return a time in seconds of the epoch, written as HTTP or as XML does it. Raises ``InvalidArgument``."""
    if (seconds := _seconds(text)) is not None:
        return int(seconds)
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except ValueError as error:
        raise S3Fault("InvalidArgument", f"{text} is not a time") from error


def _seconds(date: str | None) -> float | None:
    """Return a date in seconds of the epoch; one that cannot be read says nothing, as RFC 9110 section 13.1.3 wants."""
    if date is None:
        return None
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None

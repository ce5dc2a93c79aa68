"""Conditions of reads, writes and copies."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from interfaces.s3.conditions import State, condition_of_write, judge_read, judge_source, judge_write
from interfaces.s3.faults import S3Fault

NOW = State("abc", 1_800_000_000)
BEFORE, SAME, AFTER = "Fri, 15 Jan 2027 07:59:59 GMT", "Fri, 15 Jan 2027 08:00:00 GMT", "Fri, 15 Jan 2027 08:00:01 GMT"


@dataclass(frozen=True)
class Standing:
    """What stands under a name, as far as conditions look at it."""

    content: bytes


def code_of(call: object, *arguments: object) -> str:
    try:
        call(*arguments)  # type: ignore[operator]
    except S3Fault as fault:
        return fault.code
    return ""


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, ""),
        ({"if-match": '"abc"'}, ""),
        ({"if-match": "abc"}, ""),
        ({"if-match": "*"}, ""),
        ({"if-match": '"x", "abc"'}, ""),
        ({"if-match": '"x"'}, "PreconditionFailed"),
        ({"if-none-match": '"abc"'}, "NotModified"),
        ({"if-none-match": 'W/"abc"'}, "NotModified"),
        ({"if-none-match": "*"}, "NotModified"),
        ({"if-none-match": '"x"'}, ""),
        ({"if-modified-since": SAME}, "NotModified"),
        ({"if-modified-since": BEFORE}, ""),
        ({"if-unmodified-since": BEFORE}, "PreconditionFailed"),
        ({"if-unmodified-since": SAME}, ""),
        ({"if-unmodified-since": AFTER}, ""),
        ({"if-match": '"abc"', "if-unmodified-since": BEFORE}, ""),
        ({"if-none-match": '"x"', "if-modified-since": AFTER}, ""),
        ({"if-modified-since": "yesterday"}, ""),
    ],
)
def test_a_read_is_judged_by_its_tags_then_by_its_dates(headers: dict[str, str], code: str) -> None:
    assert code_of(judge_read, headers, NOW) == code


@pytest.mark.parametrize(
    ("headers", "etag", "code"),
    [
        ({}, None, ""),
        ({"if-none-match": "*"}, None, ""),
        ({"if-none-match": "*"}, "abc", "PreconditionFailed"),
        ({"if-match": '"abc"'}, "abc", ""),
        ({"if-match": '"x"'}, "abc", "PreconditionFailed"),
        ({"if-match": '"abc"'}, None, "NoSuchKey"),
    ],
)
def test_a_write_is_judged_by_what_stands_there(headers: dict[str, str], etag: str | None, code: str) -> None:
    assert code_of(judge_write, headers, etag) == code


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("if-match", '"abc"', ""),
        ("if-match", '"x"', "PreconditionFailed"),
        ("if-none-match", '"abc"', "PreconditionFailed"),
        ("if-none-match", '"x"', ""),
        ("if-modified-since", AFTER, "PreconditionFailed"),
        ("if-unmodified-since", BEFORE, "PreconditionFailed"),
    ],
)
def test_a_copy_is_judged_by_its_source(name: str, value: str, code: str) -> None:
    assert code_of(judge_source, {f"x-amz-copy-source-{name}": value}, NOW) == code
    assert code_of(judge_source, {name: value}, NOW) == ""


def test_a_write_without_conditions_is_not_judged_again() -> None:
    assert condition_of_write({}, None, lambda _: "abc") is None


def test_a_write_whose_object_stayed_goes_on() -> None:
    condition = condition_of_write({"if-match": '"abc"'}, Standing(b"1"), lambda _: "abc")  # type: ignore[arg-type]
    assert condition is not None
    condition(Standing(b"1"))  # type: ignore[arg-type]


def test_a_write_whose_object_changed_is_a_conflict() -> None:
    condition = condition_of_write({"if-match": '"abc"'}, Standing(b"1"), lambda _: "abc")  # type: ignore[arg-type]
    assert condition is not None
    assert code_of(condition, Standing(b"2")) == "ConditionalRequestConflict"
    assert code_of(condition, None) == "ConditionalRequestConflict"


def test_a_write_that_wanted_no_object_fails_for_one_that_came_meanwhile() -> None:
    condition = condition_of_write({"if-none-match": "*"}, None, lambda _: "abc")
    assert condition is not None
    assert code_of(condition, Standing(b"2")) == "PreconditionFailed"

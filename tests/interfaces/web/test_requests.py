"""What is read of a request before a door sees it: headers, query, credentials, and which door it is for."""

from __future__ import annotations

import asyncio
import base64
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.port import Arrival
from interfaces.web.asgi import MAX_PARAMETERS, Message, Receive, Request, Scope, Send, field_value, read_headers, read_parameters
from interfaces.web.conditions import Validators, judge
from interfaces.web.credentials import authenticate, read_basic
from interfaces.web.family import Family, Members, is_signed
from interfaces.web.guard import host_name
from interfaces.web.pool import Pool

POOL = Pool("requests", 1)
words = st.text(st.characters(blacklist_characters=":", blacklist_categories=["Cs"]), min_size=1, max_size=20)


@dataclass
class Porter:
    """The part of the control that lets people in; remembers what it was asked."""

    asked: list[tuple[str, ...]] = field(default_factory=list)

    def authenticate(self, secret: str, arrival: Arrival) -> tuple[str, ...]:
        self.asked.append((secret,))
        return self.asked[-1]

    def authenticate_basic(self, user: str, password: str, arrival: Arrival) -> tuple[str, ...]:
        self.asked.append((user, password))
        return self.asked[-1]


@dataclass(frozen=True)
class Named:
    """A member of a family that only has a name."""

    name: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError(self.name)

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def drain(self) -> None:
        raise AssertionError(self.name)


FAMILY = Family(Members(Named("http"), Named("s3"), Named("webdav"), Named("git"), Named("mcp")))
ALONE = Family(Members(Named("http")))


def scope_of(path: bytes, query: bytes = b"", authorization: bytes = b"", method: str = "GET") -> Scope:
    headers = [(b"host", b"localhost"), *([(b"authorization", authorization)] if authorization else [])]
    return {"type": "http", "method": method, "raw_path": path, "query_string": query, "headers": headers}


def asking(authorization: str) -> Request:
    headers = [(b"authorization", authorization.encode("utf-8"))]
    return Request({"method": "GET", "raw_path": b"/", "query_string": b"", "headers": headers, "client": ("192.0.2.1", 5)}, _nothing)


async def _nothing() -> Message:
    raise AssertionError("the body is not asked for")


def name_of(family: Family, scope: Scope) -> str:
    member = family.member_for(scope)
    assert isinstance(member, Named)
    return member.name


@given(st.text("Bearer basic =", max_size=12), st.text(max_size=40))
@example("Bearer", " two words")
@example("Basic", "x" * 10_000)
def test_any_credentials_are_a_secret_or_nobodys(scheme: str, rest: str) -> None:
    porter = Porter()
    try:
        found = asyncio.run(authenticate(porter, asking(f"{scheme} {rest}"), "http", POOL))  # type: ignore[arg-type]
    except Fault as fault:
        assert (fault.kind, porter.asked) == (Kind.UNAUTHENTICATED, [])
    else:
        assert found == porter.asked[0]
        assert all(found)


@given(words, st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20))
def test_basic_credentials_are_read_as_they_were_made(user: str, password: str) -> None:
    assert read_basic(base64.b64encode(f"{user}:{password}".encode()).decode()) == (user, password)


@pytest.mark.parametrize("text", ["", "a", "YTpi!", "YTpi\n", "YWI=", "OmI=", "YTo=", "/zpi", "é"])
def test_crooked_basic_credentials_are_nobodys(text: str) -> None:
    with pytest.raises(Fault) as caught:
        read_basic(text)
    assert caught.value.kind is Kind.UNAUTHENTICATED


@given(st.binary(max_size=60))
@example(b"a=1&a=2")
@example(b"&".join(b"%d=" % number for number in range(MAX_PARAMETERS + 1)))
def test_any_query_is_read_without_a_choice_or_refused(query: bytes) -> None:
    try:
        found = read_parameters(query)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert len(found) <= MAX_PARAMETERS


def test_fields_that_repeat_are_one_list() -> None:
    assert read_headers([(b"accept", b"a"), (b"host", b"h"), (b"accept", b"\xe9")]) == {"accept": "a, é", "host": "h"}


@given(st.text(max_size=40))
def test_any_host_is_a_name_or_none(text: str) -> None:
    name = host_name(text)
    assert name == name.lower()
    assert not set(name) & set("/?#@[] ")


@given(st.dictionaries(st.sampled_from(["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"]), st.text(max_size=30)))
def test_any_conditions_are_judged_or_refused(headers: dict[str, str]) -> None:
    try:
        judge("PUT", headers, Validators('"now"', 1_000))
    except Fault as fault:
        assert fault.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("path", "query", "authorization", "name"),
    [
        (b"/v1/runs", b"", b"Bearer x", "http"),
        (b"/healthz", b"", b"", "http"),
        (b"/openapi.json", b"", b"", "http"),
        (b"/dav", b"", b"Basic x", "webdav"),
        (b"/dav/a/b", b"", b"", "webdav"),
        (b"/git/main.git/info/refs", b"service=git-upload-pack", b"", "git"),
        (b"/mcp", b"", b"Bearer x", "mcp"),
        (b"/", b"", b"", "s3"),
        (b"/bucket/key", b"", b"", "s3"),
        (b"/davenport", b"", b"", "s3"),
        (b"/%64av/a", b"", b"", "s3"),
        (b"/v1/runs", b"", b"AWS4-HMAC-SHA256 Credential=x", "s3"),
        (b"/dav/a", b"", b"AWS key:signature", "s3"),
        (b"/git/a", b"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0", b"", "s3"),
        (b"/mcp", b"AWSAccessKeyId=a&Expires=1&Signature=b", b"", "s3"),
        (b"/v1/search", b"q=Signature=", b"", "http"),
        (b"/v1/search", b"X-Amz-Algorithm=x", b"Bearer x", "http"),
    ],
)
def test_a_request_goes_to_its_door(path: bytes, query: bytes, authorization: bytes, name: str) -> None:
    scope = scope_of(path, query, authorization)
    assert name_of(FAMILY, scope) == name
    assert name_of(ALONE, scope) == "http"


@given(st.binary(max_size=30).map(lambda raw: b"/" + raw), st.binary(max_size=30), st.binary(max_size=30))
def test_any_request_has_one_door(path: bytes, query: bytes, authorization: bytes) -> None:
    scope = scope_of(path, query, authorization)
    assert name_of(FAMILY, scope) in {"http", "s3", "webdav", "git", "mcp"}
    if is_signed(scope):
        assert name_of(FAMILY, scope) == "s3"


@pytest.mark.parametrize(
    ("method", "path", "authorization", "expected"),
    [
        ("OPTIONS", b"/", b"", "webdav"),
        ("PROPFIND", b"/", b"Basic x", "webdav"),
        ("MKCOL", b"/bucket/key", b"", "webdav"),
        ("COPY", b"/v1/runs", b"", "http"),
        ("OPTIONS", b"/bucket", b"", "s3"),
        ("PROPFIND", b"/", b"AWS4-HMAC-SHA256 x", "s3"),
    ],
)
def test_what_only_webdav_can_mean_is_webdavs_where_nobody_else_is(method: str, path: bytes, authorization: bytes, expected: str) -> None:
    assert name_of(FAMILY, scope_of(path, b"", authorization, method)) == expected


def test_a_question_of_a_page_is_not_webdavs() -> None:
    scope = scope_of(b"/", method="OPTIONS")
    scope["headers"] = [*scope["headers"], (b"origin", b"https://page.example")]
    assert name_of(FAMILY, scope) == "s3"


@given(st.text())
def test_no_header_value_splits_an_answer(text: str) -> None:
    value = field_value(text)
    assert not set(value) & set(b"\r\n\0")
    assert len(value) == len(text)
    if text.isascii() and text.isprintable():
        assert value.decode() == text

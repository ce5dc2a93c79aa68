"""Requests to accounts: only what a rule names, with nothing of ours in it, and a digest of exactly what is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.accounts import parse_account
from trust.errors import AccountInvalid
from trust.requests import Request, check_principal, check_remote, check_request, holds_secret, request_digest

FORGE = {
    "name": "forge",
    "kind": "header",
    "header": "x-api-key",
    "url": "https://api.example.com/v3",
    "secret": "env://FORGE_TOKEN",
    "rules": ["GET repos/**", "POST repos/*/*/issues"],
    "headers": ["x-api-version"],
}
ACCOUNT = parse_account(FORGE)


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/repos"),
        Request("GET", "/repos/a/b/", (("page", "2"),)),
        Request("POST", "/repos/a/b/issues", (), {"content-type": "application/json"}, "00", 2),
        Request("POST", "/repos/a/%62/%69ssues"),
        Request("GET", "/repos/a", (), {"X-Api-Version": "3", "If-None-Match": '"x"'}),
    ],
)
def test_what_a_rule_names_may_be_asked(request_: Request) -> None:
    check_request(ACCOUNT, request_)


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", "/repos/a/b"),
        Request("POST", "/repos/a/b/issues/1"),
        Request("DELETE", "/repos/a"),
        Request("GET", "/user"),
        Request("GET", "/"),
        Request("GET", "/repos/../user"),
        Request("get", "/repos/a"),
        Request("CONNECT", "/repos/a"),
        Request("GET", "/repos/a", (), {"Authorization": "Bearer x"}),
        Request("GET", "/repos/a", (), {"cookie": "x"}),
        Request("GET", "/repos/a", (), {"Host": "evil.example"}),
        Request("GET", "/repos/a", (), {"X-Api-Key": "mine"}),
        Request("GET", "/repos/a", (), {"X-HTTP-Method-Override": "DELETE"}),
        Request("GET", "/repos/a", (), {"x-unknown": "1"}),
        Request("GET", "/repos/a", (), {"accept": "a\r\nX-Api-Key: b"}),
        Request("GET", "/repos/a", (("q", "x"),) * 65),
    ],
)
def test_everything_else_may_not(request_: Request) -> None:
    with pytest.raises(AccountInvalid):
        check_request(ACCOUNT, request_)


LEASE = "anl1.WyJsMSIsW11d." + "A" * 43
TOKEN = "nat1.t1." + "B" * 43


@pytest.mark.parametrize("secret", [LEASE, TOKEN])
def test_no_secret_of_ours_travels(secret: str) -> None:
    for carrying in (
        Request("GET", f"/repos/{secret}"),
        Request("GET", "/repos/a", (("token", secret),)),
        Request("GET", "/repos/a", ((secret, ""),)),
        Request("GET", "/repos/a", (("token", secret.replace(".", "%2e")),)),
        Request("GET", "/repos/a", (), {"accept": secret}),
    ):
        with pytest.raises(AccountInvalid, match="secret of this appliance"):
            check_request(ACCOUNT, carrying)
    assert holds_secret(b'{"a": "' + secret.encode() + b'"}')
    assert not holds_secret(b"an ordinary body")


def test_a_refusal_says_what_the_account_lets() -> None:
    with pytest.raises(AccountInvalid, match=r"GET repos/\*\*"):
        check_request(ACCOUNT, Request("GET", "/user"))


def test_query_values_cannot_become_other_parameters() -> None:
    assert Request("GET", "/r", (("q", "a&admin=1#x"), ("ü", " "))).target == "/r?q=a%26admin%3D1%23x&%C3%BC=%20"


def test_an_account_for_some_is_for_no_others() -> None:
    account = parse_account(FORGE | {"principals": ["coder"]})
    check_principal(account, frozenset({"coder", "ann"}))
    check_principal(ACCOUNT, frozenset({"anybody"}))
    with pytest.raises(AccountInvalid, match="coder"):
        check_principal(account, frozenset({"writer"}))


def test_a_git_account_fetches_and_pushes_what_its_rules_name_and_calls_nothing() -> None:
    git = parse_account(FORGE | {"kind": "git", "username": "nas", "rules": ["FETCH org/*", "PUSH org/mirror.git"]})
    check_remote(git, "/org/a.git", push=False)
    check_remote(git, "/org/mirror.git", push=True)
    for path, push in (("/org/a.git", True), ("/other/a.git", False), ("/org/../x", False), ("/org/-x/y", False)):
        with pytest.raises(AccountInvalid):
            check_remote(git, path, push=push)
    with pytest.raises(AccountInvalid, match="git"):
        check_request(git, Request("GET", "/org/a.git"))
    with pytest.raises(AccountInvalid, match="git"):
        check_remote(ACCOUNT, "/repos/a", push=False)


_TEXT = st.text(alphabet="ab/", max_size=4)
_REQUEST = st.builds(
    Request,
    method=st.sampled_from(["GET", "POST"]),
    path=_TEXT,
    query=st.lists(st.tuples(_TEXT, _TEXT), max_size=2).map(tuple),
    headers=st.dictionaries(st.sampled_from(["accept", "range"]), _TEXT, max_size=2),
    body_sha256=_TEXT,
)


@given(_REQUEST, _REQUEST)
def test_the_digest_tells_any_two_requests_apart(one: Request, other: Request) -> None:
    def sent(request: Request) -> tuple[Any, ...]:
        return request.method, request.path, request.query, dict(request.headers), request.body_sha256

    assert (request_digest(ACCOUNT, one) == request_digest(ACCOUNT, other)) == (sent(one) == sent(other))


def test_the_digest_covers_where_it_goes() -> None:
    request = Request("GET", "/repos/a")
    elsewhere = parse_account(FORGE | {"url": "https://api.example.org/v3"})
    renamed = replace(ACCOUNT, name="other")
    assert len({request_digest(account, request) for account in (ACCOUNT, elsewhere, renamed)}) == 3

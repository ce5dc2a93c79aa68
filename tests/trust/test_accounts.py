"""Accounts: what one can be, where its requests go, and how its secret is named."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.accounts import AccountKind, check_path, parse_account, parse_destination, parse_reference
from trust.errors import AccountInvalid

FORGE = {"name": "forge", "kind": "bearer", "url": "https://api.example.com/v3", "secret": "env://FORGE_TOKEN"}


def test_an_account_survives_its_document() -> None:
    wanted = FORGE | {
        "rules": ["GET repos/**", "POST repos/*/issues"],
        "headers": ["X-Api-Version"],
        "principals": ["coder"],
        "daily": 5,
        "origin": "external",
        "sensitivity": "sensitive",
    }
    account = parse_account(wanted)
    assert parse_account(account.document()) == account
    assert str(account.destination) == "https://api.example.com/v3"
    assert account.label.untrusted
    assert account.label.secret


def test_what_an_account_answers_is_external_unless_said_otherwise() -> None:
    assert str(parse_account(FORGE).label) == "external/internal"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "https://user@api.example.com",
        "https://user:secret@api.example.com",
        "https://api.example.com?x=1",
        "https://api.example.com#x",
        "https://api.example.com?",
        "ftp://api.example.com",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://api.example.com:99999",
        "https://api.example.com/../x",
        "https://api.example.com/%2e%2e/x",
        "https://api.exämple.com",
        "https://api.example.com\\@evil.example",
        "https://.example.com",
        "https://[::1",
        "//api.example.com",
        "https://api.example.com\r\nHost: evil",
    ],
)
def test_a_destination_that_could_be_read_in_two_ways_is_none(url: str) -> None:
    with pytest.raises(AccountInvalid):
        parse_destination(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://[::1]:8080/x", "http://localhost", "https://api.example.com:8443/a/b"])
def test_a_destination_says_itself(url: str) -> None:
    assert str(parse_destination(url)) == url


def test_a_url_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(AccountInvalid) as refused:
        parse_destination("https://me:hunter2hunter2@example.com/x")
    assert "hunter2" not in str(refused.value)


def test_a_secret_instead_of_a_reference_is_refused_without_repeating_it() -> None:
    for text in ("ghp_abcdefghijklmnop", "env://ghp-abcdefghijklmnop", "vault://hunter2hunter2", "file://hunter2hunter2", "x://hunter2"):
        with pytest.raises(AccountInvalid) as refused:
            parse_reference(text)
        assert "ghp" not in str(refused.value)
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["env://FORGE", "file:///etc/nas/token", "systemd://forge.token", "vault://secret/team/forge#token"])
def test_a_reference_says_itself(text: str) -> None:
    assert str(parse_reference(text)) == text


@pytest.mark.parametrize(
    "text", ["vault://secret/../sys#x", "vault://secret//a#x", "vault://secret/a?version=1#x", "vault://secret/a%2fb#x"]
)
def test_a_vault_reference_reaches_what_it_names_and_nothing_else(text: str) -> None:
    with pytest.raises(AccountInvalid):
        parse_reference(text)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "header"}, "header"),
        ({"kind": "header", "header": "authorization"}, "header"),
        ({"kind": "header", "header": "accept"}, "header"),
        ({"kind": "basic"}, "username"),
        ({"kind": "git"}, "username"),
        ({"kind": "basic", "username": "a:b"}, "username"),
        ({"kind": "oauth"}, "kind"),
        ({"name": "../x"}, "name"),
        ({"name": ""}, "name"),
        ({"headers": ["Cookie"]}, "cookie"),
        ({"headers": ["X Y"]}, "set"),
        ({"rules": ["FROB x"]}, "rule"),
        ({"rules": ["GET a/***/b**c**d**e"]}, "GET a"),
        ({"daily": -1}, "budget"),
        ({"origin": "mars"}, "label"),
        ({"authorities": "ca.pem"}, "absolute"),
    ],
)
def test_an_account_that_cannot_be_is_refused_with_the_reason(change: dict[str, object], why: str) -> None:
    with pytest.raises(AccountInvalid, match=why):
        parse_account(FORGE | change)


def test_a_git_account_has_rules_for_fetch_and_push() -> None:
    account = parse_account(FORGE | {"kind": "git", "username": "nas", "rules": ["FETCH org/*"]})
    assert account.kind is AccountKind.GIT


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x",
        "/../x",
        "/a/../../x",
        "/a/./b",
        "/a//b",
        "/a/..",
        "/%2e%2e/x",
        "/%252e%252e/x",
        "/a%2fb",
        "/a%252fb",
        "/a%5cb",
        "/a\\b",
        "/a%00b",
        "/a%0d%0aHost:x",
        "/a b",
        "/a?b",
        "/a#b",
        "/a/..;/b",
        "/ä",
        "//evil.example/x",
        "/%25252525252e/x",
        "/" + "a" * 5000,
    ],
)
def test_a_path_that_a_server_could_read_as_another_is_refused(path: str) -> None:
    with pytest.raises(AccountInvalid):
        check_path(path)


@pytest.mark.parametrize(
    ("path", "decoded"), [("/", ""), ("/a/b", "a/b"), ("/a/", "a/"), ("/a%20b", "a b"), ("/%C3%A4", "ä"), ("/a;v=1/b", "a;v=1/b")]
)
def test_an_ordinary_path_is_taken(path: str, decoded: str) -> None:
    assert check_path(path) == decoded


@given(st.text(alphabet="./%2eEfF5cC;aA\\\0", max_size=24))
def test_no_path_that_is_taken_leaves_the_destination(tail: str) -> None:
    path = "/" + tail
    try:
        check_path(path)
    except AccountInvalid:
        return
    read = path
    for _ in range(6):
        assert "\\" not in read
        assert "\0" not in read
        assert not {".", ".."} & {segment.partition(";")[0] for segment in read.split("/")}
        assert read.count("/") == path.count("/")
        read = unquote(read, errors="surrogateescape")


@given(st.text(max_size=60))
def test_a_destination_that_is_taken_has_the_host_that_a_url_parser_sees(text: str) -> None:
    url = "https://api.example.com" + text
    try:
        destination = parse_destination(url)
    except AccountInvalid:
        return
    assert urlsplit(str(destination)).hostname == destination.host
    assert destination.host == urlsplit(url).hostname

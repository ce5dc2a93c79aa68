from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trust.samples import WHOLE_TREE
from trust.canonical import canonical
from trust.errors import Unauthenticated
from trust.leases import apply_caveat
from trust.model import LEASABLE, BudgetKind, LeaseId, Scope
from trust.policy.patterns import matches_any
from trust.secret import Secret
from trust.tokens import (
    MAX_CAVEATS,
    MAX_LENGTH,
    LeaseToken,
    chain_tail,
    child_id,
    derive,
    encode_lease_token,
    encode_principal_token,
    extend_tail,
    hash_secret,
    narrow_token,
    parse_lease_token,
    parse_principal_token,
    root_tail,
)

KEY = Secret(bytes(range(32)))
ROOT = LeaseId("labc")
PATHS = ["**", "src/**", "src/a/**", "src/ab", "src/*", "docs/*.md", "**/x"]
SAMPLES = [b"", b"src", b"src/a", b"src/ab", b"src/a/x", b"docs/a.md", b"docs/a/x", b"\xff"]
caveats = st.fixed_dictionaries(
    {},
    optional={
        "p": st.lists(st.sampled_from(PATHS), max_size=3),
        "a": st.lists(st.sampled_from(sorted(action.value for action in LEASABLE)), max_size=4),
        "exp": st.integers(0, 3_000),
        "nbf": st.integers(0, 3_000),
        "bud": st.dictionaries(st.sampled_from([kind.value for kind in BudgetKind]), st.integers(0, 99), min_size=1),
        "pur": st.text(max_size=20),
    },
).filter(bool)


def token(*chain: dict[str, Any]) -> str:
    return encode_lease_token(LeaseToken(ROOT, chain, chain_tail(KEY, ROOT, chain)))


def verified(text: str) -> bool:
    try:
        parsed = parse_lease_token(text)
    except Unauthenticated:
        return False
    return chain_tail(KEY, parsed.root, parsed.caveats) == parsed.tail


def spelled(head: str, tail: bytes) -> str:
    return f"anl1.{base64.urlsafe_b64encode(head.encode()).rstrip(b'=').decode()}.{base64.urlsafe_b64encode(tail).rstrip(b'=').decode()}"


@settings(max_examples=400)
@given(st.lists(caveats, max_size=MAX_CAVEATS))
def test_no_chain_of_caveats_ever_widens(chain: list[dict[str, Any]]) -> None:
    scope: Scope = WHOLE_TREE
    for caveat in chain:
        narrower = apply_caveat(scope, caveat)
        assert narrower.actions <= scope.actions
        assert narrower.expires <= scope.expires and narrower.not_before >= scope.not_before
        assert all(narrower.budgets.get(kind, amount + 1) <= amount for kind, amount in scope.budgets.items())
        assert all(matches_any(scope.paths, path) for path in SAMPLES if matches_any(narrower.paths, path))
        scope = narrower


@given(st.lists(caveats, max_size=MAX_CAVEATS - 1), caveats)
def test_a_holder_narrows_offline_to_the_token_the_server_would_make(chain: list[dict[str, Any]], further: dict[str, Any]) -> None:
    assert narrow_token(token(*chain), further) == token(*chain, further)
    assert verified(token(*chain, further))


@given(st.lists(caveats, min_size=1, max_size=4), st.data())
def test_caveats_can_not_be_dropped_reordered_or_edited(chain: list[dict[str, Any]], data: st.DataObject) -> None:
    good = parse_lease_token(token(*chain))
    other = data.draw(st.lists(caveats, max_size=4).filter(lambda each: canonical(each) != canonical(chain)))
    assert not verified(encode_lease_token(LeaseToken(ROOT, tuple(other), good.tail)))
    assert not verified(encode_lease_token(LeaseToken(LeaseId("lother"), good.caveats, good.tail)))


def test_every_changed_character_is_noticed() -> None:
    text = token({"p": ["src/**"], "exp": 99})
    for index, original in enumerate(text):
        for letter in "AZaz09-_.":
            if letter != original:
                assert not verified(text[:index] + letter + text[index + 1 :])
        assert not verified(text[:index] + text[index + 1 :])


@pytest.mark.parametrize(
    "head",
    [
        '["labc", []]',
        '["labc",[]]\n',
        '["labc",[{"exp":1,"exp":2}]]',
        '["labc",[{"nbf":1,"exp":2}]]',
        '["labc",[{"exp":1.0}]]',
        '["labc",[{"exp":1e3}]]',
        '["labc",[{"exp":NaN}]]',
        '["labc",[{"exp":true}]]',
        '["labc",[{"exp":-1}]]',
        '["labc",[{"exp":9007199254740992}]]',
        '["labc",[{"exp":"1"}]]',
        '["labc",[{}]]',
        '["labc",[{"zzz":1}]]',
        '["labc",[[1]]]',
        '["labc",[{"p":"src/**"}]]',
        '["labc",[{"p":["/src"]}]]',
        '["labc",[{"p":["src/../x"]}]]',
        '["labc",[{"a":["merge"]}]]',
        '["labc",[{"a":["administer"]}]]',
        '["labc",[{"a":[1]}]]',
        '["labc",[{"bud":{}}]]',
        '["labc",[{"bud":{"usd":1}}]]',
        '["labc",[{"bud":{"reads":-1}}]]',
        '["labc",{}]',
        "[1,[]]",
        '["labc"]',
        '{"labc":[]}',
        "null",
        "",
        "[" * 3000,
        '["labc",[' + ",".join(['{"exp":1}'] * (MAX_CAVEATS + 1)) + "]]",
        '["labc",[{"who":[]}]]',
        '["labc",[{"who":["a","b","c","d","e"]}]]',
        '["labc",[{"who":["a\\u202eb"]}]]',
        '["labc",[{"who":[" a"]}]]',
        '["labc",[{"who":"a"}]]',
        '["labc",[{"dst":["/x"]}]]',
        '["labc",[{"dst":"x"}]]',
        '["labc",[{"aud":["nfs"]}]]',
        '["labc",[{"aud":["s3","git"]}]]',
        '["labc",[{"aud":["s3","s3"]}]]',
        '["labc",[{"aud":["s3",1]}]]',
        '["labc",[{"cnf":""}]]',
        '["labc",[{"cnf":"x5t:short"}]]',
        '["labc",[{"cnf":"sha:%s"}]]' % ("A" * 43),
        '["labc",[{"cnf":"ssh:%s"}]]' % ("A" * 43),
        '["labc",[{"lab":{}}]]',
        '["labc",[{"lab":{"origin":"outer"}}]]',
        '["labc",[{"lab":{"origin":["owner"]}}]]',
        '["labc",[{"lab":{"secrecy":"public"}}]]',
        '["labc",[{"lab":"public"}]]',
        '["labc",[{"dep":33}]]',
        '["labc",[{"dep":-1}]]',
        '["labc",[{"dep":true}]]',
        '["labc",[{"p":[' + ",".join(['"x"'] * 65) + "]}]]",
        '["labc",[{"p":[' + ",".join(['"x"'] * 33) + ']},{"dst":[' + ",".join(['"x"'] * 32) + "]}]]",
    ],
)
def test_a_token_that_is_not_wholly_understood_is_worth_nothing(head: str) -> None:
    """Even when its tail is right for what it says."""
    try:
        root, chain = json.loads(head)
        tail = root_tail(KEY, LeaseId(str(root)))
        for caveat in chain:
            tail = extend_tail(tail, caveat)
    except (ValueError, TypeError, RecursionError):
        tail = root_tail(KEY, ROOT)
    with pytest.raises(Unauthenticated):
        parse_lease_token(spelled(head, tail.reveal()))


@pytest.mark.parametrize(
    "text", ["", "anl1", "anl1..", "anl1.a.b", "anl2" + token()[4:], token() + "=", token() + ".x", "é" * 9, token() + "A" * MAX_LENGTH]
)
def test_other_text_is_no_lease_token(text: str) -> None:
    assert not verified(text)


@given(st.text(max_size=200))
def test_any_text_is_refused_as_unauthenticated(text: str) -> None:
    for parse in (parse_lease_token, parse_principal_token):
        with pytest.raises(Unauthenticated):
            parse(text)
        with pytest.raises(Unauthenticated):
            parse(f"anl1.{text}.{text}" if parse is parse_lease_token else f"nat1.{text}.{text}=")


def test_another_key_verifies_nothing() -> None:
    parsed = parse_lease_token(token({"exp": 9}))
    assert chain_tail(Secret(bytes(32)), parsed.root, parsed.caveats) != parsed.tail


def test_sibling_paths_do_not_narrow_into_each_other() -> None:
    scope = apply_caveat(Scope(("proj/a/**",), LEASABLE, 0, 9), {"p": ["proj/ab/**"]})
    assert scope.paths == ()


def test_a_token_without_its_tail_and_a_derived_secret_do_not_give_the_token_away() -> None:
    tail = parse_lease_token(token()).tail
    secrets = {derive(tail, purpose).reveal() for purpose in ("s3-secret-v1", "basic-v1")} | {
        tail.reveal(),
        extend_tail(tail, {"exp": 1}).reveal(),
    }
    assert len(secrets) == 4


def test_a_child_is_named_by_its_caveats() -> None:
    assert child_id(ROOT, ()) == ROOT
    one, two = child_id(ROOT, ({"exp": 1},)), child_id(ROOT, ({"exp": 1}, {"exp": 1}))
    assert one.startswith("labc~") and len({one, two, ROOT}) == 3


def test_a_principal_token_is_kept_only_as_a_hash() -> None:
    secret = Secret(b"s" * 32)
    text = encode_principal_token("t1", secret)  # type: ignore[arg-type]
    assert parse_principal_token(text) == ("t1", secret)
    assert hash_secret(secret).reveal() not in (secret.reveal(), b"") and len(hash_secret(secret).reveal()) == 32


def test_the_errors_of_tokens_quote_no_token() -> None:
    text = token({"exp": 9})[:-1]
    with pytest.raises(Unauthenticated) as raised:
        parse_lease_token(text)
    assert text.split(".")[1] not in str(raised.value) and text.split(".")[2] not in str(raised.value)

"""What a JWT says: believed to the letter or not at all, and never more than was declared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasd.errors import Misconfigured
from nasd.identities.claims import LONGEST, SKEW, Unbelievable, check_header, judge_claims
from nasd.identities.issuers import Issuer, read_issuer, read_issuers
from nasd.identities.oidc import MAX_LENGTH, read_unproven

NOW = 1_800_000_000
CORP = Issuer(
    "corp",
    "https://id.example",
    "https://nas.example",
    clients=("nas", "robot"),
    principal="preferred_username",
    prefix="corp-",
    subjects={"s-1": "owner"},
    attributes={"department": "dept"},
    roles_claim="groups",
    roles={"nas-admins": "owner", "nas-readers": "auditor"},
)
GOOD: dict[str, Any] = {
    "iss": "https://id.example",
    "aud": ["https://other.example", "https://nas.example"],
    "azp": "nas",
    "sub": "s-7",
    "preferred_username": "ana",
    "iat": NOW - 10,
    "exp": NOW + 600,
    "dept": "accounts",
    "phone": "not declared",
    "groups": ["nas-admins", "drivers"],
}


def test_only_what_was_declared_leaves_a_token() -> None:
    assertion = judge_claims(CORP, GOOD, NOW)
    assert (assertion.name, assertion.subject, assertion.roles) == ("corp-ana", "s-7", ("owner",))
    assert assertion.attributes == {"department": "accounts"}
    assert (assertion.made, assertion.until) == (NOW - 10, NOW + 600 + SKEW)


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://id.example/"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "https://nas.example/"},
        {"aud": []},
        {"aud": None},
        {"aud": {"https://nas.example": 1}},
        {"azp": "somebody"},
        {"azp": "nas", "client_id": "somebody"},
        {"azp": None},
        {"exp": NOW - SKEW},
        {"exp": None},
        {"exp": True},
        {"exp": "9999999999"},
        {"exp": float("nan")},
        {"exp": NOW + LONGEST},
        {"iat": NOW + SKEW + 1},
        {"iat": None},
        {"nbf": NOW + SKEW + 1},
        {"sub": ""},
        {"sub": None},
        {"sub": ["s-7"]},
        {"sub": "s" * 256},
        {"preferred_username": None},
        {"preferred_username": "ana\n"},
        {"preferred_username": {"$ne": ""}},
    ],
)
def test_a_token_that_is_not_wholly_right_says_nothing(change: dict[str, Any]) -> None:
    with pytest.raises(Unbelievable):
        judge_claims(CORP, GOOD | change, NOW)


def test_what_a_declared_service_gets_for_itself_is_about_a_service() -> None:
    declared = Issuer("corp", CORP.issuer, CORP.audience, clients=("nas", "robot"), services=("robot",))
    assert judge_claims(declared, GOOD, NOW).kind == "human"
    assert judge_claims(declared, GOOD | {"azp": "robot"}, NOW).kind == "service"
    assert judge_claims(declared, GOOD | {"azp": "nas", "client_id": "robot"}, NOW).kind == "service"


def test_without_azp_a_token_counts_only_where_no_program_was_declared() -> None:
    claims = {name: value for name, value in GOOD.items() if name != "azp"}
    with pytest.raises(Unbelievable):
        judge_claims(CORP, claims, NOW)
    anyone = Issuer("corp", CORP.issuer, CORP.audience)
    assert judge_claims(anyone, claims, NOW).name == "s-7"


def test_clocks_may_differ_by_the_skew_and_no_more() -> None:
    assert judge_claims(CORP, GOOD | {"exp": NOW - SKEW + 1}, NOW)
    assert judge_claims(CORP, GOOD | {"iat": NOW + SKEW, "nbf": NOW + SKEW}, NOW)


def test_a_token_that_answers_another_question_is_refused() -> None:
    with pytest.raises(Unbelievable):
        judge_claims(CORP, GOOD | {"nonce": "mine"}, NOW, nonce="yours")
    with pytest.raises(Unbelievable):
        judge_claims(CORP, GOOD, NOW, nonce="yours")
    assert judge_claims(CORP, GOOD | {"nonce": "mine"}, NOW, nonce="mine")


def test_a_declared_subject_is_the_principal_that_was_declared_whatever_it_calls_itself() -> None:
    assert judge_claims(CORP, GOOD | {"sub": "s-1", "preferred_username": "somebody"}, NOW).name == "owner"
    assert judge_claims(CORP, GOOD | {"preferred_username": "owner"}, NOW).name == "corp-owner"


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "RS512"},
        {"alg": ["RS256"]},
        {},
        {"alg": "RS256", "crit": ["exp"]},
        {"alg": "RS256", "crit": []},
        {"alg": "RS256", "typ": "logout+jwt"},
        {"alg": "RS256", "typ": "secevent+jwt"},
    ],
)
def test_a_header_of_another_form_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(Unbelievable):
        check_header(CORP, header)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(GOOD)), json_values)
def test_any_value_of_any_claim_is_judged_and_never_gives_more_roles_than_were_declared(name: str, value: object) -> None:
    try:
        assertion = judge_claims(CORP, GOOD | {name: value}, NOW)
    except Unbelievable:
        return
    assert set(assertion.roles) <= {"owner", "auditor"}
    assert set(assertion.attributes) <= {"department"}
    assert assertion.name.startswith("corp-") or value == "s-1"


@given(st.text(max_size=60) | st.text("eyJ.=-_ab0", max_size=40))
def test_any_text_is_a_jwt_or_none(text: str) -> None:
    try:
        header, claims = read_unproven(text)
    except Unbelievable:
        return
    assert isinstance(header, dict)
    assert isinstance(claims, dict)


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c.d", "e30.e30." + "x" * MAX_LENGTH, "eyJhIjoxLCJhIjoyfQ.e30.x", "W10.e30.x"])
def test_what_is_no_jwt_is_none(text: str) -> None:
    with pytest.raises(Unbelievable):
        read_unproven(text)


WHOLE = {"name": "corp", "issuer": "https://id.example", "audience": "nas"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"isuer": "x"}, "did you mean 'issuer'"),
        ({"audience": ""}, "audience is missing"),
        ({"issuer": "http://id.example"}, "no https url"),
        ({"issuer": "https://user@id.example"}, "no https url"),
        ({"issuer": "https://id.example?x=1"}, "no https url"),
        ({"name": "two words"}, "letters, digits"),
        ({"kind": "agent"}, "human or service"),
        ({"algorithms": ["HS256"]}, "'HS256' is not taken"),
        ({"algorithms": ["none"]}, "'none' is not taken"),
        ({"algorithms": []}, "'none' is not taken"),
        ({"attributes": {"roles": "groups"}}, "set otherwise"),
        ({"roles": {"a": "b"}}, "belong together"),
        ({"create": "yes"}, "true or false"),
        ({"clients": "nas"}, "a list of texts"),
        ({"subjects": {"a": 1}}, "a table of texts"),
        ({"principal": 1}, "expected text"),
    ],
)
def test_an_issuer_that_is_declared_wrongly_is_refused_at_the_start_and_told_why(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        read_issuer(WHOLE | change)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_issuers_travel_to_other_processes_as_they_are_and_are_declared_once() -> None:
    assert read_issuers([WHOLE | {"clients": ["nas"]}]) == (Issuer("corp", "https://id.example", "nas", ("nas",)),)
    for twice in ({"name": "other"}, {"issuer": "https://other.example"}):
        with pytest.raises(Misconfigured):
            read_issuers([WHOLE, WHOLE | twice])
    with pytest.raises(Misconfigured):
        read_issuers("corp")

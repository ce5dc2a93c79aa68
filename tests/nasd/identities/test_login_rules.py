"""What a browser brings back counts only for the login that sent it out, and only what was made for the appliance is sent there."""

from __future__ import annotations

import base64
import hashlib
import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from interfaces.faults import Fault, Kind
from nasd.identities.login import Portal, authorization_url, by_device, choose_token, make_attempt, read_callback

CORP = Portal(
    "corp", "https://id.example", "https://nas.example", "nas", "openid", "https://id.example/auth?x=1", "https://id.example/token"
)
ATTEMPT = make_attempt(1234)


def test_a_login_asks_for_exactly_itself() -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(authorization_url(CORP, ATTEMPT)).query).items()}
    challenge = base64.urlsafe_b64encode(hashlib.sha256(ATTEMPT.verifier.encode()).digest()).rstrip(b"=").decode()
    assert asked == {
        "x": "1",
        "response_type": "code",
        "client_id": "nas",
        "redirect_uri": "http://127.0.0.1:1234/callback",
        "scope": "openid",
        "state": ATTEMPT.state,
        "nonce": ATTEMPT.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": "https://nas.example",
    }
    assert ATTEMPT.verifier not in authorization_url(CORP, ATTEMPT)
    assert make_attempt(1234) != ATTEMPT


def test_the_code_of_our_own_login_counts() -> None:
    assert read_callback(CORP, ATTEMPT, urlencode({"code": "c", "state": ATTEMPT.state, "iss": CORP.issuer})) == "c"
    assert read_callback(CORP, ATTEMPT, urlencode({"code": "c", "state": ATTEMPT.state})) == "c"


@pytest.mark.parametrize(
    "query",
    [
        "",
        urlencode({"code": "c"}),
        urlencode({"code": "c", "state": "another"}),
        urlencode({"code": "c", "state": ATTEMPT.state, "iss": "https://evil.example"}),
        urlencode([("code", "c"), ("state", ATTEMPT.state), ("state", ATTEMPT.state)]),
        urlencode([("code", "c"), ("code", "d"), ("state", ATTEMPT.state)]),
        urlencode({"error": "access_denied", "state": ATTEMPT.state}),
    ],
    ids=["nothing", "no state", "another state", "another issuer", "two states", "two codes", "refused"],
)
def test_what_belongs_to_another_login_or_was_refused_counts_for_nothing(query: str) -> None:
    with pytest.raises(Fault) as caught:
        read_callback(CORP, ATTEMPT, query)
    assert caught.value.kind is Kind.DENIED


def jwt_of(**claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'RS256'})}.{part(claims)}.x"


def test_only_a_token_for_the_appliance_leaves_for_it() -> None:
    ours, others = jwt_of(aud=["https://nas.example"], nonce="n"), jwt_of(aud="https://mail.example")
    assert choose_token(CORP, {"access_token": ours, "id_token": others}, "n") == ours
    assert choose_token(CORP, {"access_token": "opaque", "id_token": ours}, "n") == ours
    with pytest.raises(Fault) as caught:
        choose_token(CORP, {"access_token": others, "id_token": others}, "n")
    assert caught.value.kind is Kind.INVALID
    with pytest.raises(Fault) as caught:
        choose_token(CORP, {"access_token": "opaque", "id_token": ours}, "another")
    assert caught.value.kind is Kind.DENIED


def test_an_issuer_without_a_login_for_devices_says_so() -> None:
    with pytest.raises(Fault) as caught:
        by_device(CORP, lambda *_: None)
    assert caught.value.kind is Kind.UNSUPPORTED

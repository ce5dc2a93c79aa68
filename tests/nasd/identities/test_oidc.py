"""Issuers: a real one is believed, its keys rotate, it goes away and comes back; what it did not sign is nobody's."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from nasd.identities import keysets
from nasd.identities.claims import Unbelievable
from nasd.identities.issuers import Issuer
from nasd.identities.keysets import PAUSE, STALE_SECONDS, Keys, Unreachable, fetch_json, lifetime_of, read_keys
from nasd.identities.oidc import Assertions
from tests.nasd.identities.real_issuer import AUDIENCE, free_port, fresh_keys, running_issuer

ALGORITHMS = ("RS256", "ES256")


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def corp(url: str) -> Issuer:
    return Issuer("corp", url, AUDIENCE, clients=("robot",), attributes={"department": "department"}, algorithms=ALGORITHMS)


@pytest.mark.parametrize(("kind", "algorithm"), [("RSA", "RS256"), ("EC", "ES256")])
def test_a_real_issuer_is_believed_what_it_says_of_a_program(kind: str, algorithm: str) -> None:
    with running_issuer(free_port(), fresh_keys(kind), algorithm=algorithm) as real:
        assertions = Assertions([corp(real.url)], Clock())
        _, assertion = assertions.believe(real.robot_token(), int(time.time()))
        assert (assertion.name, dict(assertion.attributes)) == ("robot", {"department": "machines"})


def test_keys_rotate_and_what_was_signed_with_a_key_that_is_gone_ends_when_the_set_is_asked_for_again() -> None:
    port, clock, first, second = free_port(), Clock(), fresh_keys(kid="one"), fresh_keys(kid="two")
    now = int(time.time())
    with running_issuer(port, first) as real:
        assertions = Assertions([corp(real.url)], clock)
        former = real.robot_token()
        unseen = real.robot_token()
        assertions.believe(former, now)
    clock.now += PAUSE
    with running_issuer(port, second) as real:
        later = real.robot_token()
        assertions.believe(later, now)
        with pytest.raises(Unbelievable, match="no such key"):
            assertions.believe(unseen, now)


def test_an_issuer_that_is_away_is_told_apart_from_a_wrong_token_and_its_known_keys_count_on() -> None:
    port, clock, keys = free_port(), Clock(), fresh_keys()
    now = int(time.time())
    with running_issuer(port, keys) as real:
        assertions = Assertions([corp(real.url)], clock)
        tokens = [real.robot_token() for _ in range(3)]
        assertions.believe(tokens[0], now)
        fresh = Assertions([corp(real.url)], clock)
    clock.now += 2 * 3600
    assertions.believe(tokens[1], now)
    with pytest.raises(Unreachable):
        fresh.believe(tokens[1], now)
    clock.now += STALE_SECONDS
    with pytest.raises(Unreachable):
        assertions.believe(tokens[2], now)
    with running_issuer(port, keys):
        clock.now += PAUSE
        assertions.believe(tokens[2], now)


# -- an issuer that is made up here, to say what no honest one says ---------------------------------------------------


class Page(BaseHTTPRequestHandler):
    """Answers with what the test put there, and counts."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        status, body, headers = self.server.pages.get(self.path, (404, b"", {}))  # type: ignore[attr-defined]
        time.sleep(self.server.pause)  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def pages(keys: list[Mapping[str, Any]]) -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    url = f"http://127.0.0.1:{server.server_port}"
    server.asked, server.pause = [], 0.0  # type: ignore[attr-defined]
    server.url = url  # type: ignore[attr-defined]
    server.pages = {  # type: ignore[attr-defined]
        "/.well-known/openid-configuration": (200, json.dumps({"issuer": url, "jwks_uri": f"{url}/keys"}).encode(), {}),
        "/keys": (200, json.dumps({"keys": keys}).encode(), {}),
    }
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


RSA, OTHER, CURVE = RSAKey.generate_key(2048), RSAKey.generate_key(2048), ECKey.generate_key("P-256")
NOW = 1_800_000_000


def public(key: RSAKey | ECKey, kid: str, **more: object) -> Mapping[str, Any]:
    return {**key.as_dict(private=False), "kid": kid, **more}


def token_of(url: str, key: Any = RSA, header: Mapping[str, Any] | None = None, **claims: object) -> str:
    said = {"iss": url, "aud": AUDIENCE, "azp": "robot", "sub": "s", "iat": NOW, "exp": NOW + 600, **claims}
    told: dict[str, Any] = {"alg": "RS256", "kid": "one", **(header or {})}
    return str(jwt.encode(told, said, key, algorithms=[told["alg"]]))


def test_what_the_issuer_did_not_sign_is_nobodys() -> None:
    with pages(
        [public(RSA, "one"), public(CURVE, "curve"), public(OTHER, "for-rs512", alg="RS512"), public(OTHER, "enc", use="enc")]
    ) as server:
        url = server.url
        assertions = Assertions([corp(url)], Clock())
        good = token_of(url)
        assertions.believe(good, NOW)
        head, body, signature = good.split(".")
        changed = base64.urlsafe_b64encode(base64.urlsafe_b64decode(body + "==").replace(b'"s"', b'"t"')).decode().rstrip("=")
        nothing = base64.urlsafe_b64encode(b'{"alg":"none","kid":"one"}').decode().rstrip("=")
        # The public key as the secret of an HMAC: what pinning the algorithm is for.
        shared = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').decode().rstrip("=")
        forged = hmac.digest(RSA.as_pem(private=False), f"{shared}.{body}".encode(), "sha256")
        confused = f"{shared}.{body}.{base64.urlsafe_b64encode(forged).decode().rstrip('=')}"
        wrong = [
            f"{head}.{changed}.{signature}",
            f"{head}.{body}.{signature[:-4]}AAAA",
            f"{nothing}.{body}.",
            confused,
            token_of(url, OTHER),
            token_of(url, OTHER, {"jwk": OTHER.as_dict(private=False)}),
            token_of(url, CURVE, {"alg": "ES256", "kid": "one"}),
            token_of(url, RSA, {"kid": "curve"}),
            token_of(url, OTHER, {"kid": "for-rs512"}),
            token_of(url, OTHER, {"kid": "enc"}),
            token_of(url, RSA, {"kid": "absent"}),
            token_of(url, RSA, {"kid": ""}),
            token_of("http://127.0.0.1:1"),
        ]
        for token in wrong:
            with pytest.raises(Unbelievable):
                assertions.believe(token, NOW)


def test_strangers_who_invent_keys_make_us_ask_the_issuer_once_in_a_while() -> None:
    with pages([public(RSA, "one")]) as server:
        clock = Clock()
        assertions = Assertions([corp(server.url)], clock)
        for number in range(50):
            with pytest.raises(Unbelievable):
                assertions.believe(token_of(server.url, OTHER, {"kid": f"invented {number}"}), NOW)
        assert server.asked.count("/keys") == 1
        clock.now += PAUSE
        for number in range(50):
            with pytest.raises(Unbelievable):
                assertions.believe(token_of(server.url, OTHER, {"kid": f"invented {number}"}), NOW)
        assert server.asked.count("/keys") == 2


def test_a_token_that_can_be_refused_without_a_key_asks_the_issuer_nothing() -> None:
    with pages([public(RSA, "one")]) as server:
        assertions = Assertions([corp(server.url)], Clock())
        for token in (token_of(server.url, exp=NOW - 900, iat=NOW - 1000), token_of(server.url, aud="https://other.example")):
            with pytest.raises(Unbelievable):
                assertions.believe(token, NOW)
        assert server.asked == []


def test_many_who_wait_for_a_slow_issuer_ask_once_and_only_a_few_of_them_hold_a_thread() -> None:
    with pages([public(RSA, "one")]) as server:
        server.pause = 0.3
        keys = Keys(corp(server.url), fetch_json, time.monotonic)

        def find(_: int) -> str:
            try:
                return "found" if keys.find("one") else "none"
            except Unreachable:
                return "unreachable"

        with ThreadPoolExecutor(20) as pool:
            told = list(pool.map(find, range(20)))
        assert server.asked.count("/keys") == 1
        assert told.count("found") == keysets.WAITING
        assert told.count("unreachable") == 20 - keysets.WAITING


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/keys", (500, b"", {})),
        ("/keys", (302, b"", {"location": "/elsewhere"})),
        ("/keys", (200, b"[" * 100_000, {})),
        ("/keys", (200, b'{"keys": 1}', {})),
        ("/keys", (200, b" " * ((1 << 20) + 1), {})),
        ("/.well-known/openid-configuration", (200, b'{"issuer": "https://evil.example", "jwks_uri": "https://evil.example"}', {})),
        ("/.well-known/openid-configuration", (200, b"{}", {})),
        ("/.well-known/openid-configuration", (404, b"", {})),
    ],
)
def test_an_answer_that_is_none_is_an_issuer_that_cannot_be_reached(path: str, page: tuple[int, bytes, Mapping[str, str]]) -> None:
    with pages([public(RSA, "one")]) as server:
        server.pages[path] = page
        server.pages["/elsewhere"] = (200, json.dumps({"keys": [public(RSA, "one")]}).encode(), {})
        with pytest.raises(Unreachable):
            Assertions([corp(server.url)], Clock()).believe(token_of(server.url), NOW)


def test_keys_are_fresh_as_long_as_the_issuer_says_within_bounds() -> None:
    for text, seconds in (("max-age=600", 600), ("public, max-age=1", 60), ("max-age=99999999", 86400), ("no-store", 3600), ("", 3600)):
        assert lifetime_of({"cache-control": text}) == seconds


def test_secret_halves_and_shared_secrets_in_a_published_set_are_left_there() -> None:
    found = read_keys({"keys": [dict(RSA.as_dict(private=True), kid="one"), {"kty": "oct", "k": "AAAA", "kid": "two"}, 7, {"kty": "RSA"}]})
    assert [(key.kid, key.is_private) for key in found.keys] == [("one", False)]

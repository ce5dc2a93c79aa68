"""Logging in by an issuer, on the side of the person: in a browser of this machine, or with a code on any other device.

1. The browser comes back to a port of the loopback that was opened for this one login, with the state that only this login knows; what
   a code is worth, only the holder of the verifier gets (PKCE, S256). No secret of a client is needed, and none is kept.
2. The answer has to come from the issuer that was asked (``iss``, RFC 9207) and to answer this question (``nonce``).
3. What goes to the appliance is the token that was made for it; a token for anybody else stays here and is forgotten.
4. Waiting ends: for a browser after `BROWSER_SECONDS`, for a device when the issuer says so.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from interfaces.faults import Fault, Kind
from nasd.identities.claims import Unbelievable
from nasd.identities.issuers import is_reachable_safely
from nasd.identities.keysets import DISCOVERY, Unreachable, fetch_json
from nasd.identities.oidc import read_unproven

BROWSER_SECONDS = 300.0
_SECONDS = 15.0
_LONGEST_POLL = 900.0
_PAGE = b"<!doctype html><title>Agent NAS</title><p>That is all. You can close this page.</p>"
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True, slots=True)
class Portal:
    """An issuer as somebody who logs in needs it. `device` is empty where it has no such way."""

    name: str
    issuer: str
    audience: str
    client: str
    scopes: str
    authorization: str
    token: str
    device: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One login: where the browser comes back to, and what only this login knows."""

    redirect: str
    state: str
    nonce: str
    verifier: str


def find_portal(declared: Mapping[str, Any]) -> Portal:
    """Return the issuer that an appliance declares, with its addresses. Raises `Kind.UNAVAILABLE`, `Kind.INVALID`."""
    issuer = str(declared["issuer"])
    if not declared.get("client"):
        raise Fault(Kind.INVALID, f"{declared['name']} declares no program to log in by", hint="the owner sets `clients` of the issuer")
    try:
        found, _ = fetch_json(issuer.rstrip("/") + DISCOVERY)
    except Unreachable as error:
        raise Fault(Kind.UNAVAILABLE, f"{declared['name']} does not answer: {error}", hint="repeat in a moment") from error
    places = [str(found.get(f"{name}_endpoint", "")) for name in ("authorization", "token", "device_authorization")]
    if found.get("issuer") != issuer or not all(map(is_reachable_safely, places[:2])):
        raise Fault(Kind.UNAVAILABLE, f"{issuer} does not answer as the issuer it is called", hint="the owner looks at its settings")
    scopes = " ".join(declared.get("scopes") or ["openid"])
    return Portal(
        str(declared["name"]),
        issuer,
        str(declared["audience"]),
        str(declared["client"]),
        scopes,
        places[0],
        places[1],
        places[2] if is_reachable_safely(places[2]) else "",
    )


def make_attempt(port: int) -> Attempt:
    """Return a fresh login that comes back to a port of the loopback."""
    return Attempt(f"http://127.0.0.1:{port}/callback", *(secrets.token_urlsafe(32) for _ in range(3)))


def authorization_url(portal: Portal, attempt: Attempt) -> str:
    """Return where the browser goes first."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": portal.client,
        "redirect_uri": attempt.redirect,
        "scope": portal.scopes,
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **_resource(portal),
    }
    separator = "&" if urlsplit(portal.authorization).query else "?"
    return f"{portal.authorization}{separator}{urlencode(asked)}"


def by_browser(portal: Portal, show: Callable[[str], None]) -> str:
    """Return the token that a login in a browser gives; `show` opens or prints an address. Raises `Kind.DENIED`, `Kind.UNAVAILABLE`."""
    with _Callback() as callback:
        attempt = make_attempt(callback.server_port)
        show(authorization_url(portal, attempt))
        code = read_callback(portal, attempt, callback.wait(BROWSER_SECONDS))
    answer = _post(
        portal.token,
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect,
            "client_id": portal.client,
            "code_verifier": attempt.verifier,
            **_resource(portal),
        },
    )
    return choose_token(portal, answer, attempt.nonce)


def by_device(portal: Portal, show: Callable[[str, str], None], sleep: Callable[[float], None] = time.sleep) -> str:
    """Return the token that a login on another device gives; `show` tells a person address and code. Raises as `by_browser`."""
    if not portal.device:
        raise Fault(Kind.UNSUPPORTED, f"{portal.name} has no login for devices", hint="leave --device out")
    begun = _post(portal.device, {"client_id": portal.client, "scope": portal.scopes, **_resource(portal)})
    show(str(begun.get("verification_uri_complete") or begun.get("verification_uri")), str(begun.get("user_code")))
    pause, left = float(begun.get("interval", 5)), min(float(begun.get("expires_in", 300)), _LONGEST_POLL)
    asked = {"grant_type": _DEVICE_GRANT, "device_code": str(begun.get("device_code")), "client_id": portal.client, **_resource(portal)}
    while left > 0:
        sleep(pause)
        left -= pause
        answer = _post(portal.token, asked, patient=True)
        match answer.get("error"):
            case None:
                return choose_token(portal, answer, "")
            case "slow_down":
                pause += 5
            case "authorization_pending":
                continue
            case error:
                raise Fault(Kind.DENIED, f"{portal.name} says {error}", hint="begin again")
    raise Fault(Kind.EXPIRED, "nobody logged in in time", hint="begin again: nas login --device")


def read_callback(portal: Portal, attempt: Attempt, query: str) -> str:
    """Return the code that the browser brought back. Raises `Kind.DENIED` for what belongs to no login of ours, or was refused."""
    told = {name: values[0] for name, values in parse_qs(query, max_num_fields=32).items() if len(values) == 1}
    if not secrets.compare_digest(told.get("state", "").encode(), attempt.state.encode()):
        raise Fault(Kind.DENIED, "the browser came back with another login", hint="begin again: nas login")
    if told.get("iss", portal.issuer) != portal.issuer:
        raise Fault(Kind.DENIED, "another issuer answered", hint="begin again, and look at the address in the browser")
    if "code" not in told:
        raise Fault(Kind.DENIED, f"{portal.name} says {told.get('error', 'nothing')[:80]}", hint="begin again: nas login")
    return told["code"]


def choose_token(portal: Portal, answer: Mapping[str, Any], nonce: str) -> str:
    """Return the token of an answer that was made for the appliance. Raises `Kind.INVALID` where there is none, `Kind.DENIED`."""
    for name in ("access_token", "id_token"):
        token = str(answer.get(name, ""))
        try:
            _, claims = read_unproven(token)
        except Unbelievable:
            continue
        audience = claims.get("aud")
        if portal.audience not in (audience if isinstance(audience, list) else [audience]):
            continue
        if name == "id_token" and nonce and claims.get("nonce") != nonce:
            raise Fault(Kind.DENIED, "the answer is to another question", hint="begin again: nas login")
        return token
    raise Fault(
        Kind.INVALID,
        f"{portal.name} gave no token for {portal.audience}",
        hint="the issuer has to know that audience as a resource, or the owner sets `audience` to the client's id",
    )


def _resource(portal: Portal) -> dict[str, str]:
    """Return the request for a token for the appliance (RFC 8707), where its audience is an address."""
    return {"resource": portal.audience} if urlsplit(portal.audience).scheme else {}


def _post(url: str, form: Mapping[str, str], *, patient: bool = False) -> Mapping[str, Any]:
    """Return the answer to a form. Raises `Kind.UNAVAILABLE`, and `Kind.DENIED` for a refusal (`patient`: that is returned)."""
    import httpx2

    try:
        answer = httpx2.post(url, data=dict(form), timeout=_SECONDS, trust_env=False, headers={"accept": "application/json"})
        document = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise Fault(Kind.UNAVAILABLE, f"{urlsplit(url).hostname} does not answer as an issuer does", hint="repeat in a moment") from error
    if not isinstance(document, dict):
        raise Fault(Kind.UNAVAILABLE, f"{urlsplit(url).hostname} does not answer as an issuer does", hint="repeat in a moment")
    if answer.status_code >= 400 and not patient:
        raise Fault(Kind.DENIED, f"the issuer says {str(document.get('error', answer.status_code))[:80]}", hint="begin again: nas login")
    return document


class _Answer(http.server.BaseHTTPRequestHandler):
    """Takes the one request that a login waits for."""

    timeout = _SECONDS

    def do_GET(self) -> None:
        """Take what the browser brings back."""
        parts = urlsplit(self.path)
        found = parts.path == "/callback"
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(_PAGE) if found else 0))
        self.send_header("cache-control", "no-store")
        self.end_headers()
        if found:
            self.wfile.write(_PAGE)
            assert isinstance(self.server, _Callback)
            self.server.query = parts.query

    def log_message(self, *arguments: object) -> None:
        """Say nothing: the address holds the code."""


class _Callback(http.server.HTTPServer):
    """A port of the loopback that a browser comes back to."""

    query: str | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)

    def wait(self, seconds: float) -> str:
        """Return the query of the first visit. Raises `Kind.EXPIRED`."""
        until = time.monotonic() + seconds
        while self.query is None:
            self.timeout = until - time.monotonic()
            if self.timeout <= 0:
                raise Fault(Kind.EXPIRED, "no browser came back in time", hint="begin again: nas login, or nas login --device")
            self.handle_request()
        return self.query

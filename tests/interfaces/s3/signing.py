"""Requests signed by botocore as the door would receive them, and a `Control` that knows one key pair."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from interfaces.faults import Fault, Kind
from interfaces.port import INSIDE, Arrival
from interfaces.web.asgi import Message, Request

ACCESS_KEY = "ANLTESTTESTTESTTEST1"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HOST = "127.0.0.1:8420"
CREDENTIALS = Credentials(ACCESS_KEY, SECRET)


@dataclass(frozen=True)
class Known:
    """The caller behind the key pair."""

    principal: str = "owner"
    lease: str = ""


class SecretSigner:
    """Signs with a secret, the key derived as the specification of the signature has it."""

    def __init__(self, secret: str, day: str, region: str, service: str) -> None:
        key = f"AWS4{secret}".encode()
        for part in (day, region, service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._key = key
        self.caller = Known()
        self.refused = 0

    def sign(self, text: bytes) -> str:
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def refuse(self) -> None:
        self.refused += 1


class OneKeyPair:
    """The part of `Control` that signatures ask."""

    def __init__(self, access_key: str = ACCESS_KEY, secret: str = SECRET) -> None:
        self._access_key, self._secret = access_key, secret
        self.asked: list[tuple[str, str]] = []

    def signer(self, access_key: str, session_token: str, day: str, region: str, service: str, arrival: Arrival = INSIDE) -> SecretSigner:
        self.asked.append((access_key, session_token))
        if access_key != self._access_key:
            raise Fault(Kind.UNAUTHENTICATED, "no such key")
        return SecretSigner(self._secret, day, region, service)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def received(method: str, url: str, headers: Mapping[str, str] | list[tuple[str, str]]) -> Request:
    """Return the request as a server hands it to the door."""
    parts = urlsplit(url)
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    fields = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    if not any(name == b"host" for name, _ in fields):
        fields.insert(0, (b"host", parts.netloc.encode()))
    scope = {
        "type": "http",
        "method": method,
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "headers": fields,
        "scheme": parts.scheme,
    }
    return Request(scope, _nothing, "request-1")


def sign_header(request: AWSRequest, credentials: Credentials = CREDENTIALS, region: str = "us-east-1") -> Request:
    """Sign in the header with botocore."""
    S3SigV4Auth(credentials, "s3", region).add_auth(request)
    return _prepared(request)


def sign_query(request: AWSRequest, expires: int = 600, credentials: Credentials = CREDENTIALS, region: str = "us-east-1") -> Request:
    """Sign in the query with botocore."""
    S3SigV4QueryAuth(credentials, "s3", region, expires=expires).add_auth(request)
    return _prepared(request)


def time_of(request: Request) -> float:
    """Return the time a request says it was signed."""
    text = request.headers.get("x-amz-date") or request.parameters["X-Amz-Date"]
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def changed(request: Request, **changes: object) -> Request:
    """Return a request with parts of its scope replaced."""
    return Request({**request.scope, **changes}, request.receive, request.request_id)


def _prepared(request: AWSRequest) -> Request:
    prepared = request.prepare()
    headers = [(str(name), value.decode("latin-1") if isinstance(value, bytes) else str(value)) for name, value in prepared.headers.items()]
    return received(prepared.method, prepared.url, headers)

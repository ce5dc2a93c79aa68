"""Who sent a request: AWS Signature Version 4, in the header or in the query.

1. Only a signature over this very method, path, query and these very headers speaks for anybody. The secret never leaves the `Signer`.
2. A signature covers ``host`` and every ``x-amz-`` header that was sent: what was not signed could have been added on the way.
3. A header signature is good for 15 minutes around its time; a query (presigned) one from its time, or 15 minutes before, for the
   seconds it states, at most seven days.
4. What cannot be believed is told in Amazon's words; an unknown key and a wrong signature differ only as Amazon's do.
5. Anonymous requests and signatures of version 2 are refused.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from interfaces.port import Caller, Control, Signer
from interfaces.s3.canonical import ALGORITHM, TERMINATOR, Scope, canonical_requests, string_to_sign
from interfaces.s3.chunks import Chain
from interfaces.s3.faults import S3Fault
from interfaces.s3.payload import UNSIGNED, Payload
from interfaces.web.asgi import Request
from interfaces.web.credentials import read_arrival

MAX_SKEW = 900
MAX_EXPIRY = 604_800

_TIMESTAMP = "%Y%m%dT%H%M%SZ"
_ISO = "%Y-%m-%dT%H:%M:%SZ"
_SIGNATURE_PARAMETER = b"X-Amz-Signature"
_QUERY_NEEDS = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Expires")
_UNSIGNED_ALLOWED = frozenset({"x-amz-content-sha256"})
"""What stands for the body is part of what is signed, whether its header is or not."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Whom a request speaks for, and how its body is told to be genuine."""

    caller: Caller
    payload: Payload
    presigned: bool


@dataclass(frozen=True, slots=True)
class Authorization:
    """What a request says of its own signature; nothing of it is believed yet. `expires` is in seconds, 0 in a header signature."""

    access_key: str
    token: str
    scope: Scope
    timestamp: str
    signed_headers: tuple[str, ...]
    signature: str
    payload: str
    expires: int = 0

    @property
    def presigned(self) -> bool:
        """Tell whether the signature is in the query."""
        return self.expires > 0


def authenticate(control: Control, request: Request, now: float) -> Signed:
    """Return whom a request speaks for at the time `now` (seconds of the epoch).

    Raises `S3Fault`, and what `Control.signer` and `Signer.refuse` raise.
    """
    authorization = read_authorization(request.headers, request.parameters)
    check_time(authorization, now)
    check_coverage(authorization, request.headers)
    scope = authorization.scope
    arrival = read_arrival(request, "s3")
    signer = control.signer(authorization.access_key, authorization.token, scope.day, scope.region, scope.service, arrival)
    _check_signature(authorization, request, signer)
    chain = Chain(signer, authorization.timestamp, scope, authorization.signature)
    return Signed(signer.caller, Payload(authorization.payload, chain), authorization.presigned)


def read_authorization(headers: Mapping[str, str], parameters: Mapping[str, str]) -> Authorization:
    """Return what a request says of its signature. Raises `S3Fault` where it says nothing, or nothing that can be true."""
    text = headers.get("authorization", "")
    if text.startswith(ALGORITHM):
        return _header_authorization(text, headers)
    if "X-Amz-Algorithm" in parameters or "X-Amz-Signature" in parameters:
        return _query_authorization(parameters, headers)
    if text.startswith("AWS ") or "AWSAccessKeyId" in parameters:
        raise S3Fault("InvalidRequest", f"The authorization mechanism you have provided is not supported. Please use {ALGORITHM}.")
    if text:
        raise S3Fault("InvalidArgument", "Unsupported Authorization Type", elements={"ArgumentName": "Authorization"})
    raise S3Fault("AccessDenied")


def check_time(authorization: Authorization, now: float) -> None:
    """Raise unless a signature of the authorization's time is good at `now`."""
    made = _seconds(authorization.timestamp)
    if not authorization.presigned:
        if abs(now - made) > MAX_SKEW:
            told = {"RequestTime": authorization.timestamp, "ServerTime": _iso(now), "MaxAllowedSkewMilliseconds": str(MAX_SKEW * 1000)}
            raise S3Fault("RequestTimeTooSkewed", elements=told)
        return
    if made - now > MAX_SKEW:
        raise S3Fault("AccessDenied", "Request is not yet valid", elements={"ServerTime": _iso(now)})
    if now > made + authorization.expires:
        told = {"X-Amz-Expires": str(authorization.expires), "Expires": _iso(made + authorization.expires), "ServerTime": _iso(now)}
        raise S3Fault("AccessDenied", "Request has expired", elements=told)


def check_coverage(authorization: Authorization, headers: Mapping[str, str]) -> None:
    """Raise unless the signature covers ``host`` and every header of Amazon's that the request has."""
    signed = authorization.signed_headers
    loose = [name for name in headers if name.startswith("x-amz-") and name not in signed and name not in _UNSIGNED_ALLOWED]
    if "host" not in signed:
        loose.append("host")
    if loose:
        raise S3Fault(
            "AccessDenied",
            "There were headers present in the request which were not signed",
            elements={"HeadersNotSigned": ", ".join(sorted(loose))},
        )


def _check_signature(authorization: Authorization, request: Request, signer: Signer) -> None:
    fields: Sequence[tuple[bytes, bytes]] = request.scope["headers"]
    without = _SIGNATURE_PARAMETER if authorization.presigned else b""
    told = b"", b""
    for canonical in canonical_requests(
        request.method, request.raw_path, request.query, fields, authorization.signed_headers, authorization.payload, without=without
    ):
        text = string_to_sign(authorization.timestamp, authorization.scope, canonical)
        if hmac.compare_digest(signer.sign(text).encode(), authorization.signature.encode()):
            return
        told = told if told[0] else (text, canonical)
    signer.refuse()
    raise S3Fault(
        "SignatureDoesNotMatch",
        elements={
            "AWSAccessKeyId": authorization.access_key,
            "StringToSign": told[0].decode("utf-8", "replace"),
            "SignatureProvided": authorization.signature,
            "CanonicalRequest": told[1].decode("utf-8", "replace"),
        },
    )


def _header_authorization(text: str, headers: Mapping[str, str]) -> Authorization:
    parts = dict(_pair(part) for part in text[len(ALGORITHM) :].split(","))
    try:
        credential, signed, signature = parts["Credential"], parts["SignedHeaders"], parts["Signature"]
    except KeyError as error:
        raise S3Fault("AuthorizationHeaderMalformed", f"The authorization header is malformed; {error.args[0]} is missing.") from error
    payload = headers.get("x-amz-content-sha256", "")
    if not payload:
        raise S3Fault("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    access_key, scope = _credential(credential, "AuthorizationHeaderMalformed")
    timestamp = _header_timestamp(headers)
    _check_day(scope, timestamp, "AuthorizationHeaderMalformed")
    token = headers.get("x-amz-security-token", "")
    return Authorization(access_key, token, scope, timestamp, _names(signed), signature, payload)


def _query_authorization(parameters: Mapping[str, str], headers: Mapping[str, str]) -> Authorization:
    code = "AuthorizationQueryParametersError"
    missing = [name for name in _QUERY_NEEDS if not parameters.get(name)]
    if missing:
        raise S3Fault(code, f"Query-string authentication version 4 requires the {', '.join(missing)} parameters.")
    if parameters["X-Amz-Algorithm"] != ALGORITHM:
        raise S3Fault(code, f'X-Amz-Algorithm only supports "{ALGORITHM}"')
    access_key, scope = _credential(parameters["X-Amz-Credential"], code)
    timestamp = parameters["X-Amz-Date"]
    _check_day(scope, timestamp, code)
    signed = _names(parameters["X-Amz-SignedHeaders"])
    payload = headers.get("x-amz-content-sha256", UNSIGNED) if "x-amz-content-sha256" in signed else UNSIGNED
    return Authorization(
        access_key,
        parameters.get("X-Amz-Security-Token", ""),
        scope,
        timestamp,
        signed,
        parameters["X-Amz-Signature"],
        parameters.get("X-Amz-Content-Sha256", payload),
        _expiry(parameters["X-Amz-Expires"]),
    )


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.strip().partition("=")
    return name, value


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.lower().split(";"))


def _credential(text: str, code: str) -> tuple[str, Scope]:
    # An access key may hold slashes; the other four parts may not.
    parts = text.rsplit("/", 4)
    if len(parts) != 5 or parts[4] != TERMINATOR or not all(parts):
        raise S3Fault(code, 'The Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".')
    if parts[3] != "s3":
        raise S3Fault(code, f'The credential scope names the service "{parts[3]}"; expecting "s3".')
    return parts[0], Scope(parts[1], parts[2], parts[3])


def _header_timestamp(headers: Mapping[str, str]) -> str:
    if text := headers.get("x-amz-date", ""):
        _seconds(text)
        return text
    try:
        return parsedate_to_datetime(headers.get("date", "")).astimezone(UTC).strftime(_TIMESTAMP)
    except (ValueError, OverflowError):
        raise _no_date() from None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(_ISO)


@lru_cache(maxsize=1024)
def _seconds(timestamp: str) -> float:
    # A client that sends many requests signs many with the same second.
    try:
        return datetime.strptime(timestamp, _TIMESTAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise _no_date() from None


def _no_date() -> S3Fault:
    return S3Fault("AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")


def _check_day(scope: Scope, timestamp: str, code: str) -> None:
    if timestamp[:8] != scope.day:
        raise S3Fault(code, f'Invalid credential date "{scope.day}". This date is not the same as X-Amz-Date: "{timestamp[:8]}".')


def _expiry(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and 0 < int(text) <= MAX_EXPIRY):
        message = f"X-Amz-Expires must be a number of seconds between 1 and {MAX_EXPIRY} (seven days)"
        # Amazon documents 400 and has long answered 403; the public suite for S3 servers holds them to 403.
        raise S3Fault("AuthorizationQueryParametersError", message, status=403)
    return int(text)

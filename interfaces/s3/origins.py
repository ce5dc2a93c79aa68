"""Pages of other origins at a bucket: its CORS configuration, preflights, and what answers say to browsers.

1. A preflight comes without a signature, so it learns only what the rules of the bucket say. A bucket without rules and a bucket that is
   not there answer alike.
2. The rules of a bucket are kept under the name it is asked for by, where a preflight finds them without knowing whose it is.
3. Answers that refuse say it to the page as well, so that a program in a browser can read why.
"""

from __future__ import annotations

from collections.abc import Sequence

from interfaces.port import Notes
from interfaces.s3.call import Call
from interfaces.s3.cors import (
    CorsRule,
    Headers,
    allow,
    allow_preflight,
    decode_rule,
    find_rule,
    parse_cors,
    render_cors,
    requested_headers,
    rule_fields,
)
from interfaces.s3.faults import S3Fault
from interfaces.web.asgi import Reply, Request

_XML = [("content-type", "application/xml")]
_METHOD = "access-control-request-method"
_HEADERS = "access-control-request-headers"


def get_cors(call: Call) -> Reply:
    """Answer ``GET ?cors``."""
    with call.opened():
        rules = rules_of(call.door.notes, call.bucket)
    if not rules:
        raise S3Fault("NoSuchCORSConfiguration", elements={"BucketName": call.bucket})
    return Reply(200, _XML, render_cors(rules))


def put_cors(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?cors``."""
    call.ask("bucket.set", bucket=call.bucket, cors=[rule_fields(rule) for rule in parse_cors(body)])
    return Reply(200)


def delete_cors(call: Call) -> Reply:
    """Answer ``DELETE ?cors``."""
    call.ask("bucket.set", bucket=call.bucket, cors=[])
    return Reply(204)


def answer_preflight(notes: Notes, request: Request, bucket: str) -> Reply:
    """Return the answer to ``OPTIONS``. Raises ``BadRequest``, ``AccessForbidden``."""
    origin, method = request.headers.get("origin", ""), request.headers.get(_METHOD, "")
    if not origin or not method:
        raise S3Fault("BadRequest", "Insufficient information. Origin and Access-Control-Request-Method headers are needed.")
    requested = requested_headers(request.headers.get(_HEADERS, ""))
    rule = find_rule(rules_of(notes, bucket), origin, method, requested)
    if rule is None:
        raise S3Fault("AccessForbidden", elements={"Method": method, "ResourceType": "BUCKET"})
    return Reply(200, allow_preflight(rule, origin, requested))


def tell_page(notes: Notes, request: Request, bucket: str) -> Headers:
    """Return the headers by which an answer lets the page that asked have it; none where no page asked, or none may."""
    origin = request.headers.get("origin")
    if origin is None:
        return []
    rule = find_rule(rules_of(notes, bucket), origin, request.headers.get(_METHOD, request.method))
    return allow(rule, origin) if rule else []


def rules_of(notes: Notes, bucket: str) -> Sequence[CorsRule]:
    """Return the rules of a bucket; none where it has none."""
    if not bucket:
        return ()
    return [decode_rule(fields) for fields in notes.find(f"cors/{bucket}")[1].get("rules", ())]

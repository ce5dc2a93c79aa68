"""A fault as the answer an S3 client understands. Pure.

1. Any reader of XML takes the document, whatever key it is about. The message keeps its hint and the policy line that decided: S3
   clients print nothing else.
2. The answer to a refused HEAD, and a 304, have no body; clients read the status.
3. What the family refuses with a status of its own (a body too slow or too large) keeps the status and gets the nearest code.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from interfaces.faults import Fault
from interfaces.s3.codes import CODES
from interfaces.s3.faults import S3Fault, code_of
from interfaces.s3.markup import plain_document, printable, tag
from interfaces.web.asgi import Reply, Request
from interfaces.web.problems import Refusal

HOST_ID = "agent-nas"

_REFUSALS: Mapping[int, str] = {408: "RequestTimeout", 413: "EntityTooLarge", 416: "InvalidRange", 431: "RequestHeaderSectionTooLarge"}


def render_fault(fault: Fault, request: Request) -> Reply:
    """Return the answer that tells a fault."""
    code, status = _code_and_status(fault)
    headers = [("content-type", "application/xml"), ("x-amz-request-id", request.request_id), ("x-amz-id-2", HOST_ID)]
    if isinstance(fault, S3Fault | Refusal):
        headers.extend(fault.headers.items())
    if fault.wait:
        headers.append(("retry-after", str(fault.wait)))
    if request.method == "HEAD" or status == 304:
        return Reply(status, headers[1:])
    return Reply(status, headers, _body(code, fault, request))


def describe_fault(fault: Fault) -> tuple[str, str]:
    """Return code and message of a fault, as they stand in an answer about many objects."""
    return _code_and_status(fault)[0], _message(fault)


def _code_and_status(fault: Fault) -> tuple[str, int]:
    if isinstance(fault, S3Fault):
        return fault.code, fault.status
    if isinstance(fault, Refusal):
        return _REFUSALS.get(fault.status, code_of(fault)), fault.status
    code = code_of(fault)
    return code, CODES[code].status


def _body(code: str, fault: Fault, request: Request) -> bytes:
    elements = fault.elements.items() if isinstance(fault, S3Fault) else ()
    return plain_document(
        "Error",
        tag("Code", code),
        tag("Message", printable(_message(fault))),
        *(tag(name, printable(value)) for name, value in elements),
        tag("Resource", printable(unquote_to_bytes(request.raw_path).decode("utf-8", "replace"))),
        tag("RequestId", request.request_id),
        tag("HostId", HOST_ID),
    )


def _message(fault: Fault) -> str:
    told = f"{fault.message}: {fault.hint}" if fault.hint else fault.message
    return f"{told} (policy {fault.policy})" if fault.policy else told

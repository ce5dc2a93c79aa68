"""Faults in the words of JSON-RPC, for what is not a tool: resources, prompts, and requests that never reached one. Pure.

1. The table is total: a kind without a code is an error found by a test.
2. What a caller cannot see and what does not exist are told alike, as parameters that name nothing.
3. ``data`` has the kind, the hint and, where there are, the policy line and the gate, as every door tells them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from interfaces.web.asgi import Reply, Request
from interfaces.web.problems import headers_of, status_of

CODES: Mapping[Kind, int] = {
    **dict.fromkeys(Kind, INVALID_REQUEST),
    **dict.fromkeys(
        (
            Kind.INVALID,
            Kind.NOT_FOUND,
            Kind.NOT_A_DIRECTORY,
            Kind.IS_A_DIRECTORY,
            Kind.NAME_TOO_LONG,
            Kind.TOO_LARGE,
            Kind.UNSUPPORTED,
        ),
        INVALID_PARAMS,
    ),
    **dict.fromkeys((Kind.INTERNAL, Kind.CORRUPT, Kind.UNAVAILABLE, Kind.NO_SPACE), INTERNAL_ERROR),
}
"""The JSON-RPC code of every kind."""


def describe_fault(fault: Fault) -> Document:
    """Return what programs are told of a fault; members that say nothing are left out."""
    told = {"code": fault.kind.value, "hint": fault.hint, "policy": fault.policy, "gate": fault.gate}
    return {name: value for name, value in told.items() if value}


def render_fault(fault: Fault, request: Request) -> Reply:
    """Return the reply to a request that failed before it reached the protocol: the status HTTP has for it, and a JSON-RPC error."""
    error = {"code": CODES[fault.kind], "message": fault.message, "data": describe_fault(fault)}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [("content-type", "application/json"), ("cache-control", "no-store"), *headers_of(fault).items()]
    return Reply(status_of(fault), headers, body)

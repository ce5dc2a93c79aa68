"""The record: list, verify."""

from __future__ import annotations

from itertools import islice

from interfaces.port import Document
from nasd.desk import Desk
from nasd.operations.operation import COUNT, FLAG, LIMIT, MAYBE_TEXT, NAME, TEXT, TIME, Arguments, Operation, gives, gives_list, takes
from nasd.verifying import parse_anchor, view_verification
from nasd.views import page, view_record
from trust.model import Action, Identity

_LIMIT = 1000


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = arguments.get("run")
    if identity.lease is not None:
        run = identity.lease.run
    else:
        desk.require(identity, Action.OBSERVE, "read the record")
    limit = int(arguments.get("limit", _LIMIT))
    after = int(arguments.get("cursor") or arguments.get("after") or 0)
    found = list(islice(desk.appliance.trust.records(after, None, arguments.get("kind"), run), limit + 1))
    more = len(found) > limit
    return page([view_record(record) for record in found[:limit]], after=str(found[limit - 1].sequence) if more else None, truncated=more)


def _verify(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "verify the record")
    return view_verification(desk.appliance.trust.verify(parse_anchor(arguments.get("anchor"))))


_RECORD = {"sequence": COUNT, "time": TIME, "phase": NAME, "kind": NAME, "body": {"type": "object"}, "hash": NAME}
_FIRST_BAD = {"type": ["integer", "null"]}

OPERATIONS = (
    Operation(
        "record.list",
        "GET",
        "/v1/records",
        "Read the record, oldest first",
        _list,
        takes(after=COUNT, limit=LIMIT, cursor=NAME, kind=NAME, run=NAME),
        gives_list(**_RECORD),
    ),
    Operation(
        "record.verify",
        "POST",
        "/v1/records/verify",
        "Walk the chain of records and name the first bad one",
        _verify,
        takes(anchor=TEXT),
        gives(ok=FLAG, records=COUNT, first_bad=_FIRST_BAD, why=TEXT, completeness=TEXT, head=MAYBE_TEXT),
    ),
)

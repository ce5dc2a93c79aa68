"""The record: list, verify, sign, prove, export, seal, redact."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.exporting import export_record
from nasd.operations.operation import (
    COUNT,
    DURATION,
    FLAG,
    LIMIT,
    MAYBE_TEXT,
    NAME,
    TEXT,
    TEXTS,
    TIME,
    Arguments,
    Operation,
    gives,
    gives_list,
    seconds,
    takes,
)
from nasd.operations.runs import absolute
from nasd.proving import prove_record
from nasd.verifying import doubt, parse_anchor, view_verification
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
    shown = desk.record_filter(identity)
    records = (record for record in desk.appliance.trust.records(after, None, arguments.get("kind"), run) if shown(record))
    found = list(islice(records, limit + 1))
    more = len(found) > limit
    return page([view_record(record) for record in found[:limit]], after=str(found[limit - 1].sequence) if more else None, truncated=more)


def _verify(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "verify the record")
    outside = desk.notary.outside()
    found = desk.appliance.trust.verify(parse_anchor(arguments.get("anchor")), outside)
    return view_verification(doubt(found, desk.appliance.settings, outside))


def _status(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "look at the record")
    return desk.notary.status()


def _keys(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "read the keys of the record")
    return desk.notary.keys()


def _checkpoint(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "sign a checkpoint")
    return desk.notary.sign()


def _prove(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "prove a record")
    return prove_record(desk.appliance.trust.evidence, int(arguments["sequence"]), desk.appliance.now())


def _export(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "export the record")
    folder, after = Path(absolute(arguments["folder"])), int(arguments.get("after", 0))
    home = desk.appliance.settings.home
    if folder.is_relative_to(home) or folder.resolve().is_relative_to(home.resolve()):
        raise Fault(Kind.INVALID, f"{folder} is inside of the data directory", hint="name a folder outside of it")
    evidence, witnesses = desk.appliance.trust.evidence, desk.notary.keys()["witnesses"]
    body = {"folder": str(folder), "after": after}
    with recorded(desk.appliance.trust, desk.appliance.clock, "record.export", identity, body) as outcome:
        done = export_record(evidence, folder, after, witnesses, desk.appliance.now())
        outcome |= {"last": done["last"]}
    return done


def _seal(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "seal old records")
    older_than = desk.appliance.now() - seconds(arguments["older_than"], "older_than")
    return {"sealed": desk.notary.retention.seal(older_than, identity)}


def _redact(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "redact a record")
    return desk.notary.retention.redact(int(arguments["sequence"]), arguments["reason"], identity)


_RECORD = {"sequence": COUNT, "time": TIME, "phase": NAME, "kind": NAME, "body": {"type": "object"}, "hash": NAME}
_FIRST_BAD = {"type": ["integer", "null"]}
_OBJECT = {"type": "object"}
_SEQUENCE = {"type": ["integer", "string"], "minimum": 1, "pattern": "^[1-9][0-9]{0,17}$"}  # a place in the path arrives as text
_OBJECTS = {"type": "array", "items": _OBJECT}

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
    Operation(
        "record.status",
        "GET",
        "/v1/records/status",
        "Tell how far the record is signed, kept elsewhere and cosigned",
        _status,
        takes(),
        gives(records=COUNT, origin=NAME, checkpoint=_OBJECT, witnesses=_OBJECTS, anchors=TEXTS, segments=_OBJECTS, failures=TEXTS),
    ),
    Operation(
        "record.keys",
        "GET",
        "/v1/records/keys",
        "Show the public keys of the log and of its witnesses",
        _keys,
        takes(),
        gives(log=TEXT, witnesses=TEXTS),
    ),
    Operation(
        "record.checkpoint",
        "POST",
        "/v1/records/checkpoint",
        "Sign the head of the record now, and have it cosigned",
        _checkpoint,
        takes(),
        gives(size=COUNT, note=TEXT, failures=TEXTS),
        effect=True,
    ),
    Operation(
        "record.prove",
        "GET",
        "/v1/records/{sequence}/proof",
        "Prove that a record is in the log, for somebody who has only the log's key",
        _prove,
        takes({"sequence": _SEQUENCE}),
        gives(sequence=COUNT, size=COUNT, origin=NAME, proof=TEXT),
    ),
    Operation(
        "record.export",
        "POST",
        "/v1/records/export",
        "Write the record to a folder of the daemon's machine, with everything that verifying it needs",
        _export,
        takes({"folder": TEXT}, after=COUNT),
        gives(folder=TEXT, first=COUNT, last=COUNT, origin=NAME),
        effect=True,
    ),
    Operation(
        "record.seal",
        "POST",
        "/v1/records/seal",
        "Move old records into sealed files of their own",
        _seal,
        takes({"older_than": DURATION}),
        gives(sealed=_OBJECTS),
        effect=True,
    ),
    Operation(
        "record.redact",
        "POST",
        "/v1/records/{sequence}/redact",
        "Take the body of a record away; its hash and the chain stay as they are",
        _redact,
        takes({"sequence": _SEQUENCE, "reason": TEXT}),
        gives(sequence=COUNT, commitment=NAME),
        effect=True,
    ),
)

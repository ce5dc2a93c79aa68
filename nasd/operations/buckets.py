"""Buckets: branches by the names S3 knows them by, and what S3 was told about them.

1. ``main``, the branch of every run and every snapshot is a bucket. One that S3 makes is a run whose branch begins empty and which the
   bucket's name stands for too; it is decided as starting a run, and its branch stays when the run's lease ends.
2. Deleting such a bucket ends its run. It has to be empty, its versions included; what it held stays in its history until reclaimed.
3. Settings (versioning, tags, region) are kept where the S3 door reads them, and recorded like every consequential act.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.durations import render_time
from nasd.notes import DoorNotes
from nasd.operations.operation import FLAG, MAYBE_TEXT, NAME, TEXT, TEXTS, TIME, Arguments, Operation, gives, gives_list, takes
from nasd.run_request import Request
from nasd.runs import MAIN, Run
from store.errors import NotFound
from store.model import ROOT
from trust.model import Action, Identity, PrincipalKind

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|-(?!\.)|\.(?![.-])){1,61}[a-z0-9]")
_ROLE = "bucket"
_TRIES = 16
_SETTINGS = ("versioning", "tags", "location", "public_block", "ownership")


def _list(desk: Desk, identity: Identity, _arguments: Arguments) -> Document:
    return {"items": sorted(_visible(desk, identity), key=lambda item: str(item["bucket"])), "next": None, "truncated": False}


def _visible(desk: Desk, identity: Identity) -> Iterator[Document]:
    engine = desk.appliance.engine
    yield _view(MAIN, MAIN, "main", engine.branch(MAIN).created)
    for run in desk.visible_runs(identity):
        if run.state == "active" or run.bucket:
            yield _view_run(run)
    if identity.lease is None and desk.allows(identity, Action.OBSERVE):
        for snapshot in engine.snapshots():
            yield _view(snapshot.name, MAIN, "snapshot", snapshot.created)


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return _view_run(_bucket_run(desk, identity, arguments["bucket"]))


def _create(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    name = arguments["bucket"]
    if (why := explain_bucket_name(name)) is not None:
        raise Fault(Kind.INVALID, f"{name}: {why}")
    standing = desk.runs.of_bucket(name)
    if standing is not None and standing.owner == identity.principal.name:
        return _view_run(standing)
    if standing is not None or _is_taken(desk, name):
        raise Fault(Kind.EXISTS, f"{name}: there is such a bucket", hint="choose another name")
    role = arguments.get("role") or (_ROLE if identity.principal.kind is PrincipalKind.HUMAN else identity.principal.name)
    body = {"bucket": name, "role": role}
    with recorded(desk.appliance.trust, desk.appliance.clock, "bucket.create", identity, body) as outcome:
        started = desk.runs.start(identity, Request(role=role, purpose=f"the bucket {name}"), bucket=name)
        outcome["run"] = started["run"]
    return _view_run(desk.runs.find(started["run"]))


def _delete(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = _bucket_run(desk, identity, arguments["bucket"])
    if not run.bucket:
        raise Fault(Kind.NOT_PERMITTED, f"{run.run} is no bucket that S3 made", hint=f"`nas run end {run.run}` ends the run")
    desk.own_run(identity, run.run, None)
    if identity.lease is not None:
        raise Fault(Kind.DENIED, "a lease cannot delete buckets", hint="ask the owner")
    _require_empty(desk, run)
    with recorded(desk.appliance.trust, desk.appliance.clock, "bucket.delete", identity, {"bucket": run.bucket, "run": run.run}):
        desk.mounts.remove_run(run.run)
        desk.runs.end(run, identity, reason="its bucket was deleted")
        desk.runs.drop_bucket(desk.runs.find(run.run))
        _forget_notes(desk, run)
    return {"bucket": arguments["bucket"], "run": run.run}


def _set(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    name = arguments["bucket"]
    run = _bucket_run(desk, identity, name)
    desk.own_run(identity, run.run, Action.WRITE)
    if identity.lease is not None and identity.lease.id != run.lease:
        why = f"{identity.lease.id} was narrowed from the run's lease and does not set the whole bucket's settings"
        raise Fault(Kind.DENIED, why, hint="the run's lease can")
    settings = {key: arguments[key] for key in _SETTINGS if key in arguments}
    body = {"bucket": name, "run": run.run, **settings, **({"cors": arguments["cors"]} if "cors" in arguments else {})}
    with recorded(desk.appliance.trust, desk.appliance.clock, "bucket.set", identity, body):
        notes = DoorNotes(desk.appliance.trust, "s3")
        _change_note(notes, f"bucket/{run.branch}", settings)
        if "cors" in arguments:
            for known in _names(run):
                _change_note(notes, f"cors/{known}", {"rules": arguments["cors"]})
    return _view_run(run)


def explain_bucket_name(name: str) -> str | None:
    """Return why no bucket can be called `name` (S3's rules, and names that mean something here), or None when one can."""
    if not _NAME.fullmatch(name):
        return "a bucket's name is 3 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at the ends and beside dots"
    try:
        ipaddress.IPv4Address(name)
    except ValueError:
        return None
    return "a bucket's name is no IP address"


def _bucket_run(desk: Desk, identity: Identity, name: str) -> Run:
    if name == MAIN:
        raise Fault(Kind.READ_ONLY, f"{MAIN} has no settings and cannot be deleted", hint="work in a run and propose it")
    run = desk.runs.of_bucket(name) or desk.runs.of_branch(name)
    if run is None or not desk.sees_run(identity, run):
        raise Fault(Kind.NOT_FOUND, f"{name}: no such bucket", hint="`nas run list` shows the runs and their branches")
    return run


def _is_taken(desk: Desk, name: str) -> bool:
    if name == MAIN or desk.runs.of_branch(name) is not None:
        return True
    try:
        desk.appliance.engine.resolve(name)
    except NotFound:
        return False
    return True


def _require_empty(desk: Desk, run: Run) -> None:
    working = desk.appliance.engine.working(run.branch)
    try:
        full = bool(working.list(ROOT))
    finally:
        working.close()
    if full or DoorNotes(desk.appliance.trust, "s3").keys(f"version/{run.branch}/"):
        raise Fault(Kind.NOT_EMPTY, f"{run.bucket} holds objects, or versions of them", hint="delete them first")


def _forget_notes(desk: Desk, run: Run) -> None:
    notes = DoorNotes(desk.appliance.trust, "s3")
    uploads = [key for kind in ("upload", "part", "done") for key in notes.keys(f"{kind}/{run.branch}/")]
    for key in (f"bucket/{run.branch}", *(f"cors/{name}" for name in _names(run)), *uploads):
        notes.remove(key, notes.find(key)[0])


def _names(run: Run) -> tuple[str, ...]:
    """Return the names S3 clients may ask for a bucket by."""
    return (run.bucket, run.run) if run.bucket else (run.run,)


def _change_note(notes: DoorNotes, key: str, settings: Document) -> None:
    for _ in range(_TRIES):
        version, body = notes.find(key)
        if notes.put(key, body | settings, version):
            return
    raise Fault(Kind.CONFLICT, "somebody else keeps changing the settings of the bucket", hint="try again")


def _view_run(run: Run) -> Document:
    return _view(run.bucket or run.run, run.branch, "bucket" if run.bucket else "run", run.created) | {"run": run.run, "owner": run.owner}


def _view(name: str, branch: str, kind: str, created: int) -> Document:
    return {"bucket": name, "branch": branch, "kind": kind, "created": render_time(created), "run": None, "owner": None}


_BUCKET = {"bucket": NAME, "branch": NAME, "kind": {"enum": ["main", "run", "bucket", "snapshot"]}, "created": TIME, "run": MAYBE_TEXT}
_TAGS = {"type": "array", "maxItems": 50, "items": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}}
_BLOCK = {
    "type": ["object", "null"],
    "properties": {name: FLAG for name in ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")},
    "required": ["BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"],
    "additionalProperties": False,
}
_CORS = {
    "type": "array",
    "maxItems": 100,
    "items": takes(
        {
            "origins": TEXTS,
            "methods": {"type": "array", "items": {"enum": ["GET", "PUT", "HEAD", "POST", "DELETE"]}, "minItems": 1},
            "headers": TEXTS,
            "exposed": TEXTS,
            "max_age": {"type": ["integer", "null"], "minimum": 0},
            "id": TEXT,
        }
    ),
}

OPERATIONS = (
    Operation("bucket.list", "GET", "/v1/buckets", "List what S3 sees as buckets", _list, takes(), gives_list(**_BUCKET)),
    Operation(
        "bucket.create",
        "POST",
        "/v1/buckets",
        "Make a bucket: a run whose branch begins empty, under a name of its own",
        _create,
        takes({"bucket": NAME}, role=NAME),
        gives(**_BUCKET),
        effect=True,
        status=201,
    ),
    Operation("bucket.show", "GET", "/v1/buckets/{bucket}", "Show a bucket", _show, takes({"bucket": NAME}), gives(**_BUCKET)),
    Operation(
        "bucket.set",
        "POST",
        "/v1/buckets/{bucket}/settings",
        "Change what a bucket tells S3 clients: versioning, tags, region, which pages of other origins may use it, access",
        _set,
        takes(
            {"bucket": NAME},
            versioning={"enum": ["Enabled", "Suspended"]},
            tags=_TAGS,
            location=NAME,
            cors=_CORS,
            public_block=_BLOCK,
            ownership={"enum": ["BucketOwnerEnforced", ""]},
        ),
        gives(**_BUCKET),
        effect=True,
    ),
    Operation(
        "bucket.delete",
        "DELETE",
        "/v1/buckets/{bucket}",
        "Delete an empty bucket that S3 made, and end its run",
        _delete,
        takes({"bucket": NAME}),
        gives(bucket=NAME, run=NAME),
        effect=True,
    ),
)

"""Buckets: branches, as S3 sees them.

1. ``main``, the branch of every run and every snapshot is a bucket, by its name or run id. Each caller sees those that exist for it.
2. Making a bucket starts a run whose branch begins empty and which the bucket's name stands for; deleting it ends that run. A lease
   starts no runs, so it makes no buckets. Other buckets are neither made nor deleted here.
3. Whether a bucket keeps versions, and its tags, are settings that `bucket.set` records.
"""

from __future__ import annotations

import re

from interfaces.faults import Fault, Kind
from interfaces.s3.call import Call
from interfaces.s3.documents import MAX_BUCKET_TAGS, OWNERSHIP, check_ownership, parse_location, parse_tagging, parse_versioning
from interfaces.s3.faults import S3Fault
from interfaces.s3.listing import read_limit, render_owner
from interfaces.s3.markup import document, escape, group, tag
from interfaces.s3.settings import settings_of
from interfaces.web.asgi import Reply

REGION = "us-east-1"
MAX_BUCKETS = 10_000
_LOCATION = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,31}")
_XML = [("content-type", "application/xml")]


def list_buckets(call: Call) -> Reply:
    """Answer ``GET /``."""
    parameters = call.parameters
    limit, prefix, after = (
        read_limit(parameters, "max-buckets", MAX_BUCKETS),
        parameters.get("prefix", ""),
        parameters.get("continuation-token", ""),
    )
    found = [bucket for bucket in call.ask("bucket.list")["items"] if bucket["bucket"].startswith(prefix) and bucket["bucket"] > after]
    shown = found[:limit]
    buckets = [group("Bucket", tag("Name", each["bucket"]), tag("CreationDate", _render_created(each["created"]))) for each in shown]
    more = tag("ContinuationToken", shown[-1]["bucket"]) if len(found) > len(shown) and shown else ""
    named = tag("Prefix", prefix) if prefix else ""
    return Reply(
        200, _XML, document("ListAllMyBucketsResult", render_owner(call.caller.principal), group("Buckets", *buckets), more, named)
    )


def create_bucket(call: Call, body: bytes) -> Reply:
    """Answer ``PUT`` of a bucket."""
    location = parse_location(body)
    if location and not _LOCATION.fullmatch(location):
        raise S3Fault("InvalidArgument", "The specified location-constraint is not valid")
    if call.headers.get("x-amz-bucket-object-lock-enabled", "").lower() == "true":
        raise S3Fault("NotImplemented", "Object lock is not implemented: what is merged into main cannot be changed by a lease.")
    check_ownership(call.headers.get("x-amz-object-ownership", OWNERSHIP))
    try:
        call.ask("bucket.create", bucket=call.bucket)
    except Fault as fault:
        raise _explain_creation(fault, call.bucket) from fault
    if location:
        call.ask("bucket.set", bucket=call.bucket, location=location)
    return Reply(200, [("location", f"/{call.bucket}")])


def head_bucket(call: Call) -> Reply:
    """Answer ``HEAD`` of a bucket."""
    with call.opened():
        return Reply(200, [("x-amz-bucket-region", REGION), ("x-amz-access-point-alias", "false")])


def delete_bucket(call: Call) -> Reply:
    """Answer ``DELETE`` of a bucket."""
    with call.opened():
        pass
    try:
        call.ask("bucket.delete", bucket=call.bucket)
    except Fault as fault:
        if fault.kind is Kind.NOT_FOUND:
            raise S3Fault("NoSuchBucket") from fault
        raise
    return Reply(204)


def get_location(call: Call) -> Reply:
    """Answer ``GET ?location``: what the bucket's maker named; nothing stands for the default region."""
    with call.opened() as workspace:
        location = settings_of(call.door, workspace.branch).location
    return Reply(200, _XML, document("LocationConstraint", escape(location)))


def get_versioning(call: Call) -> Reply:
    """Answer ``GET ?versioning``."""
    with call.opened() as workspace:
        status = settings_of(call.door, workspace.branch).versioning
    return Reply(200, _XML, document("VersioningConfiguration", tag("Status", status) if status else ""))


def put_versioning(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?versioning``."""
    _set(call, versioning=parse_versioning(body))
    return Reply(200)


def get_tagging(call: Call) -> Reply:
    """Answer ``GET ?tagging`` of a bucket."""
    with call.opened() as workspace:
        tags = settings_of(call.door, workspace.branch).tags
    if not tags:
        raise S3Fault("NoSuchTagSet", elements={"BucketName": call.bucket})
    return Reply(
        200, _XML, document("Tagging", group("TagSet", *(group("Tag", tag("Key", name), tag("Value", value)) for name, value in tags)))
    )


def put_tagging(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?tagging`` of a bucket."""
    _set(call, tags=[list(pair) for pair in parse_tagging(body, MAX_BUCKET_TAGS)])
    return Reply(204)


def delete_tagging(call: Call) -> Reply:
    """Answer ``DELETE ?tagging`` of a bucket."""
    _set(call, tags=[])
    return Reply(204)


def _set(call: Call, **settings: object) -> None:
    with call.opened():
        pass
    call.ask("bucket.set", bucket=call.bucket, **settings)


def _render_created(created: str | None) -> str:
    return created or "1970-01-01T00:00:00.000Z"


def _explain_creation(fault: Fault, bucket: str) -> Fault:
    elements = {"BucketName": bucket}
    if fault.kind is Kind.EXISTS:
        return S3Fault("BucketAlreadyExists", elements=elements)
    return S3Fault("InvalidBucketName", fault.message, elements=elements) if fault.kind is Kind.INVALID else fault

"""Writing and deleting objects: ``PUT``, ``DELETE``, and deleting many at once.

1. Everything a request says is judged before its body is asked for; a client that waits for ``100 Continue`` sends nothing in vain.
2. A body streams into the file it becomes; its MD5, SHA-256 and checksum are computed in the thread that pulls it.
3. Deleting many is one answer about each: what fails says why, the others are gone, and all that is gone is durable together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from interfaces.faults import Fault
from interfaces.port import Workspace
from interfaces.s3.call import Call
from interfaces.s3.conditions import Expected, is_conditional
from interfaces.s3.documents import PUBLIC_ACLS, Deletion, Doomed, Tags, parse_deletion, parse_tag_header
from interfaces.s3.faults import S3Fault
from interfaces.s3.keys import MAX_KEY, check_key
from interfaces.s3.markup import document, group, tag
from interfaces.s3.payload import UNKNOWN, BodyPlan, CheckedContent
from interfaces.s3.reading import Headers, render_version
from interfaces.s3.refusals import describe_fault
from interfaces.s3.sealing import CustomerKey, Seal, check_encryption, draw_span, make_seal, read_key, render_key, tag_content, turn_content
from interfaces.s3.seeing import EMPTY_MD5
from interfaces.s3.settings import settings_of
from interfaces.s3.sidecars import Sidecar, read_sidecar, render_checksum, with_checksum, without_labels
from interfaces.s3.storing import (
    Draft,
    Removed,
    Stored,
    publish_content,
    remove_object,
    remove_version,
    settle,
    store_directory,
    store_object,
)
from interfaces.web.asgi import Reply
from interfaces.web.bodies import Upload

MAX_SINGLE = 5 << 30
"""Bytes of the largest object that is put at once; larger ones come in parts, so that a broken connection does not lose all of it."""

_UNSUPPORTED: Mapping[str, str] = {
    "x-amz-server-side-encryption": "encryption by request: the appliance encrypts by retention class",
    "x-amz-object-lock-mode": "object locks: what is merged into main cannot be changed by a lease",
    "x-amz-object-lock-legal-hold": "object locks: what is merged into main cannot be changed by a lease",
    "x-amz-write-offset-bytes": "appending",
}


async def put_object(call: Call) -> Reply:
    """Answer ``PUT`` of an object."""
    check_key(call.key)
    refuse_unsupported(call.headers)
    plan = call.plan()
    if plan.length > MAX_SINGLE:
        raise S3Fault("EntityTooLarge", elements={"ProposedSize": str(plan.length), "MaxSizeAllowed": str(MAX_SINGLE)})
    sidecar, tags, key = read_sidecar(call.headers), read_tags(call.headers), read_key(call.headers)
    if key:
        sidecar = replace(sidecar, seal=seal_single(key, plan.length, call.door.entropy))
    upload = Upload(call.request, call.door.limits)
    content = plan.open(upload)
    stored = await upload.into(call.door.pool, _put, call, plan, content, sidecar, tags, key)
    told = [("etag", f'"{stored.sidecar.etag}"'), *render_checksum(stored.sidecar), *render_version(stored.version), *render_key(key)]
    return Reply(200, told)


def delete_object(call: Call) -> Reply:
    """Answer ``DELETE`` of an object, or of a version of one."""
    check_key(call.key)
    told = [call.headers.get(name, "") for name in ("if-match", "x-amz-if-match-last-modified-time", "x-amz-if-match-size")]
    doomed = Doomed(call.text_key, call.version or "", *told)
    with call.opened() as workspace:
        removed = _remove(call, workspace, doomed)
        settle(call, workspace, f"delete {call.text_key}")
    return Reply(204, _removal_headers(removed))


def delete_objects(call: Call, body: bytes) -> Reply:
    """Answer ``POST ?delete``."""
    deletion = parse_deletion(body)
    with call.opened() as workspace:
        told = [_delete_one(call, workspace, doomed, deletion) for doomed in deletion.objects]
        settle(call, workspace, f"delete {len(deletion.objects)} objects")
    return Reply(200, [("content-type", "application/xml")], document("DeleteResult", *told))


def read_tags(headers: Mapping[str, str]) -> Tags:
    """Return the tags that a writer sends along. Raises ``InvalidTag`` for one that tells a label."""
    tags = parse_tag_header(headers["x-amz-tagging"]) if headers.get("x-amz-tagging") else ()
    return without_labels(tags, ())


def refuse_unsupported(headers: Mapping[str, str]) -> None:
    """Raise ``NotImplemented`` for what a client must not believe it got."""
    check_encryption(headers)
    for name, what in _UNSUPPORTED.items():
        if name in headers:
            raise S3Fault("NotImplemented", f"{name} is not implemented: there are no {what}")
    storage = headers.get("x-amz-storage-class", "STANDARD")
    if storage != "STANDARD":
        raise S3Fault("InvalidStorageClass", elements={"StorageClassRequested": storage})


def seal_single(key: CustomerKey, size: int, entropy: Callable[[int], bytes]) -> Seal:
    """Return the seal of `size` bytes that are sealed in one go. Raises ``MissingContentLength`` when their number is not known."""
    if size == UNKNOWN:
        raise S3Fault("MissingContentLength")
    return replace(make_seal(key, entropy), spans=(draw_span(size, entropy),))


def _demand_private(call: Call, workspace: Workspace) -> None:
    """Raise ``AccessDenied`` for an ACL that a bucket was told to block; otherwise an ACL is accepted and opens nothing."""
    if call.headers.get("x-amz-acl", "") not in PUBLIC_ACLS:
        return
    told = call.door.notes.find(f"bucket/{workspace.branch}")[1].get("public_block")
    if told and told["BlockPublicAcls"]:
        raise S3Fault("AccessDenied", "The bucket blocks public ACLs.")


def _put(call: Call, plan: BodyPlan, content: CheckedContent, sidecar: Sidecar, tags: Tags, key: CustomerKey | None) -> Stored:
    with call.opened() as workspace:
        _demand_private(call, workspace)
        if call.key.endswith(b"/") and plan.length == 0 and not is_conditional(call.headers):
            content.read(1)
            settings = settings_of(call.door, workspace.branch)
            if not settings.versioning:
                return store_directory(call, workspace, with_checksum(replace(sidecar, etag=EMPTY_MD5), content.checksum), tags)
        draft = Draft(lambda: with_checksum(replace(sidecar, etag=tag_content(content.md5, key)), content.checksum), tags)
        sealed = turn_content(content, key, sidecar.seal.spans if sidecar.seal else ())
        return store_object(call, workspace, draft, publish_content(workspace, sealed))


def _delete_one(call: Call, workspace: Workspace, doomed: Doomed, deletion: Deletion) -> str:
    try:
        removed = _remove(call, workspace, doomed)
    except Fault as fault:
        code, message = describe_fault(fault)
        return group("Error", tag("Key", doomed.key), _version_tag(doomed.version), tag("Code", code), tag("Message", message))
    if deletion.quiet:
        return ""
    return group("Deleted", tag("Key", doomed.key), _version_tag(doomed.version), *_marker_tags(doomed, removed))


def _remove(call: Call, workspace: Workspace, doomed: Doomed) -> Removed:
    key = doomed.key.encode()
    if len(key) > MAX_KEY:
        return Removed()
    expected = Expected(doomed.etag, doomed.modified, doomed.size)
    if doomed.version:
        return remove_version(call, workspace, key, doomed.version, expected)
    return remove_object(call, workspace, key, expected)


def _removal_headers(removed: Removed) -> Headers:
    return render_version(removed.version) + ([("x-amz-delete-marker", "true")] if removed.marker else [])


def _version_tag(version: str) -> str:
    return tag("VersionId", version) if version else ""


def _marker_tags(doomed: Doomed, removed: Removed) -> Sequence[str]:
    if not removed.marker:
        return ()
    return (tag("DeleteMarker", True), tag("DeleteMarkerVersionId", doomed.version or removed.version))

"""What S3's own ways of giving access say here, where the policy and leases alone give it.

1. The owner has full control and nobody else anything: that is what ACLs say, and an ACL that says so may be set.
2. Nothing is ever public. A bucket blocks public access from the start; its block can be read, set and removed as in S3, and
   removing it makes nothing public.
3. Ownership is ``BucketOwnerEnforced``, as in S3 since ACLs are off by default; any other is ``NotImplemented``.
4. There are no object locks: what needs one is refused in the words S3 has for buckets without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interfaces.s3.call import Call, owner_of
from interfaces.s3.documents import PUBLIC_ACLS, parse_ownership, parse_public_block
from interfaces.s3.faults import S3Fault
from interfaces.s3.listing import render_owner
from interfaces.s3.markup import document, group, tag
from interfaces.s3.seeing import see_object
from interfaces.s3.settings import settings_of
from interfaces.web.asgi import Reply

_XML = [("content-type", "application/xml")]
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_NO_LOCKS: Mapping[str, tuple[str, str]] = {
    "PUT object-lock": ("InvalidBucketState", "Object Lock configuration cannot be enabled on existing buckets"),
    "object": ("InvalidRequest", "Bucket is missing Object Lock Configuration"),
}


def get_bucket_acl(call: Call) -> Reply:
    """Answer ``GET ?acl`` of a bucket."""
    with call.opened() as workspace:
        return Reply(200, _XML, _full_control(owner_of(workspace)))


def get_object_acl(call: Call) -> Reply:
    """Answer ``GET ?acl`` of an object."""
    with call.opened() as workspace:
        see_object(call, workspace, call.key)
        return Reply(200, _XML, _full_control(owner_of(workspace)))


def put_acl(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?acl``: only what is so already."""
    canned = call.headers.get("x-amz-acl", "")
    with call.opened() as workspace:
        if canned in PUBLIC_ACLS and not body:
            raise S3Fault("AccessDenied", "Public access is blocked: the policy and leases give access, never an ACL.")
        if body or canned != "private" or any(name.startswith("x-amz-grant-") for name in call.headers):
            raise S3Fault(
                "NotImplemented", "Access is given by the policy and by leases, not by ACLs; only the canned ACL private is accepted."
            )
        if call.key:
            see_object(call, workspace, call.key)
        return Reply(200)


def get_policy_status(call: Call) -> Reply:
    """Answer ``GET ?policyStatus``."""
    with call.opened():
        return Reply(200, _XML, document("PolicyStatus", tag("IsPublic", False)))


def get_public_block(call: Call) -> Reply:
    """Answer ``GET ?publicAccessBlock``."""
    with call.opened() as workspace:
        block = settings_of(call.door, workspace.branch).public_block
    if block is None:
        raise S3Fault("NoSuchPublicAccessBlockConfiguration", elements={"BucketName": call.bucket})
    return Reply(200, _XML, document("PublicAccessBlockConfiguration", *(tag(name, value) for name, value in block.items())))


def put_public_block(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?publicAccessBlock``."""
    call.ask("bucket.set", bucket=call.bucket, public_block=parse_public_block(body))
    return Reply(200)


def delete_public_block(call: Call) -> Reply:
    """Answer ``DELETE ?publicAccessBlock``."""
    call.ask("bucket.set", bucket=call.bucket, public_block=None)
    return Reply(204)


def get_ownership(call: Call) -> Reply:
    """Answer ``GET ?ownershipControls``."""
    with call.opened() as workspace:
        ownership = settings_of(call.door, workspace.branch).ownership
    if not ownership:
        raise S3Fault("OwnershipControlsNotFoundError", elements={"BucketName": call.bucket})
    return Reply(200, _XML, document("OwnershipControls", group("Rule", tag("ObjectOwnership", ownership))))


def put_ownership(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?ownershipControls``."""
    call.ask("bucket.set", bucket=call.bucket, ownership=parse_ownership(body))
    return Reply(200)


def delete_ownership(call: Call) -> Reply:
    """Answer ``DELETE ?ownershipControls``."""
    call.ask("bucket.set", bucket=call.bucket, ownership="")
    return Reply(204)


def refuse_lock(name: str) -> Callable[[Call], Reply]:
    """Return the answer to what needs an object lock: `name` is ``object``, or the operation of a bucket."""

    def answer(call: Call) -> Reply:
        with call.opened() as workspace:
            if call.key:
                see_object(call, workspace, call.key)
        code, message = _NO_LOCKS[name]
        raise S3Fault(code, message)

    return answer


def _full_control(owner: str) -> bytes:
    grantee = f'<Grantee xmlns:xsi="{_XSI}" xsi:type="CanonicalUser">{tag("ID", owner)}{tag("DisplayName", owner)}</Grantee>'
    grant = group("Grant", grantee, tag("Permission", "FULL_CONTROL"))
    return document("AccessControlPolicy", render_owner(owner), group("AccessControlList", grant))

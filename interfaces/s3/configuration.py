"""What buckets have no settings for, answered honestly.

1. Reading a configuration that cannot exist here is what S3 says where none was made; setting one is ``NotImplemented``, never a success.
2. Access is the policy's and the lease's alone: the owner has full control, nobody else anything, and an ACL that says so may be set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interfaces.s3.call import Call, owner_of
from interfaces.s3.faults import S3Fault
from interfaces.s3.listing import render_owner
from interfaces.s3.markup import document, group, tag
from interfaces.s3.seeing import see_object
from interfaces.web.asgi import Reply

_XML = [("content-type", "application/xml")]
_XSI = "http://www.w3.org/2001/XMLSchema-instance"

ABSENT: Mapping[str, str] = {
    "encryption": "ServerSideEncryptionConfigurationNotFoundError",
    "lifecycle": "NoSuchLifecycleConfiguration",
    "object-lock": "ObjectLockConfigurationNotFoundError",
    "ownershipControls": "OwnershipControlsNotFoundError",
    "policy": "NoSuchBucketPolicy",
    "policyStatus": "NoSuchBucketPolicy",
    "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
    "replication": "ReplicationConfigurationNotFoundError",
    "website": "NoSuchWebsiteConfiguration",
}
"""What S3 says where a bucket was never told about a subresource."""

EMPTY: Mapping[str, bytes] = {
    "accelerate": document("AccelerateConfiguration"),
    "logging": document("BucketLoggingStatus"),
    "notification": document("NotificationConfiguration"),
    "requestPayment": document("RequestPaymentConfiguration", tag("Payer", "BucketOwner")),
}
"""The documents of subresources that every bucket has."""

REMOVABLE = frozenset({"encryption", "lifecycle", "ownershipControls", "policy", "publicAccessBlock", "replication", "website"})
"""Removing what is not there is a success in S3."""


def get_absent(subresource: str) -> Callable[[Call], Reply]:
    """Return the answer to reading a subresource of a bucket."""

    def answer(call: Call) -> Reply:
        with call.opened():
            if subresource in EMPTY:
                return Reply(200, _XML, EMPTY[subresource])
            raise S3Fault(ABSENT[subresource], elements={"BucketName": call.bucket})

    return answer


def delete_absent(call: Call) -> Reply:
    """Answer the removal of a configuration that cannot be there."""
    with call.opened():
        return Reply(204)


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
    if body or call.headers.get("x-amz-acl", "") != "private" or any(name.startswith("x-amz-grant-") for name in call.headers):
        raise S3Fault(
            "NotImplemented", "Access is given by the policy and by leases, not by ACLs; only the canned ACL private is accepted."
        )
    with call.opened() as workspace:
        if call.key:
            see_object(call, workspace, call.key)
        return Reply(200)


def _full_control(owner: str) -> bytes:
    grantee = f'<Grantee xmlns:xsi="{_XSI}" xsi:type="CanonicalUser">{tag("ID", owner)}{tag("DisplayName", owner)}</Grantee>'
    grant = group("Grant", grantee, tag("Permission", "FULL_CONTROL"))
    return document("AccessControlPolicy", render_owner(owner), group("AccessControlList", grant))

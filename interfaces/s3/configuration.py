"""What buckets have no settings for, answered honestly.

1. Reading a configuration that cannot exist here is what S3 says where none was made; removing it succeeds, as in S3.
2. Setting one is ``NotImplemented``, never a success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interfaces.s3.call import Call
from interfaces.s3.faults import S3Fault
from interfaces.s3.markup import document, tag
from interfaces.web.asgi import Reply

_XML = [("content-type", "application/xml")]

ABSENT: Mapping[str, str] = {
    "encryption": "ServerSideEncryptionConfigurationNotFoundError",
    "lifecycle": "NoSuchLifecycleConfiguration",
    "object-lock": "ObjectLockConfigurationNotFoundError",
    "policy": "NoSuchBucketPolicy",
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

REMOVABLE = frozenset({"encryption", "lifecycle", "policy", "replication", "website"})
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

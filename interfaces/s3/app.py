"""The S3 door: an ASGI application that authenticates, names the operation and hands it to its module.

1. Nothing of a request is believed before its signature is; only then is a bucket, a key or a body looked at.
2. An operation that may wait for the disk runs in the pool; a read of an object begins on the event loop, where it costs a turn less.
3. The door keeps nothing between two requests: uploads, versions and settings are notes, bytes are in the tree or staged.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from interfaces.faults import Fault
from interfaces.port import Control
from interfaces.s3 import access, buckets, configuration, copying, listing, multipart, origins, reading, tagging, uploads, writing
from interfaces.s3.call import Call, Door
from interfaces.s3.faults import S3Fault
from interfaces.s3.payload import check_body
from interfaces.s3.refusals import HOST_ID, render_fault
from interfaces.s3.routing import name_operation, split_target
from interfaces.s3.signatures import authenticate
from interfaces.web.asgi import Receive, Reply, Request, Scope, Send
from interfaces.web.bodies import read_body
from interfaces.web.exchange import Exchange
from interfaces.web.guard import LOOPBACK_NAMES, check_host
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool

MAX_DOCUMENT = 2 << 20
"""Bytes of the largest XML document that is read: a completion of 10,000 parts."""

Operation = Callable[[Call], Awaitable[Reply]]


def blocking(act: Callable[[Call], Reply]) -> Operation:
    """Return an operation that runs in the pool."""

    async def run(call: Call) -> Reply:
        return await call.door.pool.run(act, call)

    return run


def with_document(act: Callable[[Call, bytes], Reply], *, checksums: bool = True) -> Operation:
    """Return an operation that runs in the pool once the document it needs has arrived, been verified, and fits.

    `checksums` tells whether the checksum in the headers is that of the document.
    """

    async def run(call: Call) -> Reply:
        plan = call.plan(checksums=checksums)
        body = check_body(plan, await read_body(call.request, MAX_DOCUMENT, call.door.limits))
        return await call.door.pool.run(act, call, body)

    return run


def with_optional_document(act: Callable[[Call, bytes], Reply]) -> Operation:
    """Return an operation whose document may be missing, its length included."""
    required = with_document(act)

    async def run(call: Call) -> Reply:
        if call.headers.get("content-length", "0") == "0" and "transfer-encoding" not in call.headers:
            return await call.door.pool.run(act, call, b"")
        return await required(call)

    return run


OPERATIONS: Mapping[str, Operation] = {
    "GET service": blocking(buckets.list_buckets),
    "PUT bucket": with_optional_document(buckets.create_bucket),
    "HEAD bucket": blocking(buckets.head_bucket),
    "DELETE bucket": blocking(buckets.delete_bucket),
    "GET bucket": blocking(listing.list_by_marker),
    "GET bucket list-type": blocking(listing.list_by_token),
    "GET bucket versions": blocking(listing.list_versions),
    "GET bucket uploads": blocking(uploads.list_uploads),
    "GET bucket location": blocking(buckets.get_location),
    "GET bucket versioning": blocking(buckets.get_versioning),
    "PUT bucket versioning": with_document(buckets.put_versioning),
    "GET bucket tagging": blocking(buckets.get_tagging),
    "PUT bucket tagging": with_document(buckets.put_tagging),
    "DELETE bucket tagging": blocking(buckets.delete_tagging),
    "GET bucket acl": blocking(access.get_bucket_acl),
    "PUT bucket acl": with_optional_document(access.put_acl),
    "POST bucket delete": with_document(writing.delete_objects),
    "GET bucket policyStatus": blocking(access.get_policy_status),
    "GET bucket publicAccessBlock": blocking(access.get_public_block),
    "PUT bucket publicAccessBlock": with_document(access.put_public_block),
    "DELETE bucket publicAccessBlock": blocking(access.delete_public_block),
    "GET bucket ownershipControls": blocking(access.get_ownership),
    "PUT bucket ownershipControls": with_document(access.put_ownership),
    "DELETE bucket ownershipControls": blocking(access.delete_ownership),
    "PUT bucket object-lock": blocking(access.refuse_lock("PUT object-lock")),
    **{
        f"{method} object {name}": blocking(access.refuse_lock("object"))
        for method in ("GET", "PUT")
        for name in ("retention", "legal-hold")
    },
    "GET bucket cors": blocking(origins.get_cors),
    "PUT bucket cors": with_document(origins.put_cors),
    "DELETE bucket cors": blocking(origins.delete_cors),
    "GET object": reading.get_object,
    "HEAD object": reading.head_object,
    "GET object attributes": blocking(reading.get_attributes),
    "PUT object": writing.put_object,
    "PUT object copy": blocking(copying.copy_object),
    "DELETE object": blocking(writing.delete_object),
    "GET object tagging": blocking(tagging.get_tagging),
    "PUT object tagging": with_document(tagging.put_tagging),
    "DELETE object tagging": blocking(tagging.delete_tagging),
    "GET object acl": blocking(access.get_object_acl),
    "PUT object acl": with_optional_document(access.put_acl),
    "POST object uploads": blocking(multipart.create_upload),
    "PUT object uploadId": multipart.upload_part,
    "PUT object uploadId copy": blocking(copying.copy_part),
    "GET object uploadId": blocking(uploads.list_parts),
    "POST object uploadId": with_document(multipart.complete_upload, checksums=False),
    "DELETE object uploadId": blocking(multipart.abort_upload),
    **{f"GET bucket {name}": blocking(configuration.get_absent(name)) for name in (*configuration.ABSENT, *configuration.EMPTY)},
    **{f"DELETE bucket {name}": blocking(configuration.delete_absent) for name in configuration.REMOVABLE},
}
"""Every operation the door knows, by the name `routing.name_operation` gives it."""

_METHODS = frozenset({"DELETE", "GET", "HEAD", "POST", "PUT"})
_MEANINGLESS = frozenset({"POST bucket", "POST object", "PUT service", "DELETE service", "POST service", "HEAD service"})


class S3Door:
    """The application."""

    def __init__(
        self,
        control: Control,
        *,
        pool: Pool | None = None,
        limits: Limits | None = None,
        names: frozenset[str] = LOOPBACK_NAMES,
        clock: Callable[[], float] = time.time,
        entropy: Callable[[int], bytes] = os.urandom,
        nap: Callable[[float], None] = time.sleep,
    ) -> None:
        """Serve the branches of `control` as buckets to who asks for one of `names`; the rest is where time and randomness come in."""
        limits = limits or Limits()
        pool = pool or Pool("s3", limits.threads, limits.uploads)
        self._names = names
        self._door = Door(control, control.notes("s3"), pool, limits, clock, entropy, nap)
        # Every request is signed, and a browser signs nothing by itself: which pages may ask is the bucket's to say (`origins`).
        self._exchange = Exchange("s3", pool, render_fault, names=None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._exchange.serve(scope, receive, send, self.answer)

    async def answer(self, request: Request) -> Reply:
        """Return the answer to a request. Raises `Fault`."""
        check_host(request.headers, self._names, below=True)
        bucket, key = split_target(request.raw_path, request.headers.get("host", ""), self._names)
        if request.method == "OPTIONS":
            return origins.answer_preflight(self._door.notes, request, bucket)
        page = origins.tell_page(self._door.notes, request, bucket)
        try:
            signed = authenticate(self._door.control, request, self._door.clock())
            call = Call(self._door, request, signed, bucket, key)
            reply = await self._operation(call)(call)
        except Fault as fault:
            if not page:
                raise
            reply = render_fault(fault, request)
        own = (("x-amz-request-id", request.request_id), ("x-amz-id-2", HOST_ID))
        return Reply(reply.status, (*reply.headers, *own, *page), reply.body, reply.pieces, reply.release)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run while the server does."""
        yield

    def drain(self) -> None:
        """Let answers that never end come to an end: there are none."""

    def _operation(self, call: Call) -> Operation:
        method = call.request.method
        name = name_operation(method, call.bucket, call.key, call.parameters, call.headers)
        operation = OPERATIONS.get(name)
        if operation is not None:
            return operation
        if method not in _METHODS or name in _MEANINGLESS:
            raise S3Fault("MethodNotAllowed", elements={"Method": method, "ResourceType": name.partition(" ")[2].upper()})
        raise S3Fault("NotImplemented", f"{name} is not implemented.")

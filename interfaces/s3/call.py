"""One request, understood: who asks, for which bucket and key, and how its workspace is opened.

1. A bucket is a branch, a bucket made by S3 (an alias of one), a snapshot or a commit; the last two are read-only.
2. What the caller cannot see does not exist, buckets included.
3. A call lives as long as its request; workspaces are opened for one act and closed after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Control, Document, Notes, Workspace
from interfaces.s3.faults import S3Fault
from interfaces.s3.payload import BodyPlan, plan_body
from interfaces.s3.routing import check_version
from interfaces.s3.signatures import Signed
from interfaces.web.asgi import Request
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Door:
    """What every call works with: `clock` gives seconds since the epoch, `entropy` random bytes, `nap` waits for seconds."""

    control: Control
    notes: Notes
    pool: Pool
    limits: Limits
    clock: Callable[[], float]
    entropy: Callable[[int], bytes]
    nap: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `bucket` and `key` are empty where it names none."""

    door: Door
    request: Request
    signed: Signed
    bucket: str
    key: bytes

    @property
    def caller(self) -> Caller:
        """Return who asks."""
        return self.signed.caller

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers by lower-case name."""
        return self.request.headers

    @property
    def parameters(self) -> Mapping[str, str]:
        """Return the query by name."""
        return self.request.parameters

    @property
    def version(self) -> str | None:
        """Return the id of the version that is asked for, None when none is. Raises ``InvalidArgument``."""
        id = self.parameters.get("versionId")
        return None if id is None else check_version(id)

    @property
    def text_key(self) -> str:
        """Return the key as it stands in documents."""
        return self.key.decode("utf-8", "replace")

    def plan(self, *, checksums: bool = True) -> BodyPlan:
        """Return what the body of the request has to be; `checksums` tells whether the checksum in its headers is that of the body."""
        return plan_body(self.headers, self.signed.payload, checksums=checksums)

    def start(self, bucket: str = "", at: str = "") -> Workspace:
        """Return the workspace of a bucket (the request's own when not said) or of a commit of it; the caller closes it.

        Raises ``AccessDenied`` where the request expects another owner of its bucket.
        """
        workspace = open_bucket(self.door.control, self.caller, bucket or self.bucket, at)
        expected = self.headers.get("x-amz-expected-bucket-owner") if bucket in {"", self.bucket} else None
        if expected is not None and expected != owner_of(workspace):
            workspace.close()
            raise S3Fault("AccessDenied", "The bucket belongs to another owner than the request expects.")
        return workspace

    @contextmanager
    def opened(self, bucket: str = "", at: str = "") -> Iterator[Workspace]:
        """Run a block with a workspace."""
        workspace = self.start(bucket, at)
        try:
            yield workspace
        finally:
            workspace.close()

    def ask(self, operation: str, **arguments: object) -> Document:
        """Return what an operation of the API says to the caller."""
        return self.door.control.call(self.caller, operation, arguments)


def open_bucket(control: Control, caller: Caller, bucket: str, at: str = "") -> Workspace:
    """Return the workspace of a bucket. Raises ``NoSuchBucket``."""
    try:
        return control.workspace(caller, bucket, at)
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
    if at:
        raise S3Fault("NoSuchVersion")
    try:
        return control.workspace(caller, MAIN, bucket)
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        raise S3Fault("NoSuchBucket", elements={"BucketName": bucket}) from fault


def owner_of(workspace: Workspace) -> str:
    """Return whose a bucket is: the role of its run, or the name of the branch."""
    return workspace.branch.partition("/")[0]

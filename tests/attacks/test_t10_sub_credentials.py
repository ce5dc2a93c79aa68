"""T10: a narrowed credential that escapes its narrowing. MinIO's service accounts (CVE-2025-62506), CVE-2022-24842."""

from __future__ import annotations

import base64
import hashlib
from contextlib import closing
from dataclasses import replace

import pytest

from interfaces.faults import Fault
from tests.attacks.stand import Stand
from tests.contract.doors.clients import HERE, OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.git import GIT
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.clients.inside import REQUESTS
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.model import Refused
from tests.contract.doors.site import Held
from tests.contract.doors.skipping import each_of
from trust.tokens import narrow_token

NARROW = {"p": ["work/deep/**"], "a": ["list", "read", "write"]}
OUTSIDE = ("work/a.txt", "README.md", "secret/plan.txt")


def narrowed(stand: Stand) -> Held:
    """Return a lease that its holder narrowed without asking anybody."""
    parent = stand.start()
    secret = narrow_token(parent.secret, NARROW)
    stand.control.authenticate(secret)  # from its first use on it is a lease of its own
    leases = stand.call("lease.list", run=parent.run)["items"]
    child = next(lease["lease"] for lease in leases if lease.get("parent") == parent.lease)
    return replace(parent, lease=child, secret=secret)


def reaches(client: object, path: str) -> bool:
    try:
        client.read(path)  # type: ignore[attr-defined]
    except Refused:
        return False
    return True


@pytest.mark.parametrize("door", each_of(*(door for door in (REQUESTS, *OTHERS) if door is not MOUNT)))
def test_no_door_gives_a_narrowed_lease_what_it_gave_away(stand: Stand, door: Door) -> None:
    if door is REQUESTS or door in HERE:
        held = narrowed(stand)
        credentials = stand.start(paths=["work/deep/**"], actions=["list", "read", "write"]) if door in (S3, GIT) else held
        with closing(door.connect(stand, credentials)) as client:
            assert reaches(client, "work/deep/c.txt")
            for path in OUTSIDE:
                assert not reaches(client, path), path
                with pytest.raises(Refused):
                    client.write(path, b"x")
            with pytest.raises(Refused):
                client.delete("work/deep/c.txt")
        assert stand.denials(credentials)


def test_no_handler_of_s3_forgets_the_narrowing(stand: Stand) -> None:
    held = stand.start(paths=["work/deep/**"])
    with closing(S3.connect(stand, held)) as client:
        assert isinstance(client, Bucket)
        listed = client.ask("GET", "", query="list-type=2").body + client.ask("GET", "", query="versions").body
        assert b"work/deep/c.txt" in listed
        for hidden in (b"work/a.txt", b"README", b"secret", b"inbox"):
            assert hidden not in listed
        for source in ("work/a.txt", "secret/plan.txt"):
            with pytest.raises(Refused):
                client.ask("PUT", "work/deep/taken", headers={"x-amz-copy-source": f"/{client._bucket}/{source}"})
            with pytest.raises(Refused):
                client.ask("GET", source, query="tagging")
            with pytest.raises(Refused):
                upload_in_parts(client, source)
        batch = b"<Delete><Object><Key>work/a.txt</Key></Object><Object><Key>secret/plan.txt</Key></Object></Delete>"
        client.ask("POST", "", batch, {"content-md5": _md5(batch)}, query="delete")
        for query in ("policy", "acl", "versioning", "cors"):
            with pytest.raises(Refused):
                client.ask("PUT", "", b"<x/>", {"content-md5": _md5(b"<x/>")}, query=query)
    for path in ("work/a.txt", "secret/plan.txt"):
        assert stand.nas.get_file(held.branch, path) is not None


def upload_in_parts(client: Bucket, key: str) -> None:
    """Begin, which decides nothing yet, send a part, and finish, which does."""
    upload = client.ask("POST", key, query="uploads").body.partition(b"<UploadId>")[2].partition(b"</UploadId>")[0].decode()
    etag = client.ask("PUT", key, b"x", query=f"partNumber=1&uploadId={upload}").headers["etag"]
    parts = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
    client.ask("POST", key, parts.encode(), query=f"uploadId={upload}")


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def test_a_narrowed_lease_administers_answers_and_widens_nothing(stand: Stand) -> None:
    held = narrowed(stand)
    caller = stand.control.authenticate(held.secret)
    for operation, arguments in (
        ("lease.narrow", {"lease": held.lease, "paths": ["**"]}),
        ("lease.narrow", {"lease": held.lease, "actions": ["list", "read", "write", "delete"]}),
        ("run.start", {"role": "coder"}),
        ("principal.add", {"name": "mallory", "kind": "human"}),
        ("token.issue", {"principal": "owner"}),
        ("label.mark", {"pattern": "**", "origin": "external"}),
        ("account.list", {}),
        ("record.list", {}),
        ("record.export", {"folder": "/tmp/x"}),
        ("proposal.make", {"run": held.run}),
        ("gate.bypass", {"rule": "many-files-ask", "for": 60, "reason": "me"}),
        ("daemon.stop", {}),
    ):
        try:
            told = stand.control.call(caller, operation, arguments)
        except Fault:
            continue
        assert all(item["run"] == held.run for item in told["items"]), (operation, told)


def test_a_lease_that_ended_takes_its_unseen_grandchildren_along(stand: Stand) -> None:
    parent = stand.start()
    grandchild = narrow_token(narrow_token(parent.secret, NARROW), {"p": ["work/deep/c.txt"]})
    stand.revoke(parent)
    with pytest.raises(Fault):
        stand.control.call(stand.control.authenticate(grandchild), "run.show", {"run": parent.run})
    with closing(HTTP.connect(stand, replace(parent, secret=grandchild))) as client, pytest.raises(Refused, match="401 revoked"):
        client.read("work/deep/c.txt")

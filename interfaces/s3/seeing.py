"""Which object a request means: now, or at a version; a file, or a directory that is a key.

1. Now is what stands in the tree. A version is what stands in the tree when that is it, else what its commit holds.
2. A delete marker tells that a key existed, so only those hear of one who may see a version of it.
3. Whoever opens a workspace here closes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes, Workspace
from interfaces.s3.call import Call, open_bucket
from interfaces.s3.conditions import State
from interfaces.s3.documents import Tags
from interfaces.s3.faults import S3Fault
from interfaces.s3.keys import check_key
from interfaces.s3.shelf import Shelf, Shelves, Version, version_of
from interfaces.s3.sidecars import SIDECAR, Sidecar, label_tags, sidecar_of, tags_of
from interfaces.s3.tree import find_directory, find_object
from interfaces.s3.walking import is_directory_key

EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


@dataclass(frozen=True, slots=True)
class Seen:
    """An object: its node (None: a directory, which has no content), what S3 knows of it, and its version (empty: none are kept).

    `tags` are what clients set, `labels` what the appliance says of the content, as tags.
    """

    node: int | None
    size: int
    modified_ns: int
    sidecar: Sidecar
    version: str = ""
    tags: Tags = ()
    labels: Tags = ()

    @property
    def all_tags(self) -> Tags:
        """Return the tags that clients set, and those that tell a label."""
        return (*self.labels, *self.tags)

    @property
    def state(self) -> State:
        """Return what conditions compare."""
        return State(self.sidecar.etag, self.modified_ns // 1_000_000_000)


@contextmanager
def opened_object(call: Call) -> Iterator[tuple[Workspace, Seen]]:
    """Run a block with the object a call names, at the version it names, and the workspace it is in."""
    with opened_source(call, call.bucket, call.key, call.version) as found:
        yield found


@contextmanager
def opened_source(call: Call, bucket: str, key: bytes, version: str | None) -> Iterator[tuple[Workspace, Seen]]:
    """Run a block with an object of any bucket, at a version (None: now), and the workspace it is in."""
    workspace, seen = open_object(call, bucket, key, version)
    try:
        yield workspace, seen
    finally:
        workspace.close()


def open_object(call: Call, bucket: str, key: bytes, version: str | None) -> tuple[Workspace, Seen]:
    """Return an object at a version (None: now), and the workspace it is in, which the caller closes.

    Raises ``NoSuchKey``, ``NoSuchVersion``, and ``MethodNotAllowed`` for the version of a delete marker.
    """
    workspace = call.start(bucket)
    try:
        if version is None:
            return workspace, see_object(call, workspace, key)
        found = see_version(call, workspace, key, version)
        if isinstance(found, Seen):
            return workspace, found
    except BaseException:
        workspace.close()
        raise
    workspace.close()
    return _open_at_commit(call, bucket, key, found)


def see_object(call: Call, workspace: Workspace, key: bytes) -> Seen:
    """Return the object of a key now. Raises ``NoSuchKey``, with what tells of a delete marker."""
    found = find_now(workspace, check_key(key))
    if found is None:
        raise _explain_absence(call, workspace, key)
    return found


def find_now(workspace: Workspace, key: bytes) -> Seen | None:
    """Return the object of a key now, None when there is none."""
    try:
        standing = find_object(workspace, key).standing
        assert standing is not None
        return see_file(workspace, standing)
    except Fault as fault:
        # A file that went between two looks was not there.
        if fault.kind not in {Kind.NOT_FOUND, Kind.STALE}:
            raise
        return _find_directory_now(workspace, key) if key.endswith(b"/") else None


def see_file(workspace: Workspace, attributes: Attributes) -> Seen:
    """Return a file as the object it is."""
    xattrs = workspace.xattrs(attributes.node)
    sidecar = sidecar_of(attributes, xattrs)
    tags, labels = tags_of(attributes, xattrs), label_tags(workspace.label(attributes.node))
    return Seen(attributes.node, attributes.size, attributes.mtime_ns, sidecar, sidecar.version, tags, labels)


def see_directory(workspace: Workspace, attributes: Attributes) -> Seen:
    """Return a directory as the object without content that it is."""
    xattrs = workspace.xattrs(attributes.node)
    sidecar = sidecar_of(attributes, xattrs) if SIDECAR in xattrs else Sidecar(EMPTY_MD5)
    labels = label_tags(workspace.label(attributes.node))
    return Seen(None, 0, attributes.mtime_ns, sidecar, tags=tags_of(attributes, xattrs), labels=labels)


def see_version(call: Call, workspace: Workspace, key: bytes, id: str) -> Seen | Version:
    """Return a version: as the object it is, when it stands in the tree, else as its entry.

    Raises ``NoSuchVersion``, and ``MethodNotAllowed`` for a delete marker.
    """
    shelf = Shelves(call.door, workspace.branch).find(check_key(key))
    now = find_now(workspace, key)
    if now is not None and version_of(shelf, now.sidecar) == id:
        return replace(now, version=id)
    version = shelf.find(id)
    if version is None or (version.is_marker and not is_known(call, shelf)):
        raise S3Fault("NoSuchVersion", elements={"Key": key.decode("utf-8", "replace"), "VersionId": id})
    if version.is_marker:
        raise S3Fault("MethodNotAllowed", headers={"x-amz-delete-marker": "true", "x-amz-version-id": id, "allow": "DELETE"})
    return version


def is_known(call: Call, shelf: Shelf, bucket: str = "") -> bool:
    """Tell whether the caller may know that there was such a key: a lease, when it sees a version of it."""
    if not call.caller.lease:
        return True
    kept = next((version for version in shelf.versions if version.commit), None)
    if kept is None:
        return False
    past = open_bucket(call.door.control, call.caller, bucket or call.bucket, kept.commit)
    try:
        return find_now(past, shelf.key) is not None
    finally:
        past.close()


def _open_at_commit(call: Call, bucket: str, key: bytes, version: Version) -> tuple[Workspace, Seen]:
    past = call.start(bucket, version.commit)
    try:
        standing = find_object(past, key).standing
    except BaseException:
        past.close()
        raise
    assert standing is not None
    assert version.sidecar is not None
    labels = label_tags(past.label(standing.node))
    return past, Seen(standing.node, standing.size, version.modified, version.sidecar, version.id, version.tags, labels)


def _find_directory_now(workspace: Workspace, key: bytes) -> Seen | None:
    try:
        directory = find_directory(workspace, key).standing
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return None
    assert directory is not None
    if not is_directory_key(workspace, directory, empty=not workspace.list(directory.node)):
        return None
    return see_directory(workspace, directory)


def _explain_absence(call: Call, workspace: Workspace, key: bytes) -> S3Fault:
    shelf = Shelves(call.door, workspace.branch).find(key)
    headers = {"x-amz-delete-marker": "false"}
    if shelf.versions and shelf.versions[0].is_marker and is_known(call, shelf):
        headers = {"x-amz-delete-marker": "true", "x-amz-version-id": shelf.versions[0].id}
    return S3Fault("NoSuchKey", elements={"Key": key.decode("utf-8", "replace")}, headers=headers)

"""Putting objects into the tree and taking them out, with versions where a bucket keeps them.

1. A put is one publication: bytes, sidecar and tags take the name together, under the condition of the request.
2. In a bucket with versions the shelf of the key is held from the moment the bytes are complete until the commit is made: what a
   version says is what its commit holds.
3. What stands there and no version holds (another door wrote it, or it is older than versioning) becomes one before it is replaced.
4. A removal is on stable storage when it is told; directories that S3 made go with their last key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Access, Attach, Attributes, Condition, Workspace
from interfaces.s3.call import Call, Door
from interfaces.s3.conditions import Expected, State, condition_of_write, demand_same, judge_removal
from interfaces.s3.documents import Tags
from interfaces.s3.faults import S3Fault
from interfaces.s3.settings import ENABLED, SUSPENDED, settings_of
from interfaces.s3.shelf import NULL, Shelf, Shelves, Version, version_of
from interfaces.s3.sidecars import SIDECAR, TAGS, Sidecar, encode_tags, etag_of, sidecar_of, tags_of
from interfaces.s3.tree import IMPLIED, Place, find_directory, find_leftover, find_object, make_directory, make_place, prune
from interfaces.web.contents import HandleContent

FILE_MODE = 0o644
ANYTHING = Expected()
_MOVED = frozenset({Kind.STALE, Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY, Kind.IS_A_DIRECTORY, Kind.NOT_EMPTY})
"""What a store says of a place that was there a moment ago."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An object about to be: its tags, and its sidecar, asked for once the bytes are complete."""

    sidecar: Callable[[], Sidecar]
    tags: Tags = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was stored. `version` is empty where the put made none of its own."""

    attributes: Attributes
    sidecar: Sidecar
    version: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal did: the version it took away or made (empty: none), and whether that is a delete marker."""

    version: str = ""
    marker: bool = False


Publish = Callable[[Place, Condition | None, Attach], Attributes]
"""Puts the bytes of an object at a place."""


@contextmanager
def _repeatable() -> Iterator[None]:
    """Run a block that others may pull the tree away from under: then its client is told to repeat what it asked for."""
    try:
        yield
    except S3Fault:
        raise
    except Fault as fault:
        if fault.kind in _MOVED:
            raise S3Fault("ServiceUnavailable", "The directories of the key changed meanwhile. Try again.") from fault
        raise


@_repeatable()
def store_object(call: Call, workspace: Workspace, draft: Draft, publish: Publish) -> Stored:
    """Put the object that `publish` has the bytes of under the key of a call, under its conditions.

    Raises ``ServiceUnavailable`` when others changed the directories of the key meanwhile: clients repeat it, and the next try gets there.
    """
    place = make_place(workspace, call.key)
    condition = condition_of_write(call.headers, place.standing, lambda found: etag_of(found, workspace.xattrs(found.node)))
    versioning = settings_of(call.door, workspace.branch).versioning
    if versioning:
        return _store_version(call, workspace, draft, lambda attach: publish(place, condition, attach), versioning)
    return _store_plain(draft, lambda attach: publish(place, condition, attach))


def store_directory(call: Call, workspace: Workspace, sidecar: Sidecar, tags: Tags) -> Stored:
    """Make the directory that the key of a call names an object without content."""
    node = make_directory(workspace, call.key)
    workspace.set_xattr(node, SIDECAR, sidecar.encode(b""))
    if tags:
        workspace.set_xattr(node, TAGS, encode_tags(tags, b""))
    workspace.sync()
    return Stored(workspace.attributes(node), sidecar)


@_repeatable()
def remove_object(call: Call, workspace: Workspace, key: bytes, expected: Expected = ANYTHING) -> Removed:
    """Remove an object while it is what `expected` says, or put a delete marker over it; what is not there is removed.

    The caller makes it durable (`settle`). Raises ``PreconditionFailed``.
    """
    place = _place_of(workspace, key)
    versioning = settings_of(call.door, workspace.branch).versioning
    if not versioning:
        _remove_place(workspace, key, place, _judge_place(workspace, place, expected))
        return Removed()
    with Shelves(call.door, workspace.branch).held(key) as shelf:
        if place is None and expected:
            if not shelf.versions:
                # Nothing was ever there, so that nothing can be what is expected; S3 counts that as deleted.
                return Removed()
            judge_removal(expected, None, 0)
        condition = _judge_place(workspace, place, expected)
        if place is not None and place.standing is not None:
            _keep_standing(call.door, workspace, shelf, place.standing, versioning)
        _remove_place(workspace, key, place, condition)
        marker = Version(_choose_id(call.door, versioning), int(call.door.clock() * 1e9))
        shelf.put(marker)
    return Removed(marker.id, marker=True)


@_repeatable()
def remove_version(call: Call, workspace: Workspace, key: bytes, id: str, expected: Expected = ANYTHING) -> Removed:
    """Take a version away for good, while it is what `expected` says; the one before it becomes the object, when it was the newest."""
    with Shelves(call.door, workspace.branch).held(key) as shelf:
        place = _place_of(workspace, key)
        current = _version_in_tree(workspace, shelf, place)
        version = shelf.find(id)
        if version is None and current != id:
            return Removed(id)
        if version is not None:
            state = State(version.sidecar.etag, version.modified // 1_000_000_000) if version.sidecar else None
            judge_removal(expected, state, version.size)
        else:
            _judge_place(workspace, place, expected)
        newest = shelf.versions[0].id if shelf.versions else ""
        if current == id:
            _remove_place(workspace, key, place, None)
        shelf.drop(id)
        if id in (current, newest):
            _uncover(call, workspace, shelf, present=place is not None and current != id)
    return Removed(id, marker=version is not None and version.is_marker)


def settle(call: Call, workspace: Workspace, what: str) -> None:
    """Make removals durable, as a commit where the bucket keeps versions."""
    if settings_of(call.door, workspace.branch).versioning == ENABLED:
        workspace.commit(f"s3: {what}")
    workspace.sync()


def publish_content(workspace: Workspace, content: object) -> Publish:
    """Return what publishes bytes that are read from `content`."""
    return lambda place, condition, attach: workspace.publish(
        place.parent,
        place.name,
        FILE_MODE,
        content,  # type: ignore[arg-type]
        condition=condition,
        attach=attach,
    )


def _store_plain(draft: Draft, publish: Callable[[Attach], Attributes]) -> Stored:
    sidecar = Sidecar("")

    def attach(content: bytes) -> Mapping[bytes, bytes | None]:
        nonlocal sidecar
        sidecar = draft.sidecar()
        return {SIDECAR: sidecar.encode(content), TAGS: encode_tags(draft.tags, content)}

    attributes = publish(attach)
    return Stored(attributes, sidecar)


def _store_version(call: Call, workspace: Workspace, draft: Draft, publish: Callable[[Attach], Attributes], versioning: str) -> Stored:
    id = _choose_id(call.door, versioning)
    with ExitStack() as holding:
        shelf = Shelf(call.key)
        sidecar = Sidecar("")

        def attach(content: bytes) -> Mapping[bytes, bytes | None]:
            nonlocal shelf, sidecar
            shelf = holding.enter_context(Shelves(call.door, workspace.branch).held(call.key))
            place = _place_of(workspace, call.key)
            if place is not None and place.standing is not None:
                _keep_standing(call.door, workspace, shelf, place.standing, versioning)
            sidecar = replace(draft.sidecar(), version=id)
            return {SIDECAR: sidecar.encode(content), TAGS: encode_tags(draft.tags, content)}

        attributes = publish(attach)
        commit = workspace.commit(f"s3: put {call.text_key}")["commit"] if versioning == ENABLED else ""
        shelf.put(Version(id, attributes.mtime_ns, sidecar, commit, attributes.size, draft.tags))
    return Stored(attributes, sidecar, "" if id == NULL else id)


def _keep_standing(door: Door, workspace: Workspace, shelf: Shelf, standing: Attributes, versioning: str) -> None:
    """Have what stands there in a commit and on the shelf, unless it is the ``null`` version that is about to be replaced."""
    xattrs = workspace.xattrs(standing.node)
    sidecar = sidecar_of(standing, xattrs)
    known = shelf.find(sidecar.version) if sidecar.version else None
    id = known.id if known else (NULL if not shelf.versions else door.entropy(16).hex())
    if (known and known.commit) or (id == NULL and versioning == SUSPENDED):
        return
    commit = workspace.commit("s3: what stood here before")["commit"]
    version = Version(id, standing.mtime_ns, replace(sidecar, version=id), commit, standing.size, tags_of(standing, xattrs))
    if known:
        shelf.change(version)
    else:
        shelf.put(version)


def _judge_place(workspace: Workspace, place: Place | None, expected: Expected) -> Condition | None:
    """Judge the removal of what stands at a place, and return what judges it again in the moment of it."""
    if place is None or place.standing is None or not expected:
        return None
    standing = place.standing
    sidecar = sidecar_of(standing, workspace.xattrs(standing.node))
    judge_removal(expected, State(sidecar.etag, standing.mtime_ns // 1_000_000_000), standing.size)
    return demand_same(standing)


def _version_in_tree(workspace: Workspace, shelf: Shelf, place: Place | None) -> str:
    """Return the version that stands in the tree, empty when nothing does."""
    if place is None or place.standing is None:
        return ""
    return version_of(shelf, sidecar_of(place.standing, workspace.xattrs(place.standing.node)))


def _uncover(call: Call, workspace: Workspace, shelf: Shelf, *, present: bool) -> None:
    """Make the newest version that is left the object, unless something else stands there."""
    if present or not shelf.versions or shelf.versions[0].is_marker:
        return
    newest = shelf.versions[0]
    assert newest.sidecar is not None
    sidecar = newest.sidecar

    def attach(content: bytes) -> Mapping[bytes, bytes | None]:
        return {SIDECAR: sidecar.encode(content), TAGS: encode_tags(newest.tags, content)}

    with call.opened(at=newest.commit) as past:
        source = find_object(past, shelf.key).standing
        assert source is not None
        handle = past.open(source.node, Access())
        try:
            place = make_place(workspace, shelf.key)
            workspace.publish(place.parent, place.name, FILE_MODE, HandleContent(handle), attach=attach)
        finally:
            handle.close()


def _place_of(workspace: Workspace, key: bytes) -> Place | None:
    try:
        return find_object(workspace, key)
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return None


def _remove_place(workspace: Workspace, key: bytes, place: Place | None, condition: Condition | None) -> None:
    if place is not None:
        _unlink(workspace, place, condition)
        if (leftover := find_leftover(workspace, place)) is not None:
            _unlink(workspace, leftover, None)
        prune(workspace, place.parent)
    elif key.endswith(b"/"):
        _remove_directory(workspace, key)


def _unlink(workspace: Workspace, place: Place, condition: Condition | None) -> None:
    try:
        workspace.unlink(place.parent, place.name, condition=condition)
    except Fault as fault:
        # Somebody else removed it at the same time: it is gone, which is what was asked for.
        if isinstance(fault, S3Fault) or fault.kind not in {Kind.NOT_FOUND, Kind.STALE}:
            raise


def _remove_directory(workspace: Workspace, key: bytes) -> None:
    """Remove a directory that is itself a key; one with keys below it stays, as an implied one."""
    try:
        place = find_directory(workspace, key)
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return
    assert place.standing is not None
    node = place.standing.node
    known = SIDECAR in workspace.xattrs(node)
    if not workspace.list(node):
        workspace.rmdir(place.parent, place.name)
        if place.parent != ROOT:
            prune(workspace, place.parent)
    elif known:
        workspace.set_xattr(node, SIDECAR, None)
        workspace.set_xattr(node, IMPLIED, b"1")


def _choose_id(door: Door, versioning: str) -> str:
    return door.entropy(16).hex() if versioning == ENABLED else NULL

"""Tags of an object, now or of a version.

1. Tags belong to the content they were set on; an object that is put again has those of its put.
2. A label is shown as tags that nobody sets: who reads all tags and sends them back sends those back too, and nothing else is taken.
3. Setting tags changes no content, makes no version and moves no date.
"""

from __future__ import annotations

from dataclasses import replace

from interfaces.port import Workspace
from interfaces.s3.call import Call
from interfaces.s3.documents import Tags, parse_tagging
from interfaces.s3.markup import document, group, tag
from interfaces.s3.reading import render_version
from interfaces.s3.seeing import Seen, opened_object, see_object, see_version
from interfaces.s3.shelf import Shelves
from interfaces.s3.sidecars import TAGS, encode_tags, without_labels
from interfaces.web.asgi import Reply


def get_tagging(call: Call) -> Reply:
    """Answer ``GET ?tagging`` of an object."""
    with opened_object(call) as (_, seen):
        told = (group("Tag", tag("Key", name), tag("Value", value)) for name, value in seen.all_tags)
        body = document("Tagging", group("TagSet", *told))
        return Reply(200, [("content-type", "application/xml"), *render_version(seen.version)], body)


def put_tagging(call: Call, body: bytes) -> Reply:
    """Answer ``PUT ?tagging`` of an object."""
    return _set(call, parse_tagging(body), 200)


def delete_tagging(call: Call) -> Reply:
    """Answer ``DELETE ?tagging`` of an object."""
    return _set(call, (), 204)


def _set(call: Call, tags: Tags, status: int) -> Reply:
    with call.opened() as workspace:
        id = call.version
        found = see_object(call, workspace, call.key) if id is None else see_version(call, workspace, call.key, id)
        tags = without_labels(tags, found.labels if isinstance(found, Seen) else ())
        id = id or (found.version if isinstance(found, Seen) else "")
        if id:
            _set_on_shelf(call, workspace, id, tags)
        if isinstance(found, Seen):
            _set_on_file(workspace, found, tags)
    return Reply(status, render_version(id))


def _set_on_shelf(call: Call, workspace: Workspace, id: str, tags: Tags) -> None:
    with Shelves(call.door, workspace.branch).held(call.key) as shelf:
        version = shelf.find(id)
        if version is not None:
            shelf.change(replace(version, tags=tags))


def _set_on_file(workspace: Workspace, seen: Seen, tags: Tags) -> None:
    if seen.node is None:
        return
    attributes = workspace.attributes(seen.node)
    encoded = encode_tags(tags, attributes.content)
    if encoded is not None or TAGS in workspace.xattrs(seen.node):
        workspace.set_xattr(seen.node, TAGS, encoded)
        workspace.sync()

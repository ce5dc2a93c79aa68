"""The tree of a branch as resources: what is listed, what is read, and how a client completes a path.

1. Listed is what lies in the root of the caller's branch, in pages; the template names everything else. A whole tree has no place in a list
   that clients read to its end.
2. What somebody labelled is told with its label beside the content, in ``_meta``.
3. A directory reads as the list of its names, a file as text where it is UTF-8, else as base64. Both are bounded.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import stat
from contextlib import closing

import mcp_types as types

from interfaces.faults import Fault, Kind
from interfaces.mcp.files import list_page
from interfaces.mcp.labels import Label, caution
from interfaces.mcp.paths import TEMPLATE, parse_path, parse_uri, render_path, render_uri
from interfaces.mcp.places import require_file
from interfaces.mcp.room import MAIN, Room
from interfaces.port import Access, Attributes, Workspace, walk
from interfaces.web.contents import read_exactly

MAX_READ = 2 << 20
"""Bytes of a file that one resource gives."""

_PAGE = 100
_NAMES = 1000
_COMPLETIONS = 100
_DIRECTORY = "inode/directory"

TEMPLATES = [
    types.ResourceTemplate(
        name="tree",
        title="A file or directory of a branch",
        uri_template=TEMPLATE,
        description="branch: a branch or run, such as main or coder/run-1; path: names joined by '/'.",
    )
]


def list_resources(room: Room, cursor: str) -> types.ListResourcesResult:
    """Return a page of the resources in the root of the caller's branch. Blocks. Raises `Fault`."""
    with room.open({}) as workspace:
        document = list_page(workspace, b"", cursor, _PAGE)
        branch = workspace.branch
    found = [_resource(branch, item["path"], item["type"], item["size"]) for item in document["items"]]
    return types.ListResourcesResult(resources=found, next_cursor=document["cursor"])


def read_resource(room: Room, uri: str) -> types.ReadResourceResult:
    """Return what is at a URI. Blocks. Raises `Kind.INVALID`, `Kind.NOT_FOUND`, `Kind.TOO_LARGE`."""
    branch, path = parse_uri(uri)
    with room.open({"branch": branch}) as workspace:
        attributes = walk(workspace, path)
        if stat.S_ISDIR(attributes.st_mode):
            text = json.dumps(list_page(workspace, path, "", _NAMES), ensure_ascii=False)
            return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)])
        require_file(workspace, path, attributes)
        content, label = _read(workspace, path, attributes), workspace.label(attributes.node)
        return types.ReadResourceResult(contents=[_contents(uri, path, content, label)])


def complete(room: Room, argument: str, value: str, known: dict[str, str]) -> list[str]:
    """Return how a variable of the template can go on; `known` are those that are settled. Blocks. Raises `Fault`."""
    if argument == "branch":
        with room.open({}) as workspace:
            return [name for name in sorted({workspace.branch, MAIN}) if name.startswith(value)]
    if argument != "path":
        return []
    directory, _, prefix = value.rpartition("/")
    with room.open({"branch": known["branch"]} if known.get("branch") else {}) as workspace:
        path = parse_path(directory)
        entries = workspace.list(walk(workspace, path).node)
    start = f"{render_path(path)}/" if path else ""
    names = [(render_path(name), found) for name, found in entries]
    matching = [f"{start}{name}{'/' if stat.S_ISDIR(found.st_mode) else ''}" for name, found in names if name.startswith(prefix)]
    return matching[: _COMPLETIONS + 1]


def _resource(branch: str, path: str, kind: str, size: int) -> types.Resource:
    mime = _DIRECTORY if kind == "directory" else mimetypes.guess_type(path)[0]
    return types.Resource(name=path, uri=render_uri(branch, parse_path(path)), mime_type=mime, size=size if kind == "file" else None)


def _read(workspace: Workspace, path: bytes, attributes: Attributes) -> bytes:
    if attributes.size > MAX_READ:
        raise Fault(
            Kind.TOO_LARGE,
            f"{render_path(path)} has {attributes.size} bytes, a resource at most {MAX_READ}",
            hint="use the tool read, page by page",
        )
    with closing(workspace.open(attributes.node, Access())) as handle:
        return read_exactly(handle, 0, attributes.size)


def _contents(uri: str, path: bytes, content: bytes, label: Label) -> types.TextResourceContents | types.BlobResourceContents:
    mime = mimetypes.guess_type(render_path(path))[0]
    meta = {"agent-nas/label": dict(label), "agent-nas/caution": caution([(render_path(path), label)])} if label else None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        blob = base64.b64encode(content).decode()
        return types.BlobResourceContents(uri=uri, mime_type=mime or "application/octet-stream", blob=blob, _meta=meta)
    return types.TextResourceContents(uri=uri, mime_type=mime or "text/plain", text=text, _meta=meta)

"""Tools that change files: write, edit, move, copy, delete, make a directory.

1. What was answered is on stable storage. A file is replaced whole, so nobody ever sees half of a change.
2. `edit` changes the content it looked at or nothing: when another writer was faster it looks again, a few times, and then says so.
3. Nothing is replaced by a move or a copy, and no directory is deleted with its content, unless the call says so.
"""

from __future__ import annotations

import binascii
import io
import stat
from contextlib import closing
from functools import partial

from interfaces.faults import Fault, Kind
from interfaces.mcp.paths import parse_path, render_path
from interfaces.mcp.places import (
    DIRECTORY_MODE,
    FILE_MODE,
    find_existing,
    find_file,
    find_place,
    look_again,
    remove_name,
    remove_tree,
    require_absent,
    require_file,
    require_tag,
    tag_of,
)
from interfaces.mcp.room import Arguments, Room
from interfaces.mcp.tool import BRANCH, COUNT, FLAG, NAME, PATH, TEXT, Answer, Effect, Tool, described, gives, takes
from interfaces.port import Access, Attributes, Condition, Handle, Workspace, walk

MAX_EDITED = 8 << 20
"""Bytes of a file that can be edited in place."""
MAX_REMOVED = 10_000
"""Names that one call removes."""

_CONTEXT = 3
_EXCERPT = 4000
_PIECE = 1 << 20
_WRITE = frozenset({"write"})


def read_whole(workspace: Workspace, path: bytes, attributes: Attributes) -> bytes:
    """Return the content of a file that is small enough to be edited. Raises `Kind.TOO_LARGE`."""
    if attributes.size > MAX_EDITED:
        raise Fault(
            Kind.TOO_LARGE, f"{render_path(path)} has {attributes.size} bytes", hint=f"files up to {MAX_EDITED >> 20} MiB can be edited"
        )
    with closing(workspace.open(attributes.node, Access())) as handle:
        return _read_all(handle)


def read_all_text(workspace: Workspace, path: bytes, attributes: Attributes) -> str:
    """Return a file that is small enough to be edited as text. Raises `Kind.TOO_LARGE`, `Kind.UNSUPPORTED`."""
    try:
        return read_whole(workspace, path, attributes).decode()
    except UnicodeDecodeError as error:
        raise Fault(Kind.UNSUPPORTED, f"{render_path(path)} is not UTF-8 text", hint="write it whole, with content_base64") from error


def put_file(
    workspace: Workspace, path: bytes, content: bytes, condition: Condition | None = None, *, create: bool = True
) -> tuple[Attributes, bool]:
    """Put a file at a path, making the directories on the way when `create` says so, and return it and whether there was none.

    Raises what `condition` raises.
    """
    parent, name = find_place(workspace, path, create=create)
    existing = find_existing(workspace, parent, name)
    if existing is not None:
        require_file(workspace, path, existing)
    attributes = workspace.publish(parent, name, FILE_MODE, io.BytesIO(content), condition=condition)
    return attributes, existing is None


def move(workspace: Workspace, source: bytes, target: bytes, *, replace: bool) -> Attributes:
    """Move a file or a directory, with the directories on the way of its new path, and return it. Raises `Kind.EXISTS`."""
    parent, name = find_place(workspace, source, create=False)
    workspace.lookup(parent, name)
    into, target_name = find_place(workspace, target, create=True)
    if not replace:
        require_absent(target)(find_existing(workspace, into, target_name))
    workspace.rename(parent, name, into, target_name, replace=replace)
    workspace.sync()
    return workspace.lookup(into, target_name)


def replace_text(text: str, wanted: str, replacement: str, *, everywhere: bool) -> tuple[str, int, int]:
    """Return the text with `wanted` replaced, how often, and the line of the first one.

    Raises `Kind.CONFLICT` when `wanted` is not there, or there several times without `everywhere`.
    """
    count = text.count(wanted)
    if count == 0:
        raise Fault(
            Kind.CONFLICT, "old_text does not appear verbatim", hint="read the file again and copy the text exactly, with its indentation"
        )
    if count > 1 and not everywhere:
        lines = ", ".join(map(str, lines_of(text, wanted)[:20]))
        raise Fault(
            Kind.CONFLICT,
            f"old_text appears {count} times, in lines {lines}",
            hint='give more of its surroundings, or say "replace_all": true',
        )
    line = text.count("\n", 0, text.index(wanted)) + 1
    return text.replace(wanted, replacement), count, line


def lines_of(text: str, wanted: str) -> list[int]:
    """Return the lines in which a text begins to appear."""
    lines, at, line, counted = [], text.find(wanted), 1, 0
    while at >= 0:
        line += text.count("\n", counted, at)
        lines.append(line)
        counted, at = at, text.find(wanted, at + len(wanted))
    return lines


def numbered_excerpt(text: str, first: int, last: int) -> str:
    """Return the lines from `first` to `last` and a few around them, numbered."""
    lines = text.split("\n")
    start = max(first - _CONTEXT, 1)
    chosen = lines[start - 1 : last + _CONTEXT]
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(chosen, start))[:_EXCERPT]


def _write(room: Room, arguments: Arguments) -> Answer:
    path, content = parse_path(arguments["path"]), _content(arguments)
    condition: Condition | None = None
    if "if_tag" in arguments:
        condition = require_tag(path, arguments["if_tag"])
    elif arguments.get("create_only"):
        condition = require_absent(path)
    with room.open(arguments) as workspace:
        attributes, created = put_file(workspace, path, content, condition, create="if_tag" not in arguments)
        document = _describe(workspace, path, attributes) | {"created": created}
    return Answer(document, f"{'Created' if created else 'Replaced'} {document['path']} ({attributes.size} bytes), tag {document['tag']}")


def _content(arguments: Arguments) -> bytes:
    if ("content" in arguments) == ("content_base64" in arguments):
        raise Fault(Kind.INVALID, "a file is written with content or with content_base64", hint="give exactly one of them")
    if "content" in arguments:
        text: str = arguments["content"]
        return text.encode()
    try:
        return binascii.a2b_base64(arguments["content_base64"], strict_mode=True)
    except ValueError as error:
        raise Fault(Kind.INVALID, f"content_base64: {error}", hint="write plain base64 without line breaks") from error


def _edit(room: Room, arguments: Arguments) -> Answer:
    path = parse_path(arguments["path"])
    # One that asked for a certain content is told when it is gone; the others want their text replaced in what is there.
    faster = frozenset({Kind.STALE}) if "if_tag" in arguments else frozenset({Kind.STALE, Kind.PRECONDITION})
    with room.open(arguments) as workspace:
        return look_again(partial(_edit_once, workspace, path, arguments), faster)


def _edit_once(workspace: Workspace, path: bytes, arguments: Arguments) -> Answer:
    attributes = find_file(workspace, path)
    tag = arguments.get("if_tag") or tag_of(attributes)
    require_tag(path, tag)(attributes)
    text = read_all_text(workspace, path, attributes)
    edited, count, line = replace_text(text, arguments["old_text"], arguments["new_text"], everywhere=arguments.get("replace_all", False))
    changed, _ = put_file(workspace, path, edited.encode(), require_tag(path, tag), create=False)
    last = line + arguments["new_text"].count("\n")
    document = _describe(workspace, path, changed) | {"replacements": count, "line": line}
    return Answer(document, f"Replaced {count} in {document['path']}, tag {document['tag']}\n{numbered_excerpt(edited, line, last)}")


def _move(room: Room, arguments: Arguments) -> Answer:
    source, target = parse_path(arguments["path"]), parse_path(arguments["to"])
    with room.open(arguments) as workspace:
        document = _describe(workspace, target, move(workspace, source, target, replace=arguments.get("replace", False)))
    return Answer(document, f"Moved {render_path(source)} to {document['path']}")


def _copy(room: Room, arguments: Arguments) -> Answer:
    source, target = parse_path(arguments["path"]), parse_path(arguments["to"])
    with room.open(arguments) as workspace:
        find_file(workspace, source)  # before directories are made for what is not there
        parent, name = find_place(workspace, target, create=True)
        condition = None if arguments.get("replace") else require_absent(target)
        copied = look_again(lambda: workspace.copy(find_file(workspace, source).node, parent, name, condition=condition))
        document = _describe(workspace, target, copied)
    return Answer(document, f"Copied {render_path(source)} to {document['path']}")


def _delete(room: Room, arguments: Arguments) -> Answer:
    path = parse_path(arguments["path"])
    with room.open(arguments) as workspace:
        parent, name = find_place(workspace, path, create=False)
        if arguments.get("recursive"):
            removed = remove_tree(workspace, parent, name, MAX_REMOVED)
        else:
            remove_name(workspace, parent, name, workspace.lookup(parent, name))
            removed = 1
        workspace.sync()
        document = {"branch": workspace.branch, "path": render_path(path), "removed": removed}
    return Answer(document, f"Deleted {document['path']} ({removed} names)")


def _make_directory(room: Room, arguments: Arguments) -> Answer:
    path = parse_path(arguments["path"])
    with room.open(arguments) as workspace:
        parent, name = find_place(workspace, path, create=True)
        existing = find_existing(workspace, parent, name)
        if existing is None:
            workspace.mkdir(parent, name, DIRECTORY_MODE)
            workspace.sync()
        elif not stat.S_ISDIR(existing.st_mode):
            raise Fault(Kind.EXISTS, f"{render_path(path)} exists and is not a directory", hint="choose another name")
        document = _describe(workspace, path, walk(workspace, path)) | {"created": existing is None}
    return Answer(document, f"{document['path']} {'is made' if document['created'] else 'was there'}")


def _describe(workspace: Workspace, path: bytes, attributes: Attributes) -> dict[str, object]:
    return {"branch": workspace.branch, "path": render_path(path), "size": attributes.size, "tag": tag_of(attributes)}


def _read_all(handle: Handle) -> bytes:
    content = bytearray()
    while piece := handle.read(len(content), _PIECE):
        content += piece
    return bytes(content)


_FILE = {"branch": NAME, "path": TEXT, "size": COUNT, "tag": TEXT}
_IF_TAG = {"type": "string", "minLength": 1, "maxLength": 256, "description": "Only when the file still has this tag (from read)."}
_TO = described(PATH, "The path it is to have.")
_REPLACE = described(FLAG, "Replace what is there; default: false.")

TOOLS = (
    Tool(
        name="write",
        title="Write a file",
        description=(
            "Writes a whole file, making the directories on its way, and returns when it is on stable storage. Replaces what is there"
            " unless create_only. With if_tag it writes only over the content you read."
        ),
        effect=Effect.REPLACES,
        takes=takes(
            {"path": PATH},
            content=described(TEXT, "The text of the file."),
            content_base64=described(TEXT, "Its bytes instead, as base64."),
            branch=BRANCH,
            create_only=FLAG,
            if_tag=_IF_TAG,
        ),
        gives=gives(**_FILE, created=FLAG),
        run=_write,
        needs=_WRITE,
        idempotent=True,
    ),
    Tool(
        name="edit",
        title="Edit a file",
        description=(
            "Replaces an exact piece of text in a file. old_text must appear exactly once, or say replace_all. Nothing is changed when it"
            " does not appear, or when the file changes meanwhile."
        ),
        effect=Effect.REPLACES,
        takes=takes({"path": PATH, "old_text": TEXT | {"minLength": 1}, "new_text": TEXT}, branch=BRANCH, replace_all=FLAG, if_tag=_IF_TAG),
        gives=gives(**_FILE, replacements=COUNT, line=COUNT),
        run=_edit,
        needs=frozenset({"read", "write"}),
    ),
    Tool(
        name="move",
        title="Move or rename",
        description="Moves a file or a directory, making the directories on its new way.",
        effect=Effect.REPLACES,
        takes=takes({"path": PATH, "to": _TO}, branch=BRANCH, replace=_REPLACE),
        gives=gives(**_FILE),
        run=_move,
        needs=_WRITE,
    ),
    Tool(
        name="copy",
        title="Copy a file",
        description="Copies one file within a branch, making the directories on its way.",
        effect=Effect.REPLACES,
        takes=takes({"path": PATH, "to": _TO}, branch=BRANCH, replace=_REPLACE),
        gives=gives(**_FILE),
        run=_copy,
        needs=frozenset({"read", "write"}),
        idempotent=True,
    ),
    Tool(
        name="delete",
        title="Delete",
        description="Deletes a file or an empty directory; with recursive a directory with everything below it.",
        effect=Effect.REPLACES,
        takes=takes({"path": PATH}, branch=BRANCH, recursive=FLAG),
        gives=gives(branch=NAME, path=TEXT, removed=COUNT),
        run=_delete,
        needs=frozenset({"delete"}),
    ),
    Tool(
        name="make_directory",
        title="Make a directory",
        description="Makes a directory with those on its way; one that is there is fine.",
        effect=Effect.ADDS,
        takes=takes({"path": PATH}, branch=BRANCH),
        gives=gives(**_FILE, created=FLAG),
        run=_make_directory,
        needs=_WRITE,
        idempotent=True,
    ),
)

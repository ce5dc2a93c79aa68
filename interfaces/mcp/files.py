"""Tools that look: list a directory, read a file, search."""

from __future__ import annotations

import stat
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from interfaces.finding import Bounds, Match, Outcome, Query, labels_of_matches, search
from interfaces.mcp.labels import Label, caution, labelled
from interfaces.mcp.paths import join_path, parse_path, render_path
from interfaces.mcp.places import find_file, look_again, tag_of, type_of
from interfaces.mcp.reading import (
    TOKEN_BYTES,
    Page,
    Position,
    find_line,
    parse_position,
    read_base64,
    read_text,
    render_position,
)
from interfaces.mcp.room import Arguments, Room
from interfaces.mcp.tool import (
    BRANCH,
    COMMIT,
    COUNT,
    CURSOR,
    FLAG,
    MAYBE_TEXT,
    NAME,
    PATH,
    TEXT,
    Answer,
    Effect,
    Tool,
    described,
    gives,
    gives_page,
    limit,
    page,
    takes,
)
from interfaces.port import Access, Attributes, Document, Workspace, walk

DEFAULT_TOKENS = 8_000
MAX_TOKENS = 100_000
MAX_LINES = 1_000_000
SEARCH_BOUNDS = Bounds(matches=500, files=2_000)

_LIST_LIMIT = 200
_SEARCH_LIMIT = 50


def describe_entry(path: bytes, attributes: Attributes, label: Label) -> Document:
    """Return what a listing says of one path."""
    modified = datetime.fromtimestamp(max(attributes.mtime_ns, 0) // 1_000_000_000 % 253_402_300_799, UTC)
    document = {
        "path": render_path(path),
        "type": type_of(attributes),
        "size": attributes.size,
        "modified": modified.isoformat().replace("+00:00", "Z"),
    }
    return labelled(document, label)


def list_page(workspace: Workspace, path: bytes, cursor: str, most: int) -> Document:
    """Return a page of what is at a path: the names of a directory, or the one other thing that is there."""
    attributes = walk(workspace, path)
    if not stat.S_ISDIR(attributes.st_mode):
        return page([describe_entry(path, attributes, workspace.label(attributes.node))], None)
    entries = workspace.list(attributes.node)
    start = bisect_right(entries, parse_path(cursor), key=lambda entry: entry[0]) if cursor else 0
    shown = entries[start : start + most]
    more, labels = start + most < len(entries), workspace.labels(attributes.node, shown)
    items = [describe_entry(join_path(path, name), found, labels.get(name, {})) for name, found in shown]
    return page(items, render_path(shown[-1][0]) if more else None)


def _list(room: Room, arguments: Arguments) -> Answer:
    with room.open(arguments) as workspace:
        document = list_page(
            workspace, parse_path(arguments.get("path", "")), arguments.get("cursor", ""), arguments.get("limit", _LIST_LIMIT)
        )
        return Answer({"branch": workspace.branch, **document}, _listed(document), _more(document))


def _listed(document: Document) -> str:
    lines = [
        f"{item['type']:<9} {item['size']:>10} {item['path']}{'/' if item['type'] == 'directory' else ''}" for item in document["items"]
    ]
    return "\n".join(lines) or "(empty)"


def _more(document: Document) -> str:
    return f"[There is more: repeat with cursor {document['cursor']!r}]" if document["truncated"] else ""


def _read(room: Room, arguments: Arguments) -> Answer:
    path = parse_path(arguments["path"])
    with room.open(arguments) as workspace:
        attributes, shown = look_again(partial(_read_page, workspace, path, arguments))
        return _answer_page(workspace.branch, path, attributes, shown, workspace.label(attributes.node))


def _read_page(workspace: Workspace, path: bytes, arguments: Arguments) -> tuple[Attributes, Page]:
    attributes = find_file(workspace, path)
    tag, raw = tag_of(attributes), arguments.get("encoding") == "base64"
    budget = arguments.get("max_tokens", DEFAULT_TOKENS) * TOKEN_BYTES
    with closing(workspace.open(attributes.node, Access())) as handle:
        if cursor := arguments.get("cursor"):
            start = parse_position(cursor, tag)
        else:
            start = Position(0, 0, tag) if raw else find_line(handle, arguments.get("first_line", 1), tag)
        shown = read_base64(handle, start, budget) if raw else read_text(handle, start, arguments.get("lines", MAX_LINES), budget)
    return attributes, shown


def _answer_page(branch: str, path: bytes, attributes: Attributes, shown: Page, label: Label) -> Answer:
    cursor = render_position(shown.following) if shown.following else None
    document = {
        "branch": branch,
        "path": render_path(path),
        "text": shown.text,
        "first_line": shown.first_line,
        "last_line": shown.last_line,
        "size": attributes.size,
        "tag": tag_of(attributes),
        "cursor": cursor,
        "truncated": cursor is not None,
    }
    where = f"lines {shown.first_line} to {shown.last_line}" if shown.first_line else "a part"
    note = f"[{where} of a file of {attributes.size} bytes; for what follows repeat with cursor {cursor!r}]" if cursor else ""
    return Answer(labelled(document, label), shown.text or "(nothing there)", note, caution([(render_path(path), label)]))


def _search(room: Room, arguments: Arguments) -> Answer:
    query = Query(
        text=arguments.get("text", ""),
        glob=arguments.get("glob", "**"),
        below=parse_path(arguments.get("path", "")),
        ignore_case=arguments.get("ignore_case", False),
        limit=arguments.get("limit", _SEARCH_LIMIT),
    )
    with room.open(arguments) as workspace:
        outcome = search(workspace, query, SEARCH_BOUNDS, room.clock, cursor=arguments.get("cursor", ""))
        return _answer_search(workspace.branch, outcome, labels_of_matches(workspace, outcome))


def _answer_search(branch: str, outcome: Outcome, labels: Mapping[bytes, Label]) -> Answer:
    failures = [
        {"path": render_path(failure.path), "code": failure.fault.kind.value, "reason": failure.fault.message}
        for failure in outcome.failures
    ]
    document = {
        "branch": branch,
        **page([_describe_match(match, labels[match.path]) for match in outcome.matches], outcome.cursor),
        "stopped": outcome.stopped,
        "searched_files": outcome.files,
        "searched_bytes": outcome.bytes,
        "skipped_binary": outcome.binary,
        "failed": outcome.failed,
        "failures": failures,
    }
    lines = [f"{item['path']}:{item['line']}: {item['excerpt']}" if item["line"] else str(item["path"]) for item in document["items"]]
    warned = caution((render_path(match.path), labels[match.path]) for match in outcome.matches if match.line)
    return Answer(document, "\n".join(lines) or "(nothing found)", _search_note(document), warned)


def _search_note(document: Document) -> str:
    parts = []
    if document["truncated"]:
        parts.append(f"[Stopped at the bound of {document['stopped']}; there may be more: repeat with cursor {document['cursor']!r}]")
    if document["failed"]:
        first = document["failures"][0]
        parts.append(f"[{document['failed']} files could not be searched, the first one: {first['path']}: {first['reason']}]")
    return "\n".join(parts)


def _describe_match(match: Match, label: Label) -> Document:
    document = {"path": render_path(match.path), "type": type_of(match.attributes), "line": match.line, "excerpt": match.excerpt}
    return labelled(document, label)


TOOLS = (
    Tool(
        name="list",
        title="List a directory",
        description="Lists the names in a directory of a branch with type, size and time. For whole trees use search with a glob.",
        effect=Effect.READS,
        takes=takes(
            path=described(PATH, "The directory; default: the root."),
            branch=BRANCH,
            commit=COMMIT,
            limit=limit(_LIST_LIMIT, 1000),
            cursor=CURSOR,
        ),
        gives=gives_page(path=TEXT, type=NAME, size=COUNT, modified=TEXT),
        run=_list,
        needs=frozenset({"list"}),
    ),
    Tool(
        name="read",
        title="Read a file",
        description=(
            "Reads a text file, at most max_tokens of it. Begins at first_line or continues with a cursor. The answer's tag identifies the"
            " content: give it to write or edit as if_tag to change exactly what you read. Binary files: encoding base64."
        ),
        effect=Effect.READS,
        takes=takes(
            {"path": PATH},
            branch=BRANCH,
            commit=COMMIT,
            first_line={"type": "integer", "minimum": 1, "maximum": MAX_LINES, "default": 1},
            lines={"type": "integer", "minimum": 1, "maximum": MAX_LINES, "description": "At most so many lines."},
            max_tokens={"type": "integer", "minimum": 100, "maximum": MAX_TOKENS, "default": DEFAULT_TOKENS},
            encoding={"enum": ["text", "base64"], "default": "text"},
            cursor=CURSOR,
        ),
        gives=gives(
            branch=NAME,
            path=TEXT,
            text=TEXT,
            first_line=COUNT,
            last_line=COUNT,
            size=COUNT,
            tag=TEXT,
            cursor=MAYBE_TEXT,
            truncated=FLAG,
        ),
        run=_read,
        needs=frozenset({"read"}),
    ),
    Tool(
        name="search",
        title="Search",
        description=(
            "Finds files by glob (*.py at any depth, src/**/test_*), and with text the lines that contain it literally. Each file that is"
            " read counts as a read of your lease. failures names what could not be searched."
        ),
        effect=Effect.READS,
        takes=takes(
            text={"type": "string", "maxLength": 1000, "description": "Literal text within one line; leave out to find paths."},
            glob={
                "type": "string",
                "minLength": 1,
                "maxLength": 1000,
                "description": "Relative to path; without '/' it holds at any depth.",
            },
            path=described(PATH, "Where to search; default: everywhere."),
            branch=BRANCH,
            commit=COMMIT,
            ignore_case=FLAG,
            limit=limit(_SEARCH_LIMIT, SEARCH_BOUNDS.matches),
            cursor=CURSOR,
        ),
        gives=gives_page(path=TEXT, type=NAME, line=COUNT, excerpt=TEXT),
        run=_search,
        needs=frozenset({"list"}),
    ),
)

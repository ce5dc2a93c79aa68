"""The memory-tool convention over ``memory/``: view, create, str_replace, insert, delete, rename, with its paths, words and errors.

1. A path begins with ``/memories``, which stands for ``memory/`` of the branch. Nothing outside of it can be named.
2. Answers and errors have the words the convention gives them, so that a model trained on it reads what it knows. Other refusals (lease,
   budget, policy) read like those of every other tool.
3. A note that a run wrote after it read something from outside is shown behind the same caution as any file.
4. A note is replaced whole, and only while it has the content that was looked at.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from functools import partial

from interfaces.faults import Fault, Kind
from interfaces.mcp.changes import MAX_REMOVED, lines_of, move, numbered_excerpt, put_file, read_all_text
from interfaces.mcp.labels import caution
from interfaces.mcp.paths import parse_path, render_path
from interfaces.mcp.places import find_existing, find_file, find_place, look_again, remove_tree, require_absent, require_tag, tag_of
from interfaces.mcp.room import Arguments, Room
from interfaces.mcp.tool import BRANCH, TEXT, Answer, Effect, Tool, gives, takes
from interfaces.port import ROOT, Attributes, Workspace, walk

FOLDER = b"memory"
PREFIX = "/memories"
MAX_LINES = 999_999
MAX_SHOWN = 400_000
"""Characters of a note that one view shows."""

_LEVELS = 2
_MAX_QUOTED = 1000
_MAX_NAMES = 2_000
_UNITS = "BKMGT"


def parse_memory_path(text: str) -> bytes:
    """Return the path on the branch that a path of the convention stands for. Raises `Kind.INVALID`."""
    if text != PREFIX and not text.startswith(PREFIX + "/"):
        raise Fault(
            Kind.INVALID, f"the path {text!r} is outside of {PREFIX}", hint=f"write a path below {PREFIX}, for example {PREFIX}/notes.md"
        )
    return parse_path(FOLDER.decode() + text.removeprefix(PREFIX))


def render_memory_path(path: bytes) -> str:
    """Return the path of the convention for a path on the branch."""
    return PREFIX + render_path(path)[len(FOLDER) :]


def _view(room: Room, arguments: Arguments) -> Answer:
    text, path = arguments["path"], parse_memory_path(arguments["path"])
    with room.open(arguments) as workspace:
        if path == FOLDER and not _is_begun(workspace):
            return _told(_listed(text, [f"{render_size(0)}\t{PREFIX}"]))
        attributes = _find(workspace, path, f"The path {text} does not exist. Please provide a valid path.")
        if stat.S_ISDIR(attributes.st_mode):
            return _told(_directory(workspace, path, attributes, text))
        find_file(workspace, path)
        content, label = read_all_text(workspace, path, attributes), workspace.label(attributes.node)
        return _told(_numbered(content, arguments.get("view_range"), text), caution([(text, label)]))


def _directory(workspace: Workspace, path: bytes, attributes: Attributes, text: str) -> str:
    names: list[str] = []
    for below, found in _walk(workspace, path, attributes, _LEVELS):
        if len(names) == _MAX_NAMES:
            names.append("... (there is more: view a directory further down)")
            break
        names.append(f"{render_size(found.size)}\t{render_memory_path(below)}")
    return _listed(text, names)


def _listed(text: str, names: list[str]) -> str:
    return "\n".join([f"Here're the files and directories up to 2 levels deep in {text}, excluding hidden items and node_modules:", *names])


def _is_begun(workspace: Workspace) -> bool:
    """Tell whether there is a memory; one that nobody has written to yet is empty, not missing."""
    workspace.check()
    return find_existing(workspace, ROOT, FOLDER) is not None


def _walk(workspace: Workspace, path: bytes, attributes: Attributes, levels: int) -> Iterator[tuple[bytes, Attributes]]:
    yield path, attributes
    if not levels or not stat.S_ISDIR(attributes.st_mode):
        return
    for name, found in workspace.list(attributes.node):
        if not name.startswith(b".") and name != b"node_modules":
            yield from _walk(workspace, path + b"/" + name, found, levels - 1)


def _numbered(content: str, view_range: list[int] | None, text: str) -> str:
    lines = content.split("\n")
    if len(lines) > MAX_LINES:
        raise Fault(Kind.TOO_LARGE, f"File {text} exceeds maximum line limit of 999,999 lines.", hint="split it into smaller notes")
    first, last = view_range or (1, -1)
    if last == -1:
        last = len(lines)
    if not 1 <= first <= last:
        raise Fault(
            Kind.INVALID, f"Invalid `view_range`: {view_range}. The file has {len(lines)} lines", hint="write [first, last], or [first, -1]"
        )
    shown = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))
    if len(shown) > MAX_SHOWN:
        raise Fault(Kind.TOO_LARGE, f"{text} is too long to be shown at once", hint=f"view a part: view_range [{first}, {first + 500}]")
    return f"Here's the content of {text} with line numbers:\n{shown}"


def _create(room: Room, arguments: Arguments) -> Answer:
    text, path = arguments["path"], parse_memory_path(arguments["path"])
    if path == FOLDER:
        raise _exists(text)
    with room.open(arguments) as workspace:
        try:
            put_file(workspace, path, arguments["file_text"].encode(), require_absent(path))
        except Fault as fault:
            if fault.kind in {Kind.EXISTS, Kind.IS_A_DIRECTORY}:
                raise _exists(text) from fault
            raise
    return _told(f"File created successfully at: {text}")


def _exists(text: str) -> Fault:
    return Fault(Kind.EXISTS, f"Error: File {text} already exists", hint="change it with memory_str_replace or memory_insert")


def _str_replace(room: Room, arguments: Arguments) -> Answer:
    text, path, wanted = arguments["path"], parse_memory_path(arguments["path"]), arguments["old_str"]
    with room.open(arguments) as workspace:
        attributes, content = look_again(
            partial(_read_note, workspace, path, f"Error: The path {text} does not exist. Please provide a valid path.")
        )
        lines, quoted = lines_of(content, wanted), wanted[:_MAX_QUOTED]
        if not lines:
            message = f"No replacement was performed, old_str `{quoted}` did not appear verbatim in {text}."
            raise Fault(Kind.CONFLICT, message, hint="view the file and copy the text exactly")
        if len(lines) > 1:
            numbers = ", ".join(map(str, lines[:50]))
            message = (
                f"No replacement was performed. Multiple occurrences of old_str `{quoted}` in lines: {numbers}. Please ensure it is unique"
            )
            raise Fault(Kind.CONFLICT, message, hint="give more of its surroundings")
        replacement = arguments.get("new_str", "")
        edited = content.replace(wanted, replacement)
        put_file(workspace, path, edited.encode(), require_tag(path, tag_of(attributes)))
    excerpt = numbered_excerpt(edited, lines[0], lines[0] + replacement.count("\n"))
    return _told(f"The memory file has been edited. Here's the result of the change in {text}:\n{excerpt}")


def _insert(room: Room, arguments: Arguments) -> Answer:
    text, path, after = arguments["path"], parse_memory_path(arguments["path"]), arguments["insert_line"]
    with room.open(arguments) as workspace:
        attributes, content = look_again(partial(_read_note, workspace, path, f"Error: The path {text} does not exist"))
        lines = content.splitlines(keepends=True)
        if not 0 <= after <= len(lines):
            message = (
                f"Error: Invalid `insert_line` parameter: {after}. It should be within the range of lines of the file: [0, {len(lines)}]"
            )
            raise Fault(Kind.INVALID, message, hint="0 inserts before the first line")
        put_file(workspace, path, insert_text(lines, after, arguments["insert_text"]).encode(), require_tag(path, tag_of(attributes)))
    return _told(f"The file {text} has been edited.")


def insert_text(lines: list[str], after: int, text: str) -> str:
    """Return lines (with their ends) with a text inserted after one of them, each part beginning on a line of its own."""
    before, following = "".join(lines[:after]), "".join(lines[after:])
    if before and not before.endswith("\n"):
        before += "\n"
    if following and not text.endswith("\n"):
        text += "\n"
    return before + text + following


def _delete(room: Room, arguments: Arguments) -> Answer:
    text, path = arguments["path"], parse_memory_path(arguments["path"])
    if path == FOLDER:
        raise Fault(Kind.NOT_PERMITTED, f"Error: {PREFIX} itself cannot be deleted", hint="delete what is in it")
    with room.open(arguments) as workspace:
        _find(workspace, path, f"Error: The path {text} does not exist")
        remove_tree(workspace, *find_place(workspace, path, create=False), MAX_REMOVED)
        workspace.sync()
    return _told(f"Successfully deleted {text}")


def _rename(room: Room, arguments: Arguments) -> Answer:
    former, later = arguments["old_path"], arguments["new_path"]
    source, target = parse_memory_path(former), parse_memory_path(later)
    if FOLDER in {source, target}:
        raise Fault(Kind.NOT_PERMITTED, f"Error: {PREFIX} itself cannot be renamed", hint="rename what is in it")
    with room.open(arguments) as workspace:
        _find(workspace, source, f"Error: The path {former} does not exist")
        try:
            move(workspace, source, target, replace=False)
        except Fault as fault:
            if fault.kind is not Kind.EXISTS:
                raise
            hint = "choose another name, or delete what is there"
            raise Fault(Kind.EXISTS, f"Error: The destination {later} already exists", hint=hint) from fault
    return _told(f"Successfully renamed {former} to {later}")


def _read_note(workspace: Workspace, path: bytes, missing: str) -> tuple[Attributes, str]:
    """Return a note with its content; a directory is told to be missing, as the convention has it."""
    attributes = _find(workspace, path, missing)
    if stat.S_ISDIR(attributes.st_mode):
        raise Fault(Kind.NOT_FOUND, missing, hint="name a file: memory_view shows them")
    find_file(workspace, path)
    return attributes, read_all_text(workspace, path, attributes)


def _find(workspace: Workspace, path: bytes, missing: str) -> Attributes:
    try:
        return walk(workspace, path)
    except Fault as fault:
        workspace.check()
        if fault.kind not in {Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY}:
            raise
        raise Fault(Kind.NOT_FOUND, missing, hint=f"memory_view of {PREFIX} shows what there is") from fault


def render_size(size: int) -> str:
    """Return a size for people: 512B, 1.5K, 2.0M."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f}{_UNITS[unit]}" if unit else f"{size}B"


def _told(message: str, warned: str = "") -> Answer:
    return Answer({"result": message}, message, caution=warned)


_PATH = {"type": "string", "maxLength": 16384, "description": f"A path below {PREFIX}."}
_RESULT = gives(result=TEXT)
_WRITE = frozenset({"read", "write"})
_LINE = {"type": "integer", "minimum": 0, "maximum": MAX_LINES}
_RANGE = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "description": "[first, last]; -1: to the end."}

TOOLS = (
    Tool(
        name="memory_view",
        title="View memory",
        description=f"Shows a directory or a note of your memory ({PREFIX}), with line numbers. Look here before you begin.",
        effect=Effect.READS,
        takes=takes({"path": _PATH}, view_range=_RANGE, branch=BRANCH),
        gives=_RESULT,
        run=_view,
        needs=frozenset({"list", "read"}),
        within=FOLDER,
    ),
    Tool(
        name="memory_create",
        title="Create a note",
        description="Creates a note; one that exists is not replaced.",
        effect=Effect.ADDS,
        takes=takes({"path": _PATH, "file_text": TEXT}, branch=BRANCH),
        gives=_RESULT,
        run=_create,
        needs=frozenset({"write"}),
        within=FOLDER,
    ),
    Tool(
        name="memory_str_replace",
        title="Change a note",
        description="Replaces a text that appears exactly once in a note.",
        effect=Effect.REPLACES,
        takes=takes({"path": _PATH, "old_str": TEXT | {"minLength": 1}}, new_str=TEXT, branch=BRANCH),
        gives=_RESULT,
        run=_str_replace,
        needs=_WRITE,
        within=FOLDER,
    ),
    Tool(
        name="memory_insert",
        title="Insert into a note",
        description="Inserts text after a line of a note; 0: before the first.",
        effect=Effect.REPLACES,
        takes=takes({"path": _PATH, "insert_line": _LINE, "insert_text": TEXT}, branch=BRANCH),
        gives=_RESULT,
        run=_insert,
        needs=_WRITE,
        within=FOLDER,
    ),
    Tool(
        name="memory_delete",
        title="Delete from memory",
        description="Deletes a note, or a directory with everything in it.",
        effect=Effect.REPLACES,
        takes=takes({"path": _PATH}, branch=BRANCH),
        gives=_RESULT,
        run=_delete,
        needs=frozenset({"delete"}),
        within=FOLDER,
    ),
    Tool(
        name="memory_rename",
        title="Rename in memory",
        description="Renames or moves a note or a directory of notes; what exists is not replaced.",
        effect=Effect.REPLACES,
        takes=takes({"old_path": _PATH, "new_path": _PATH}, branch=BRANCH),
        gives=_RESULT,
        run=_rename,
        needs=frozenset({"write"}),
        within=FOLDER,
    ),
)

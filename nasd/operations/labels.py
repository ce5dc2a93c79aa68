"""Labels: where they come from, marks, and asking people to lower one."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.authority import policy_in_force
from nasd.desk import Desk
from nasd.manifest import words
from nasd.operations.operation import LIMIT, NAME, TEXT, Arguments, Operation, gives, gives_list, path_argument, takes
from nasd.paths import render_path
from nasd.relabelling import Bytes, Relabelling, read_label, view_part
from nasd.trees import node_at
from nasd.views import page
from store.contract import Tree
from store.errors import NotADirectory, NotFound
from store.model import Attributes, CommitId
from trust.labels import DEFAULT, Label, join
from trust.ledger import LabelPart
from trust.model import Action, Identity
from trust.policy.covering import overlap

_PAGE = 1000
_SCAN = 10_000
"""How many rows of the ledger one page looks at: many are of bytes that the branch has no more."""


# -- seeing -----------------------------------------------------------------------------------------------------------


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    branch, path = desk.branch(identity, arguments["branch"]), path_argument(arguments["path"])
    trust, policy = desk.appliance.trust, policy_in_force(desk.appliance.trust)
    at = desk.commit(identity, arguments["at"]) if "at" in arguments else None
    unfinished = b"" if at or not _sees(desk, identity, branch, path) else _unfinished(desk, branch, path)
    content = unfinished or _find(desk, identity, branch, at, path).content
    label, parts = trust.ledger.label(policy, path, content), trust.ledger.explain(policy, path, content)
    run = desk.runs.of_branch(branch)
    if run is not None and unfinished:  # not committed yet: it will be labelled by what the run has read
        taint = trust.ledger.taint(run.run)
        label, parts = join(label, taint), (*parts, *_taint_part(run.run, taint))
    told = {"path": render_path(path), "branch": branch, "commit": at, "content": content.decode("ascii")}
    return told | words(label) | {"because": [view_part(part) for part in parts]}


def _taint_part(run: str, taint: Label) -> tuple[LabelPart, ...]:
    return () if taint == DEFAULT else (LabelPart("taint", run, taint),)


def _unfinished(desk: Desk, branch: str, path: bytes) -> bytes:
    """Return the identity of what a branch has at a path and has not committed, empty when it has committed it."""
    engine = desk.appliance.engine
    if engine.branch(branch).protected:
        return b""
    working = engine.working(branch)
    try:
        changed = any(change.path == path and change.new is not None for change in working.changes())
        return working.attributes(node_at(working, path)).content if changed else b""
    finally:
        working.close()


def _find(desk: Desk, identity: Identity, branch: str, at: CommitId | None, path: bytes) -> Attributes:
    """Return what the caller sees at a path of a commit (None: the head of the branch). Raises `Kind.NOT_FOUND`."""
    engine = desk.appliance.engine
    found = _attributes_at(engine.view(at or engine.branch(branch).head), path)
    if found is None or not _sees(desk, identity, branch, path, is_directory=stat.S_ISDIR(found.st_mode)):
        raise Fault(Kind.NOT_FOUND, f"{render_path(path)}: no such file or directory", hint="`nas label list` shows what is labelled")
    return found


def _sees(desk: Desk, identity: Identity, branch: str, path: bytes, *, is_directory: bool = False) -> bool:
    directory, _, name = path.rpartition(b"/")
    return desk.authority(identity, branch).sees(directory, name or None, is_directory=is_directory)


def _attributes_at(tree: Tree, path: bytes) -> Attributes | None:
    try:
        return tree.attributes(node_at(tree, path))
    except (NotFound, NotADirectory):
        return None


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    branch, cursor = desk.branch(identity, arguments["branch"]), arguments.get("cursor", "")
    patterns = [] if cursor else list(_patterns(desk, identity))
    found, after = _noted(desk, identity, branch, _parse_cursor(cursor), int(arguments.get("limit", _PAGE)))
    return page([*patterns, *found], after=after, truncated=after is not None)


def _patterns(desk: Desk, identity: Identity) -> Iterator[Document]:
    """Yield what the policy and marks say of patterns; to a lease only what may be about its paths."""
    policy, ledger = policy_in_force(desk.appliance.trust), desk.appliance.trust.ledger
    ruled = [(each.text, LabelPart("policy", str(rule.position), rule.label)) for rule in policy.labels for each in rule.paths.patterns]
    marked = [(mark.pattern, LabelPart("mark", "", mark.label)) for mark in ledger.marks()]
    scope = identity.scope
    for pattern, part in (*ruled, *marked):
        if scope is None or any(overlap(path, pattern) for path in scope.paths):
            yield {"paths": pattern} | view_part(part)


def _noted(desk: Desk, identity: Identity, branch: str, after: tuple[bytes, bytes], limit: int) -> tuple[list[Document], str | None]:
    """Return what is noted of the bytes that a branch has at its head, as the caller sees it, and the cursor of what follows."""
    engine, authority = desk.appliance.engine, desk.authority(identity, branch)
    tree = engine.view(engine.branch(branch).head)
    rows = desk.appliance.trust.ledger.rows(after, _SCAN)
    found: list[Document] = []
    for row in rows:
        after, (directory, _, name) = (row.path, row.content), row.path.rpartition(b"/")
        here = _attributes_at(tree, row.path)
        if here is not None and here.content == row.content and authority.sees(directory, name, is_directory=False):
            part = LabelPart("endorsed" if row.endorsed else "noted", row.content.decode("ascii"), row.label)
            found.append({"paths": render_path(row.path)} | view_part(part))
        if len(found) == limit:
            break
    ended = len(rows) < _SCAN and (not rows or (rows[-1].path, rows[-1].content) == after)
    return found, None if ended else f"{after[1].decode('ascii')} {render_path(after[0])}"


def _parse_cursor(cursor: str) -> tuple[bytes, bytes]:
    content, _, path = cursor.partition(" ")
    return path_argument(path), content.encode("ascii", "replace")


# -- changing ---------------------------------------------------------------------------------------------------------


def _mark(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, f"mark {arguments['pattern']}")
    label = read_label(arguments.get("origin"), arguments.get("sensitivity"), DEFAULT)
    return {"paths": arguments["pattern"]} | words(Relabelling(desk.appliance).mark(identity, arguments["pattern"], label))


def _unmark(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, f"take away the mark on {arguments['pattern']}")
    return Relabelling(desk.appliance).ask_to_unmark(identity, arguments["pattern"], arguments.get("reason", ""))


def _endorse(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    branch, path = desk.branch(identity, arguments["branch"]), path_argument(arguments["path"])
    at = desk.commit(identity, arguments.get("at", branch))
    found = _find(desk, identity, branch, at, path)
    if not found.content:
        raise Fault(Kind.INVALID, f"{render_path(path)} has no content", hint="name a file: what is endorsed is exact bytes")
    what = Bytes(path, found.content, found.size, at)
    origin, sensitivity = arguments.get("origin"), arguments.get("sensitivity")
    return Relabelling(desk.appliance).ask_to_endorse(identity, what, origin, sensitivity, arguments["reason"])


_ORIGIN = {"enum": ["owner", "internal", "external"]}
_SENSITIVITY = {"enum": ["public", "internal", "sensitive"]}
_LABEL = {"origin": _ORIGIN, "sensitivity": _SENSITIVITY}
_PART = gives(source={"enum": ["policy", "mark", "noted", "endorsed", "taint"]}, place=TEXT, **_LABEL)
_ASKED = {"decision": {"enum": ["gated"]}, "gate": NAME, "digest": NAME, "required_role": NAME, "before": TEXT, "after": TEXT}


OPERATIONS = (
    Operation(
        "label.show",
        "GET",
        "/v1/branches/{branch}/label",
        "Show the label of a path, and where each part of it comes from",
        _show,
        takes({"branch": NAME, "path": TEXT}, at=NAME),
        gives(path=TEXT, branch=NAME, content=TEXT, because={"type": "array", "items": _PART}, **_LABEL),
    ),
    Operation(
        "label.list",
        "GET",
        "/v1/branches/{branch}/labels",
        "List what is labelled: patterns of the policy, marks, and noted files of a branch",
        _list,
        takes({"branch": NAME}, limit=LIMIT, cursor=TEXT),
        gives_list(paths=TEXT, source=NAME, place=TEXT, **_LABEL),
    ),
    Operation(
        "label.mark",
        "POST",
        "/v1/labels/marks",
        "Raise the label of every path of a pattern",
        _mark,
        takes({"pattern": NAME}, **_LABEL),
        gives(paths=TEXT, **_LABEL),
        effect=True,
        status=201,
    ),
    Operation(
        "label.unmark",
        "POST",
        "/v1/labels/marks/remove",
        "Ask people to take a mark away",
        _unmark,
        takes({"pattern": NAME}, reason=TEXT),
        gives(pattern=TEXT, **_ASKED),
        effect=True,
        status=202,
    ),
    Operation(
        "label.endorse",
        "POST",
        "/v1/branches/{branch}/label/endorse",
        "Ask people to give exact bytes at an exact path a lower label",
        _endorse,
        takes({"branch": NAME, "path": TEXT, "reason": TEXT}, at=NAME, **_LABEL),
        gives(path=TEXT, **_ASKED),
        effect=True,
        status=202,
    ),
)

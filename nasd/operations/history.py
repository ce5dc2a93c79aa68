"""History: log, show, diff, commit, restore, branches, export. What a lease cannot see is missing from every one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.operations.operation import (
    COUNT,
    FLAG,
    LIMIT,
    MAYBE_TEXT,
    NAME,
    TEXT,
    TEXTS,
    TIME,
    Arguments,
    Operation,
    gives,
    gives_list,
    path_argument,
    require_head,
    takes,
)
from nasd.operations.runs import absolute
from nasd.paths import is_below
from nasd.reach import read_mounts, unsafe_copy
from nasd.runs import MAIN, Run
from nasd.views import page, view_branch, view_change, view_commit
from store.model import Change, Commit, CommitId
from trust.model import Action, BudgetKind, Identity

_LOG_LIMIT = 100


def _branches(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    prefix = arguments.get("prefix", "")
    seen = {run.branch for run in desk.visible_runs(identity)} | {MAIN}
    whole = identity.lease is None and desk.allows(identity, Action.OBSERVE)
    return page(view_branch(branch) for branch in desk.appliance.engine.branches(prefix) if whole or branch.name in seen)


def _commit(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.own_run(identity, arguments["branch"], Action.WRITE)
    require_head(arguments, desk.appliance.engine.branch(run.branch).head)
    if identity.lease is not None and run.branch in desk.appliance.engine.dirty():
        desk.appliance.trust.charge(identity.lease.id, {BudgetKind.COMMITS: 1})
    return desk.runs.commit(run, identity, arguments.get("message") or "commit")


def _log(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    start = desk.commit(identity, arguments.get("cursor") or arguments["branch"])
    path = path_argument(arguments["path"]) if "path" in arguments else None
    limit = int(arguments.get("limit", _LOG_LIMIT))
    commits = list(islice(_seen_log(desk, identity, start, path), limit + 1))
    after = commits[limit].id if len(commits) > limit else None
    return page([view_commit(commit) for commit in commits[:limit]], after=after, truncated=after is not None)


def _seen_log(desk: Desk, identity: Identity, start: CommitId, path: bytes | None) -> Iterator[Commit]:
    if path is not None and not _may_see(desk, identity, path):
        return iter(())
    return desk.appliance.engine.log(start, path)


def _may_see(desk: Desk, identity: Identity, path: bytes) -> bool:
    directory, _, name = path.rpartition(b"/")
    return desk.authority(identity, MAIN).sees(directory, name or None, is_directory=True)


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    engine = desk.appliance.engine
    commit = engine.read_commit(desk.commit(identity, arguments["commit"]))
    changes = engine.diff(commit.parents[0] if commit.parents else None, commit.id)
    return view_commit(commit) | {"changes": render_changes(desk, identity, changes, patched=arguments.get("patch", False))}


def render_changes(desk: Desk, identity: Identity, changes: Sequence[Change], *, patched: bool, below: bytes = b"") -> list[Document]:
    """Return the visible changes below a path as documents, with patches where asked and readable."""
    shown = [change for change in desk.visible(identity, changes) if is_below(change.path, below)]
    documents = []
    for change in shown:
        patch = desk.appliance.engine.patch(change) if patched and desk.reads(identity, change) else None
        documents.append(view_change(change, patch, patched=patched))
    return documents


def _diff(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    below = path_argument(arguments["path"]) if "path" in arguments else b""
    changes = _compared(desk, identity, arguments)
    return page(render_changes(desk, identity, changes, patched=arguments.get("patch", False), below=below))


def _compared(desk: Desk, identity: Identity, arguments: Arguments) -> Sequence[Change]:
    engine = desk.appliance.engine
    if "old" in arguments and "new" in arguments:
        return engine.diff(desk.commit(identity, arguments["old"]), desk.commit(identity, arguments["new"]))
    if "run" in arguments:
        run = desk.run(identity, arguments["run"])
        head = engine.branch(run.branch).head
        return engine.diff(engine.merge_base(engine.branch(MAIN).head, head), head)
    if "branch" in arguments:
        working = engine.working(desk.branch(identity, arguments["branch"]))
        try:
            return working.changes()
        finally:
            working.close()
    raise Fault(Kind.INVALID, "nothing to compare", hint="name two commits, a run, or a branch with uncommitted changes")


def _restore(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.own_run(identity, arguments["branch"], Action.WRITE)
    require_head(arguments, desk.appliance.engine.branch(run.branch).head)
    source = desk.commit(identity, arguments["source"])
    paths = [path_argument(text) for text in arguments.get("paths", [])]
    _require_restorable(desk, identity, run, paths)
    body = {"run": run.run, "branch": run.branch, "source": source, "paths": list(arguments.get("paths", []))}
    with recorded(desk.appliance.trust, desk.appliance.clock, "restore", identity, body) as outcome:
        desk.runs.commit(run, identity, "work before a restore")
        desk.appliance.engine.restore(run.branch, source, paths)
        committed = desk.runs.commit(run, identity, arguments.get("message") or f"restore from {source[:12]}")
        outcome["commit"] = committed["commit"]
    return committed


def _require_restorable(desk: Desk, identity: Identity, run: Run, paths: Sequence[bytes]) -> None:
    """Return when the caller may restore: as the policy says, or, for a lease, what it may read, write and delete below each path."""
    if identity.lease is None:
        desk.require(identity, Action.RESTORE, f"restore {run.branch}")
        return
    authority = desk.authority(identity, run.branch)
    for path in paths or [b""]:
        directory, _, name = path.rpartition(b"/")
        for action in (Action.READ, Action.WRITE, Action.DELETE):
            if path:
                authority.demand(action, directory, name)
            if not authority.covers_below(action, path):
                raise Fault(
                    Kind.DENIED,
                    f"{action.value}: the lease does not cover everything below {path.decode('utf-8', 'backslashreplace') or '/'}",
                    hint="restore the paths it covers one by one",
                )


def _export(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "export a branch to a directory of this machine")
    engine = desk.appliance.engine
    branch = desk.branch(identity, arguments["branch"])
    target, head = absolute(arguments["directory"]), engine.branch(branch).head
    if reason := unsafe_copy(target.resolve(), desk.appliance.settings.home.resolve(), read_mounts()):
        raise Fault(Kind.INVALID, f"{target}: {reason}", hint="name a folder that no agent writes to")
    body = {"branch": branch, "directory": str(target), "format": arguments["format"], "commit": head}
    with recorded(desk.appliance.trust, desk.appliance.clock, "export", identity, body):
        if arguments["format"] == "git":
            counted = {"commits": engine.export_git(branch, target, lambda *_: None)}
        else:
            counted = {"files": engine.export_directory(head, target, lambda *_: None)}
    return {"directory": str(target), "format": arguments["format"], "branch": branch, "commit": head} | counted


_COMMIT = {"commit": NAME, "parents": TEXTS, "message": TEXT, "principal": TEXT, "run": TEXT, "lease": TEXT, "when": TIME, "author": TEXT}
_CHANGE = {"kind": NAME, "path": TEXT, "origin": MAYBE_TEXT}
_FORMATS = {"enum": ["dir", "git"]}

OPERATIONS = (
    Operation(
        "branch.list",
        "GET",
        "/v1/branches",
        "List branches",
        _branches,
        takes(prefix=TEXT),
        gives_list(branch=NAME, head=NAME, base=NAME, protected=FLAG, created=TIME),
    ),
    Operation(
        "commit.make",
        "POST",
        "/v1/branches/{branch}/commits",
        "Commit what changed on a run's branch",
        _commit,
        takes({"branch": NAME}, message=TEXT, if_match=TEXT),
        gives(commit=NAME, branch=NAME, changed=COUNT, left_out=TEXTS),
        effect=True,
    ),
    Operation(
        "history.log",
        "GET",
        "/v1/branches/{branch}/commits",
        "Walk the history of a branch, newest first",
        _log,
        takes({"branch": NAME}, path=TEXT, limit=LIMIT, cursor=NAME),
        gives_list(**_COMMIT),
    ),
    Operation(
        "history.show",
        "GET",
        "/v1/commits/{commit}",
        "Show a commit with its changes",
        _show,
        takes({"commit": NAME}, patch=FLAG),
        gives(changes={"type": "array", "items": gives(**_CHANGE)}, **_COMMIT),
    ),
    Operation(
        "history.diff",
        "GET",
        "/v1/diff",
        "Compare two commits, a run with main, or a branch with its uncommitted work",
        _diff,
        takes(old=NAME, new=NAME, run=NAME, branch=NAME, patch=FLAG, path=TEXT),
        gives_list(**_CHANGE),
    ),
    Operation(
        "history.restore",
        "POST",
        "/v1/branches/{branch}/restore",
        "Put paths back to what a commit holds, as one more commit",
        _restore,
        takes({"branch": NAME, "source": NAME}, paths=TEXTS, message=TEXT, if_match=TEXT),
        gives(commit=NAME, changed=COUNT),
        effect=True,
    ),
    Operation(
        "export.make",
        "POST",
        "/v1/exports",
        "Write a branch as a directory or as a plain git repository",
        _export,
        takes({"branch": NAME, "directory": TEXT, "format": _FORMATS}),
        gives(directory=TEXT, format=_FORMATS, branch=NAME, commit=NAME),
        effect=True,
    ),
)

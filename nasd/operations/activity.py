"""What a principal's own runs did: the pages behind the Activity folders."""

from __future__ import annotations

from interfaces.port import Document
from nasd.activity import Chronicle, Story, folder_of, pages
from nasd.desk import Desk, limited
from nasd.durations import render_time
from nasd.operations.operation import LIMIT, NAME, TEXT, TIME, Arguments, Operation, gives, gives_list, takes
from nasd.paths import parse_path
from nasd.runs import MAIN, Run
from store.errors import NotFound
from store.model import Change, CommitId
from trust.model import Identity, LeaseId


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return limited([_entry(run) for run in desk.visible_runs(identity) if _worked_for(identity, run)], arguments, "run")


def _worked_for(identity: Identity, run: Run) -> bool:
    """Tell whether a run's activity is the caller's own to look at: its owner's, and the run's."""
    return identity.lease is not None or run.owner == identity.principal.name


def _entry(run: Run) -> Document:
    return {
        "run": run.run,
        "role": run.role,
        "folder": folder_of(run),
        "state": run.state,
        "created": render_time(run.created),
        "modified": render_time(run.ended or run.created),
    }


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.run(identity, arguments["run"])
    story = _story(desk, identity, run)
    modified = render_time(max(story.chronicle.last, run.ended or run.created))
    files = [{"name": page.name, "text": page.text} for page in pages(story)]
    return _entry(run) | {"modified": modified, "files": files}


def _story(desk: Desk, identity: Identity, run: Run) -> Story:
    trust = desk.appliance.trust
    authority = desk.authority(identity, MAIN)

    def sees(text: str) -> bool:
        directory, _, name = parse_path(text).rpartition(b"/")
        return authority.sees(directory, name or None, is_directory=False)

    chronicle = Chronicle(sees)
    for record in trust.records(run=run.run):
        chronicle.add(record)
    chronicle.finish()
    proposals = [proposal for proposal in desk.proposals.all() if proposal.run == run.run]
    gates = [gate for proposal in proposals for gate in trust.gates(None, f"proposal:{proposal.proposal}")]
    lease = trust.lease(LeaseId(run.lease)) if run.lease else None
    return Story(run, lease, proposals, gates, _changes(desk, identity, run), chronicle)


def _changes(desk: Desk, identity: Identity, run: Run) -> list[Change] | None:
    engine = desk.appliance.engine
    try:
        return desk.visible(identity, engine.diff(CommitId(run.base), engine.branch(run.branch).head))
    except NotFound:
        return None


_ENTRY = {"run": NAME, "role": NAME, "folder": TEXT, "state": NAME, "created": TIME, "modified": TIME}
_FILES = {"type": "array", "items": gives(name=NAME, text={"type": "string"})}

OPERATIONS = (
    Operation(
        "activity.list",
        "GET",
        "/v1/activity",
        "List the runs that worked for the caller, with the names of their folders",
        _list,
        takes(limit=LIMIT, cursor=NAME),
        gives_list(**_ENTRY),
    ),
    Operation(
        "activity.show",
        "GET",
        "/v1/activity/{run}",
        "Tell what a run did, read, changed and asked, as pages of text",
        _show,
        takes({"run": NAME}),
        gives(files=_FILES, **_ENTRY),
    ),
)

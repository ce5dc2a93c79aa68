"""What the git door has the daemon do: commit and publish a branch before it is read, take in what was pushed to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.git.ports import LargeFile
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.labelling import Labelling
from nasd.notes import DoorNotes
from nasd.operations.operation import NAME, TEXTS, Arguments, Operation, gives, takes
from nasd.paths import render_path
from nasd.readable import readable_by
from nasd.repositories import HEADS, Uploads, open_exchange, own_branch, show
from nasd.runs import MAIN, Run
from store.contract import Working
from store.errors import HostileTree, Moved
from store.exchange import Arrival, LargeContent, Limits
from store.model import CommitId
from trust.model import Action, BudgetKind, Identity

_ID = {"type": "string", "pattern": "^[0-9a-f]{40}$"}
_LATE = Fault(
    Kind.CONFLICT, "fetch first: the branch has moved, or holds work that was not committed yet", hint="git pull, then push again"
)
_LIMITS = Limits()
_MOST_NAMED = 100


def _publish(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    branch = desk.branch(identity, arguments["branch"])
    run = own_branch(desk, identity, branch)
    if run is not None and run.branch == branch and _may_commit(desk, identity, run):
        desk.runs.commit(run, identity, "work before git reads the branch")
    exchange = open_exchange(desk.appliance)
    exchange.publish()
    exchange.sweep(desk.appliance.clock())
    return {"branch": branch, "commit": desk.appliance.engine.branch(branch).head}


def _late() -> Fault:
    return Fault(Kind.CONFLICT, "fetch first: the branch has moved, or holds work that was not committed", hint="git pull, then push")


def _may_commit(desk: Desk, identity: Identity, run: Run) -> bool:
    try:
        desk.own_run(identity, run.run, Action.WRITE)
    except Fault:
        return False
    return True


def _receive(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    branch = desk.branch(identity, arguments["branch"])
    run = own_branch(desk, identity, branch)
    if run is None or arguments["reference"] != HEADS + run.branch:
        raise Fault(Kind.NOT_FOUND, f"{arguments['reference']}: no run of yours takes a push here", hint="push to /git/RUN.git")
    desk.own_run(identity, run.run, None)
    exchange = open_exchange(desk.appliance)
    if _may_commit(desk, identity, run):
        desk.runs.commit(run, identity, "work before a push")
    exchange.publish()
    with closing(show(desk, exchange, identity, branch)) as shown:
        if shown.refs[HEADS + run.branch] != arguments["old"]:
            raise _late()
        try:
            arrival = exchange.examine(arguments["quarantine"], shown, run.branch, arguments["new"], _LIMITS)
            return Push(desk, identity, run, arrival).take_in(arguments)
        except Moved:
            raise _late() from None
        except HostileTree as hostile:
            raise Fault(Kind.INVALID, f"this cannot be taken in: {hostile}", hint="change the commits, then push again") from hostile


@dataclass(frozen=True, slots=True)
class Push:
    """A push that is whole, on its way to being decided and taken in.

    With `pointers_stay` what stands for a large file stays the small file that it is.
    """

    desk: Desk
    identity: Identity
    run: Run
    arrival: Arrival
    pointers_stay: bool = False

    def take_in(self, arguments: Arguments) -> Document:
        """Decide, record, and move the branch. Raises the fault of the first thing that is not allowed."""
        self._decide()
        # After the paths, whose denials are recorded; a push without any path needs it all the same.
        self.desk.own_run(self.identity, self.run.run, Action.WRITE)
        appliance = self.desk.appliance
        with ExitStack() as opened, self._charged():
            working = opened.enter_context(closing(appliance.engine.working(self.run.branch)))
            contents = {sha256: opened.enter_context(closing(content)) for sha256, content in self._open_large(working)}
            intent = self._body(arguments)
            with recorded(appliance.trust, appliance.clock, "push", self.identity, intent) as outcome:
                outcome["commit"] = head = self.arrival.accept(contents)
                main = appliance.engine.branch(MAIN).head
                Labelling(appliance).label_range(self.run.run, CommitId(intent["expected"]), head, main)
        self._let_go()
        return {"commit": head, "branch": self.run.branch, "notices": self._notices()}

    def _decide(self) -> None:
        """Raise the fault of the first path that may not be written, deleted, or had in a copy again."""
        authority = self.desk.authority(self.identity, self.run.branch)
        readable = readable_by(self.desk.appliance.trust, self.identity, self.desk.appliance.now())
        for path, entry in self.arrival.introduced:
            directory, _, name = path.rpartition(b"/")
            authority.demand(Action.DELETE if entry is None else Action.WRITE, directory, name)
            if entry is not None and not readable.keeps(directory, name):
                raise Fault(
                    Kind.DENIED,
                    f"write {render_path(path)}: you may write it and not read it, and a history holds what its owner can read",
                    hint="write it through the mount, or over HTTP",
                )

    @contextmanager
    def _charged(self) -> Iterator[None]:
        """Spend what the push takes; when it fails nothing was spent. Raises `Kind.BUDGET`."""
        lease, trust = self.identity.lease, self.desk.appliance.trust
        if lease is None:
            yield
            return
        spent = {BudgetKind.BYTES_WRITTEN: self.arrival.size, BudgetKind.COMMITS: len(self.arrival.commits)}
        trust.charge(lease.id, spent)
        try:
            yield
        except BaseException:
            trust.refund(lease.id, spent)
            raise

    def _open_large(self, working: Working) -> Iterator[tuple[bytes, LargeContent]]:
        """Yield the contents of the large files that new pointers stand for, by hash. Raises `Kind.INVALID` for one not uploaded."""
        for file in self._large:
            staged = self._uploads.find(file)
            if staged is None:
                raise Fault(
                    Kind.INVALID,
                    f"a pointer stands for the large file {file.sha256[:12]}, which was not uploaded",
                    hint="git lfs push --all REMOTE BRANCH, then push again",
                )
            yield bytes.fromhex(file.sha256), working.staged(staged)

    def _let_go(self) -> None:
        """Remove what was uploaded and is part of the store now."""
        if not self._large:
            return
        with closing(self.desk.appliance.engine.working(self.run.branch)) as working:
            for file in self._large:
                staged = self._uploads.find(file)
                self._uploads.forget(file)
                if staged is not None:
                    working.unstage(staged)

    @property
    def _large(self) -> Sequence[LargeFile]:
        return [] if self.pointers_stay else [LargeFile(each.sha256.hex(), each.size) for each in self.arrival.large]

    @property
    def _uploads(self) -> Uploads:
        return Uploads(DoorNotes(self.desk.appliance.trust, "git"), self.run)

    def _body(self, arguments: Arguments) -> dict[str, Any]:
        return {
            "run": self.run.run,
            "branch": self.run.branch,
            "expected": self.desk.appliance.engine.branch(self.run.branch).head,
            "pushed": arguments["new"],
            "commits": [commit.id for commit in self.arrival.commits[:_MOST_NAMED]],
            "count": len(self.arrival.commits),
            "paths": len(self.arrival.introduced),
            "bytes": self.arrival.size,
            "options": list(arguments.get("options", [])),
        }

    def _notices(self) -> list[str]:
        twins = [" and ".join(render_path(path) for path in group) for group in self.arrival.twins[:_MOST_NAMED]]
        return [f"warning: {group} are one name on other systems" for group in twins]


OPERATIONS = (
    Operation(
        "git.publish",
        "POST",
        "/v1/git/publish",
        "Commit what a branch of the caller's holds and put it where git reads it; the git door asks this before it shows a branch",
        _publish,
        takes({"branch": NAME}),
        gives(branch=NAME, commit=NAME),
        effect=True,
    ),
    Operation(
        "git.receive",
        "POST",
        "/v1/git/receive",
        "Take in what git unpacked in a quarantine; the git door asks this at the end of a push",
        _receive,
        takes({"branch": NAME, "quarantine": NAME, "reference": NAME, "old": _ID, "new": _ID}, options=TEXTS),
        gives(commit=NAME, branch=NAME, notices=TEXTS),
        effect=True,
    ),
)

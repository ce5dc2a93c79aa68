"""What a run did, read, changed and asked, as pages of plain text for the person it worked for. Pure.

1. Everything comes from the record and from history: the same run reads the same, whichever door shows it.
2. A page is bounded: at most `LINES` lines of each kind, and a last line that counts the rest.
3. A line is a line: whatever a name, a message or a purpose contains, nobody writes a second one into the page.
4. Times are UTC. What is not there is said ("nothing"), so that an empty page is never taken for a broken one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from nasd.proposal_rules import Proposal
from nasd.runs import Run
from store.model import Change
from trust.model import Gate, Lease, Record, RecordPhase

LINES = 5000
_TOLD: Mapping[str, tuple[str, ...]] = {
    "commit": ("message", "commit"),
    "propose": ("message", "state", "reason"),
    "merge": ("target", "commit"),
    "restore": ("source", "paths"),
    "lease.narrow": ("lease",),
    "lease.revoke": ("lease", "reason"),
    "run.checkout": ("directory",),
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the name of its file, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    """What is known of a run. `changes` is what its branch has that it did not start with, None when the branch is gone."""

    run: Run
    lease: Lease | None
    proposals: Sequence[Proposal]
    gates: Sequence[Gate]
    changes: Sequence[Change] | None
    chronicle: Chronicle


@dataclass(slots=True)
class Chronicle:
    """The records of a run, condensed as they come: what it did by number, what it read and was refused by how often.

    `sees` tells whether a path exists for who will read the pages; `last` is the time of the last record.
    """

    sees: Callable[[str], bool]
    acts: dict[int, str] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    refusals: dict[tuple[str, str, str], int] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=lambda: {"acts": 0, "reads": 0, "refusals": 0})
    last: int = 0
    _open: dict[int, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take the next record of the run."""
        self.last = max(self.last, record.time)
        if record.kind == "reads":
            self._add_reads(record.body)
        elif record.kind == "denied":
            self._add_refusal(record.body)
        elif record.phase is RecordPhase.INTENT:
            self._open[record.sequence] = record
        elif record.phase is RecordPhase.OUTCOME and record.refers is not None:
            self._add_act(self._open.pop(record.refers, record), record.body)
        else:
            self._add_act(record, {})

    def finish(self) -> None:
        """Take what began and has no outcome."""
        for record in self._open.values():
            self._add_act(record, {"result": "begun, no outcome recorded"})
        self._open.clear()

    def _add_act(self, record: Record, outcome: Mapping[str, Any]) -> None:
        if len(self.acts) >= LINES:
            self.beyond["acts"] += 1
            return
        told = {**record.body, **outcome}
        details = [f"{name} {line(str(told[name]))}" for name in _TOLD.get(record.kind, ()) if told.get(name)]
        result = line(str(told.get("result", "noted")))
        why = [line(str(told["why"]))] if "why" in told else []
        self.acts[record.sequence] = "  ".join([moment(record.time), f"{record.kind:<14}", f"{result:<8}", *details, *why]).rstrip()

    def _add_reads(self, body: Mapping[str, Any]) -> None:
        self.beyond["reads"] += int(body.get("beyond", 0))
        for read in body["reads"]:
            path, times = read["path"], int(read["times"])
            if not self.sees(path):
                continue
            if path in self.reads or len(self.reads) < LINES:
                self.reads[path] = self.reads.get(path, 0) + times
            else:
                self.beyond["reads"] += 1

    def _add_refusal(self, body: Mapping[str, Any]) -> None:
        key = (str(body["action"]), str(body.get("path", body.get("account", ""))), str(body["rule"]))
        if "path" in body and not self.sees(key[1]):
            return
        if key in self.refusals or len(self.refusals) < LINES:
            self.refusals[key] = self.refusals.get(key, 0) + int(body.get("count", 1))
        else:
            self.beyond["refusals"] += 1


def folder_of(run: Run) -> str:
    """Return the name of a run's folder: it sorts by day and says whose it was."""
    return f"{datetime.fromtimestamp(run.created, UTC):%Y-%m-%d} {run.role} {run.run}"


def pages(story: Story) -> tuple[Page, ...]:
    """Return the pages about a run."""
    return (
        Page("Summary.txt", _summary(story)),
        Page("Did.txt", _listing("What the run did", _acts(story.chronicle), story.chronicle.beyond["acts"])),
        Page("Read.txt", _listing("What the run read, and how often", _reads(story.chronicle), story.chronicle.beyond["reads"])),
        Page("Changed.txt", _changed(story)),
        Page("Asked.txt", _listing("What the run asked, and what was answered", _asked(story), 0)),
        Page("Refused.txt", _listing("What the run was refused", _refusals(story.chronicle), story.chronicle.beyond["refusals"])),
    )


def moment(seconds: int | None) -> str:
    """Return a time for people."""
    return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def line(text: str) -> str:
    """Return a text that is one line: what does not print is escaped."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _summary(story: Story) -> str:
    run, lease = story.run, story.lease
    facts = [
        ("run", run.run),
        ("role", run.role),
        ("for", run.owner),
        ("purpose", run.purpose or "not said"),
        ("state", f"{run.state}{f': {run.reason}' if run.reason else ''}"),
        ("started", moment(run.created)),
        ("ended", moment(run.ended)),
        ("branch", f"{run.branch}, from {run.base}"),
        ("did", f"{len(story.chronicle.acts) + story.chronicle.beyond['acts']} acts"),
        ("read", f"{len(story.chronicle.reads) + story.chronicle.beyond['reads']} files"),
        ("changed", "the branch is gone" if story.changes is None else f"{len(story.changes)} files"),
        ("asked", f"{len(story.proposals)} proposals, {len(story.gates)} questions"),
        ("refused", f"{sum(story.chronicle.refusals.values()) + story.chronicle.beyond['refusals']} times"),
        *(_lease_facts(lease) if lease else ()),
    ]
    return _text(f"{run.role}, run {run.run}", [f"{name:<9} {line(told)}" for name, told in facts])


def _lease_facts(lease: Lease) -> Iterable[tuple[str, str]]:
    yield "paths", " ".join(lease.scope.paths)
    yield "actions", " ".join(sorted(action.value for action in lease.scope.actions))
    yield "expires", moment(lease.scope.expires)
    for kind, limit in sorted(lease.scope.budgets.items(), key=lambda budget: budget[0].value):
        yield "budget", f"{kind.value.replace('_', ' ')}: {lease.used.get(kind, 0)} of {limit}"


def _acts(chronicle: Chronicle) -> list[str]:
    return [told for _, told in sorted(chronicle.acts.items())]


def _reads(chronicle: Chronicle) -> list[str]:
    return [f"{times:>7}  {line(path)}" for path, times in sorted(chronicle.reads.items())]


def _refusals(chronicle: Chronicle) -> list[str]:
    found = sorted(chronicle.refusals.items())
    return [f"{times:>7}  {action:<8} {line(path)}  ({line(rule)})" for (action, path, rule), times in found]


def _changed(story: Story) -> str:
    title = "What the run changed, compared with where it started"
    if story.changes is None:
        return _text(title, ["The branch is gone. Did.txt has its commits, and `nas log main` what became part of main."])
    lines = [_change(change) for change in islice(story.changes, LINES)]
    return _listing(title, lines, len(story.changes) - len(lines))


def _change(change: Change) -> str:
    origin = f"  (was {_path(change.origin)})" if change.origin is not None else ""
    size = f"  {change.new.size} bytes" if change.new is not None and change.new.size is not None else ""
    return f"{change.kind.value:<12} {_path(change.path)}{origin}{size}"


def _path(path: bytes) -> str:
    return line(path.decode("utf-8", "backslashreplace"))


def _asked(story: Story) -> list[str]:
    asked = [(proposal.created, _proposal(proposal)) for proposal in story.proposals]
    asked += [(gate.created, _gate(gate)) for gate in story.gates]
    return [text for _, text in sorted(asked)]


def _proposal(proposal: Proposal) -> str:
    told = [moment(proposal.created), f"proposal {proposal.proposal}", proposal.state, line(proposal.message or "no message")]
    told += [line(proposal.reason)] if proposal.reason else []
    return "  ".join(told)


def _gate(gate: Gate) -> str:
    answer = f"{gate.state.value} by {gate.answered_by} at {moment(gate.answered)}" if gate.answered_by else gate.state.value
    told = [moment(gate.created), f"question {gate.id}", line(answer), line(gate.subject)]
    told += [line(gate.comment)] if gate.comment else []
    return "  ".join(told)


def _listing(title: str, lines: Sequence[str], beyond: int) -> str:
    more = [f"... and {beyond} more"] if beyond else []
    return _text(title, [*(lines or ["nothing"]), *more])


def _text(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, "=" * len(title), *lines, ""])

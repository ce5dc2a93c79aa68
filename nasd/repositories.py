"""The histories as git is shown them: which references, which of their paths, and where large files come and go.

1. A caller is shown `main`, the branches of the runs it sees, and the snapshots these reach. What of their paths it may not read is left
   out of every commit (`nasd.readable`); what it may not see has no reference, no object and no name.
2. A view is current: what its branch holds uncommitted is committed first, for who may commit it.
3. Bytes that leave are spent; a view that sent any is in the read manifest, as the root of its branch, and what its whole history
   is labelled is in the taint of the run.
4. Pushes are decided and taken in by the daemon (`nasd.operations.git`); a gateway hands over the name of a quarantine.
5. The content of a pushed large file waits among the run's staged bytes until the push names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.git.ports import LargeContent, LargeFile, Received
from interfaces.git.requests import Command
from interfaces.port import Caller, Content, Control, Notes
from nasd.authority import Authority
from nasd.entrance import identity_behind
from nasd.faults import guarded
from nasd.lineage import Histories
from nasd.meter import Meter
from nasd.readable import readable_by
from nasd.runs import MAIN, Run
from nasd.sight import Sight
from nasd.wiring import Appliance
from store.errors import NotFound
from store.exchange import Exchange, Selection, Shown
from store.model import CommitId
from trust.labels import DEFAULT, Label
from trust.model import BudgetKind, Identity

HEADS, TAGS = "refs/heads/", "refs/tags/"


def open_exchange(appliance: Appliance) -> Exchange:
    """Return the histories of an appliance for git; one a process. Raises `store.errors.Unsupported`."""
    return appliance.engine.exchange(appliance.settings.run / "git")


def find_references(sight: Sight, identity: Identity, branch: str) -> dict[str, CommitId]:
    """Return the references that a caller is shown beside a branch it sees, `main` first, by their full names."""
    engine = sight.appliance.engine
    refs = {}
    for name in [MAIN, *sorted({branch, *(run.branch for run in _own_runs(sight, identity))} - {MAIN})]:
        with suppress(NotFound):
            refs[HEADS + name] = engine.branch(name).head
    tips = set(refs.values())
    for snapshot in engine.snapshots():
        if any(engine.is_ancestor(snapshot.head, tip) for tip in tips):
            refs[TAGS + snapshot.name] = snapshot.head
    return refs


def own_branch(sight: Sight, identity: Identity, branch: str) -> Run | None:
    """Return the run that a caller may push to from a view of a branch: its lease's, or (a principal) the branch's."""
    run = sight.runs.find(identity.lease.run) if identity.lease is not None else sight.runs.of_branch(branch)
    return run if run is not None and run.state == "active" else None


def show(sight: Sight, exchange: Exchange, identity: Identity, branch: str) -> Shown:
    """Return a view of the histories, which are packed, for a caller."""
    readable = readable_by(sight.appliance.trust, identity, sight.appliance.now())
    refs = find_references(sight, identity, branch)
    return exchange.show(refs, HEADS + branch, Selection(readable.name, readable))


def _own_runs(sight: Sight, identity: Identity) -> Iterable[Run]:
    if identity.lease is not None:
        return [sight.runs.find(identity.lease.run)]
    return [run for run in sight.visible_runs(identity) if run.state == "active"]


class GitRepositories:
    """`interfaces.git.ports.Repositories`."""

    def __init__(self, sight: Sight, control: Control) -> None:
        """Show the histories of the appliance behind `sight`; have the daemon do what is the daemon's, through `control`."""
        self._sight = sight
        self._control = control
        self._exchange = open_exchange(sight.appliance)
        self._histories = Histories(sight.appliance)

    @guarded
    def open(self, caller: Caller, branch: str) -> GitView:
        """Open a view whose head is a branch. Raises `Kind.NOT_FOUND` also for what the caller may not see."""
        identity = identity_behind(caller)
        name = self._sight.branch(identity, branch)
        engine = self._sight.appliance.engine
        authority = self._sight.authority(identity, name)
        authority.check()
        if name in engine.dirty() or not self._exchange.packed(find_references(self._sight, identity, name).values()):
            self._control.call(caller, "git.publish", {"branch": name})
        return GitView(
            self._sight,
            self._control,
            self._exchange,
            caller,
            name,
            show(self._sight, self._exchange, identity, name),
            authority,
            self._histories,
        )


class GitView:
    """`interfaces.git.ports.View`."""

    def __init__(
        self,
        sight: Sight,
        control: Control,
        exchange: Exchange,
        caller: Caller,
        branch: str,
        shown: Shown,
        authority: Authority,
        histories: Histories,
    ) -> None:
        """Serve `shown` to a caller."""
        self.folder = shown.folder
        self.head = shown.head
        self.refs: Mapping[str, str] = shown.refs
        self._sight = sight
        self._control = control
        self._exchange = exchange
        self._caller = caller
        self._identity = identity_behind(caller)
        self._branch = branch
        self._shown = shown
        self._authority = authority
        self._histories = histories
        self._meter = Meter(sight.appliance.trust, self._identity.lease)
        self._reading = False
        self._sent = 0

    @guarded
    def check(self) -> None:
        """Raise `Kind.EXPIRED` or `Kind.REVOKED` once the authority behind this view has ended."""
        self._authority.check()

    @guarded
    def spend(self, read: int) -> None:
        """Account for bytes that leave. Raises `Kind.BUDGET`."""
        if not self._reading:
            self._authority.demand_history(self._label())
            self._meter.spend(BudgetKind.READS, 1)
            self._reading = True
        self._meter.spend(BudgetKind.BYTES_READ, read)
        self._sent += read

    def _label(self) -> Label:
        """Return the label of all that is on offer: which of it the other side looks at, nobody here sees.

        Of the histories as they are, not as they are shown: what is left out of a commit gives it another id.
        """
        if self._identity.lease is None:
            return DEFAULT
        main = self._sight.appliance.engine.branch(MAIN).head
        whole = find_references(self._sight, self._identity, self._branch)
        return self._histories.label(main, whole.values(), self._identity.lease.scope)

    @guarded
    def reaches(self, objects: Iterable[str]) -> bool:
        """Tell whether each object is a commit on offer or is reached from one."""
        return self._shown.reaches(objects)

    @guarded
    def has_commit(self, commit: str) -> bool:
        """Tell whether a commit is on offer or reached from one that is."""
        return self._shown.has_commit(commit)

    @guarded
    def explain_refusal(self, command: Command) -> str:
        """Return why a change of a reference is not possible, whatever is sent for it; empty when it may be."""
        run = own_branch(self._sight, self._identity, self._branch)
        if command.deletes:
            return "nothing is deleted by a push: end the run with `nas run end`, its branch is kept"
        if command.reference == HEADS + MAIN:
            return f"main moves by merges only: propose the run (nas propose {run.run if run else 'RUN'})"
        if run is None or command.reference != HEADS + run.branch:
            return f"only the run's own branch takes a push: {HEADS + run.branch}" if run else "no run of yours takes a push here"
        if command.old != self.refs.get(command.reference):
            return "fetch first: the branch has moved, or holds work that was not committed yet"
        return ""

    @guarded
    def open_quarantine(self) -> Path:
        """Make an empty repository to unpack a push in, which borrows what is on offer."""
        return self._exchange.open_quarantine(self._shown)

    @guarded
    def receive(self, quarantine: str, command: Command, options: Sequence[str]) -> Received:
        """Have the daemon take in what was unpacked in a quarantine."""
        self._authority.check()
        arguments = {
            "branch": self._branch,
            "quarantine": quarantine,
            "reference": command.reference,
            "old": command.old,
            "new": command.new,
        }
        done = self._control.call(self._caller, "git.receive", arguments | {"options": list(options)})
        return Received(done["commit"], done["notices"])

    @guarded
    def discard(self, quarantine: str) -> None:
        """Remove a quarantine. Repeats do nothing."""
        self._exchange.discard(quarantine)

    @guarded
    def open_large(self, file: LargeFile) -> LargeContent:
        """Open the large file that a pointer on offer stands for. Raises `Kind.NOT_FOUND`."""
        try:
            return self._shown.open_large(bytes.fromhex(file.sha256), file.size)
        except NotFound:
            raise Fault(Kind.NOT_FOUND, f"{file.sha256}: no such large file", hint="fetch again") from None

    @guarded
    def has_large(self, file: LargeFile) -> bool:
        """Tell whether `open_large` finds it, or whether this caller uploaded it for a push to come."""
        try:
            self.open_large(file).close()
        except Fault as fault:
            if fault.kind is not Kind.NOT_FOUND:
                raise
            return self._uploads().find(file) is not None
        return True

    @guarded
    def put_large(self, file: LargeFile, content: Content) -> None:
        """Keep the content of a large file for a push to come. Raises `Kind.INVALID` when it is not what its name says."""
        workspace = self._control.workspace(self._caller, self._uploads().run.branch)
        try:
            read = _Digesting(content)
            staged = workspace.stage(read)
            if (read.sha256, staged.size) != (file.sha256, file.size):
                workspace.unstage(staged.id)
                raise Fault(Kind.INVALID, "the content is not what its name says", hint="send it again")
            former = self._uploads().note(file, staged.id)
            if former:
                workspace.unstage(former)
        finally:
            workspace.close()

    @guarded
    def large_paths(self) -> Sequence[bytes]:
        """Return the paths of the head's tree where pointers stand for large files."""
        return sorted(self._shown.large_files())

    @guarded
    def sees(self, path: bytes) -> bool:
        """Tell whether a path exists, or could exist, for the caller."""
        directory, _, name = path.rpartition(b"/")
        return self._authority.sees(directory, name, is_directory=False)

    @guarded
    def close(self) -> None:
        """Flush what was counted and release everything. Repeats do nothing."""
        sent, self._sent = self._sent, 0
        if sent:
            now = self._sight.appliance.now()
            read = {"path": "/", "times": 1, "first": now, "last": now}
            body = {"branch": self._branch, "commit": self.refs[self.head], "reads": [read], "beyond": 0, "bytes": sent}
            self._sight.appliance.trust.state("reads", self._identity, body, now)
        self._meter.settle()
        self._authority.flush(everything=True)
        self._shown.close()

    def _uploads(self) -> Uploads:
        run = own_branch(self._sight, self._identity, self._branch)
        if run is None:
            raise Fault(Kind.DENIED, "no run of yours takes large files here", hint="push to the branch of a run: /git/RUN.git")
        return Uploads(self._control.notes("git"), run)


@dataclass(frozen=True, slots=True)
class Uploads:
    """Large files that were uploaded for a push of one run: by their name, the staged bytes that hold them."""

    notes: Notes
    run: Run

    def find(self, file: LargeFile) -> str | None:
        """Return the staged bytes of a file, None when it was not uploaded."""
        _, note = self.notes.find(self._key(file))
        return note["staged"] if note and note["size"] == file.size else None

    def note(self, file: LargeFile, staged: str) -> str | None:
        """Remember the staged bytes of a file, and return those it had before."""
        while True:
            version, former = self.notes.find(self._key(file))
            if self.notes.put(self._key(file), {"size": file.size, "staged": staged}, version):
                return former.get("staged")

    def forget(self, file: LargeFile) -> None:
        """Forget a file. Repeats do nothing."""
        version, _ = self.notes.find(self._key(file))
        self.notes.remove(self._key(file), version)

    def _key(self, file: LargeFile) -> str:
        return f"large/{self.run.run}/{file.sha256}"


class _Digesting:
    """A content that is hashed while it is read."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Return the hash of what was read."""
        return self._digest.hexdigest()

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        data = self._content.read(size)
        self._digest.update(data)
        return data

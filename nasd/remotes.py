"""Git remotes through accounts: a branch of a remote comes into a run's branch, a run's branch goes to one.

1. What is fetched fills a quarantine; `nasd.fetched` takes it in.
2. What a push would tell the remote is every commit that it is not known to have. Their labels, path by path and commit by commit, are
   part of the decision: what a later commit took away again leaves with the history all the same.
3. What a remote is known to have is what was fetched from it or pushed to it before; nobody is asked, so that the decision comes first.
4. The remote learns the ids of the commits that the caller may see: they are how git tells what is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.desk import Desk
from nasd.fetched import Fetched
from nasd.labelling import Labelling
from nasd.lineage import Histories
from nasd.outward import Outward, OutwardAct
from nasd.repositories import HEADS, open_exchange, show
from nasd.runs import MAIN, Run
from store.errors import NotFound
from store.exchange import Shown
from store.model import CommitId
from trust.accounts import Account
from trust.errors import AccountInvalid, Outdated, Taken, Unknown
from trust.labels import DEFAULT, Label, join
from trust.model import Action, Identity
from trust.requests import check_remote

_KIND = "remote"
_MOST_KNOWN = 64
_MOST_WEIGHED = 1000
"""Commits that are looked at path by path before a push; beyond, the names of their roots have to do."""
FETCH_SECONDS = 600.0
FETCH_BYTES = 4 << 30


class Remotes:
    """Fetches from remotes and pushes to them. Any thread may call; the daemon alone does."""

    def __init__(self, desk: Desk, outward: Outward) -> None:
        """Work on the histories behind `desk`, through `outward`."""
        self._desk = desk
        self._outward = outward
        self._trust = desk.appliance.trust
        self._engine = desk.appliance.engine

    def fetch(self, identity: Identity, run: Run, arguments: Mapping[str, Any]) -> Document:
        """Bring a branch of a remote into the branch of a run. Raises `Kind.CONFLICT`."""
        account, path, branch = self._asked(identity, arguments, push=False)
        desk, exchange = self._desk, open_exchange(self._desk.appliance)
        desk.own_run(identity, run.run, Action.WRITE)
        desk.runs.commit(run, identity, f"work before a fetch from {account.name}")
        exchange.publish()
        act = {"path": path, "branch": branch, "into": run.branch}
        what = f"fetch {branch} of {account.destination}{path} as {account.name}"
        outward = OutwardAct(account, "fetch", act, what)
        with closing(show(desk, exchange, identity, run.branch)) as shown:
            quarantine = exchange.open_quarantine(shown)
            try:
                with self._outward.acting(identity, outward) as outcome:
                    commit, base = self._bring(outward, shown, quarantine)
                    outcome["commit"] = commit
                    self._outward.learn(identity, account, run.run)
                self._note(account, path, commit)
                fetched = Fetched(desk, identity, run, account, exchange, quarantine, commit, base)
                document = {"account": account.name, "run": run.run, "branch": run.branch, "fetched": commit, "label": str(account.label)}
                return document | fetched.take_in(shown)
            finally:
                exchange.discard(quarantine.name)

    def push(self, identity: Identity, run: Run, arguments: Mapping[str, Any]) -> Document:
        """Send the branch of a run to a branch of a remote, forward only. Raises `Kind.CONFLICT` when that has moved."""
        account, path, branch = self._asked(identity, arguments, push=True)
        desk, exchange = self._desk, open_exchange(self._desk.appliance)
        desk.own_run(identity, run.run, None)
        if identity.lease is None or Action.WRITE in identity.lease.scope.actions:
            desk.runs.commit(run, identity, f"work before a push to {account.name}")
        exchange.publish()
        head = self._engine.branch(run.branch).head
        with closing(show(desk, exchange, identity, run.branch)) as shown:
            commit = shown.refs[HEADS + run.branch]
            fresh = list(self._unknown(head, self._known(account, path) if commit == head else []))
            act = {"path": path, "branch": branch, "commit": commit, "head": head, "commits": len(fresh)}
            what = f"push {run.branch} to {branch} of {account.destination}{path} as {account.name}"
            outward = OutwardAct(account, "push", act, what, self._label(identity, fresh))
            question = {"folder": str(shown.folder), "path": path, "commit": commit, "branch": branch, "seconds": FETCH_SECONDS}
            with self._outward.acting(identity, outward) as outcome:
                told = self._outward.ask(outward, "push", question)["told"]
                outcome |= {"commit": commit, "told": told}
                self._outward.learn(identity, account, run.run)
        self._note(account, path, commit)
        return {"account": account.name, "branch": branch, "commit": commit, "commits": len(fresh), "told": told}

    def _asked(self, identity: Identity, arguments: Mapping[str, Any], *, push: bool) -> tuple[Account, str, str]:
        account = self._outward.account(identity, arguments["account"])
        path, branch = "/" + arguments["repository"].strip("/"), arguments.get("branch", "main")
        try:
            check_remote(account, path, push=push)
        except AccountInvalid as error:
            raise Fault(Kind.INVALID, str(error), hint=f"`nas account show {account.name}` shows what it lets") from None
        return account, path, branch

    def _bring(self, outward: OutwardAct, shown: Shown, quarantine: Path) -> tuple[str, str]:
        """Have a remote's branch fetched, and return its commit and the best one that it shares with the branch shown."""
        # Git says what it has by these names, so that only what is missing is sent.
        shutil.copyfile(shown.folder / "packed-refs", quarantine / "packed-refs")
        question = {"folder": str(quarantine), "path": outward.act["path"], "branch": outward.act["branch"]}
        bounds = {"head": shown.refs[shown.head], "seconds": FETCH_SECONDS, "largest": FETCH_BYTES}
        answer = self._outward.ask(outward, "fetch", question | bounds)
        return answer["commit"], answer["base"]

    def _unknown(self, head: CommitId, known: list[CommitId]) -> Iterator[CommitId]:
        """Yield the commits that a remote is not known to have, newest first."""
        waiting, seen = [head], {head}
        while waiting:
            commit = waiting.pop()
            if any(self._engine.is_ancestor(commit, each) for each in known):
                continue
            yield commit
            parents = [parent for parent in self._engine.read_commit(commit).parents if parent not in seen]
            seen.update(parents)
            waiting.extend(parents)

    def _label(self, identity: Identity, commits: list[CommitId]) -> Label:
        """Return the join of the labels of everything that these commits brought, newest first; of very many a label that none is above."""
        if len(commits) > _MOST_WEIGHED:
            main = self._engine.branch(MAIN).head
            return Histories(self._desk.appliance).label(main, commits[:1], identity.lease.scope if identity.lease else None)
        labelling, label = Labelling(self._desk.appliance), DEFAULT
        for commit in commits:
            parent = next(iter(self._engine.read_commit(commit).parents), None)
            label = join(label, labelling.label_of_changes(self._engine.diff(parent, commit)))
        return label

    def _known(self, account: Account, path: str) -> list[CommitId]:
        known = []
        for text in self._noted(account, path)[1]:
            try:
                known.append(self._engine.resolve(text))
            except NotFound:
                continue  # what was fetched and not taken in, or a history with something left out
        return known

    def _note(self, account: Account, path: str, commit: str) -> None:
        """Remember that a remote has a commit."""
        while True:
            version, heads = self._noted(account, path)
            if commit in heads:
                return
            try:
                self._trust.put_document(_KIND, f"{account.destination}{path}", {"heads": [*heads, commit][-_MOST_KNOWN:]}, version)
            except (Taken, Outdated):
                continue
            return

    def _noted(self, account: Account, path: str) -> tuple[int, list[str]]:
        try:
            found = self._trust.document(_KIND, f"{account.destination}{path}")
        except Unknown:
            return 0, []
        return found.version, list(found.body["heads"])

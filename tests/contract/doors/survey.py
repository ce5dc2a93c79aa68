"""Every operation, under every lease, through every door, on one served appliance; and what each left behind.

1. Each door works on a branch of its own for each lease, so that nothing one of them does is in another's way.
2. What an operation left is read when everything has stopped: only then is all that was counted in the record.
3. A lease that is to expire is asked last. One that is revoked was used through the door before, with everything still open.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.contract.doors.clients import HERE
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.inside import REQUESTS, SESSION
from tests.contract.doors.leases import TERMS, Standing, Terms
from tests.contract.doors.model import Allowed, Cell, Client, Decided, Denied, Operation, Refused, Trace, folder_of, perform
from tests.contract.doors.site import Held, Remains, Site, open_remains, open_site
from trust.model import BudgetKind, LeaseId

Key = tuple[str, Standing, Operation]


@dataclass(frozen=True, slots=True)
class Entered:
    """A door that a lease went through, and the client on the other side."""

    door: Door
    standing: Standing
    held: Held
    client: Client


@dataclass(frozen=True, slots=True)
class Survey:
    """What came of it: a cell for each door, lease and operation, and what each lease spent."""

    cells: Mapping[Key, Cell]
    never: Mapping[Key, Cell]
    """Asked of what never existed, under the leases that hide something."""
    spent: Mapping[tuple[str, Standing], Mapping[BudgetKind, int]]
    manifest: Mapping[tuple[str, Standing], int]
    """How many reads the manifest of each lease counts."""

    def truth(self, door: Door, standing: Standing, operation: Operation) -> Cell:
        """Return what the port does for a door of this sort."""
        return self.cells[(SESSION if door.holds else REQUESTS).name, standing, operation]


def survey(folder: Path, doors: Sequence[Door] = HERE) -> Survey:
    """Ask everything. The appliance lives in `folder` and is stopped when this returns."""
    with open_site(folder) as site, ExitStack() as clients:
        entered = [_enter(site, door, standing, clients) for standing in Standing for door in doors]
        began = time.monotonic()
        asked: dict[tuple[str, Standing], dict[Operation, Cell]] = {}
        never: dict[Key, Cell] = {}
        for each in sorted(entered, key=lambda each: each.standing is Standing.EXPIRED):
            _prepare(site, each, began)
            terms = TERMS[each.standing]
            asked[_key(each)] = {operation: _ask(each, operation, terms.root, terms.leaf) for operation in Operation}
            if terms.twin is not None:
                never |= {(*_key(each), operation): _ask(each, operation, *terms.twin) for operation in Operation}
    with open_remains(folder / "home") as remains:
        read = Reading(remains)
        cells = {
            (each.door.name, each.standing, operation): replace(cell, trace=read.trace(each, operation))
            for each in entered
            for operation, cell in asked[_key(each)].items()
        }
        spent = {_key(each): read.spent(each) for each in entered}
        return Survey(cells, never, spent, {_key(each): read.count(each) for each in entered})


def _key(each: Entered) -> tuple[str, Standing]:
    return each.door.name, each.standing


def _enter(site: Site, door: Door, standing: Standing, clients: ExitStack) -> Entered:
    terms = TERMS[standing]
    held = site.start(terms.paths, terms.actions, terms.budgets, terms.lives)
    return Entered(door, standing, held, clients.enter_context(closing(door.connect(site, held))))


def _prepare(site: Site, each: Entered, began: float) -> None:
    """Bring about what the lease is about to stand for."""
    if each.standing is Standing.EXPIRED:
        time.sleep(max(0.0, began + _lives(TERMS[each.standing]) - time.monotonic()))
    if each.standing is Standing.REVOKED:
        each.client.list("work")
        each.client.read("work/read/second")
        site.revoke(each.held)


def _lives(terms: Terms) -> int:
    assert terms.lives is not None
    return terms.lives + 1


def _ask(each: Entered, operation: Operation, root: str, leaf: str) -> Cell:
    each.client.told.clear()
    decided: Decided
    try:
        decided = Allowed(perform(each.client, operation, root, leaf))
    except Refused as refused:
        decided = Denied(refused.word, each.door.words.get(refused.word, frozenset()))
    return Cell(decided, tuple(each.client.told))


class Reading:
    """Reads what operations left in the record and on the branches."""

    def __init__(self, remains: Remains) -> None:
        self._remains = remains
        self._denied: dict[str, set[tuple[str, str, str]]] = {}
        self._read: dict[str, Counter[str]] = {}
        self._files: dict[str, Mapping[str, bytes]] = {}
        for record in remains.trust.records(kind="denied"):
            self._denied.setdefault(record.lease, set()).add(_refusal(record.body))
        for record in remains.trust.records(kind="reads"):
            self._read.setdefault(record.lease, Counter()).update({read["path"]: read["times"] for read in record.body["reads"]})

    def trace(self, each: Entered, operation: Operation) -> Trace:
        """Return what one operation left: what lies in its directory, and what is recorded of it."""
        below = folder_of(TERMS[each.standing].root, operation)
        denied = {refusal for refusal in self._denied.get(each.held.lease, ()) if _is_in(refusal[1], below)}
        read = {path for path in self._read.get(each.held.lease, ()) if _is_in(path, below)}
        files = {path: content for path, content in self._branch(each.held.branch).items() if _is_in(path, below)}
        return Trace(frozenset(denied), frozenset(read), files)

    def count(self, each: Entered) -> int:
        """Return how many reads were noted under a lease."""
        return sum(self._read.get(each.held.lease, Counter()).values())

    def spent(self, each: Entered) -> Mapping[BudgetKind, int]:
        """Return what was charged to a lease."""
        return dict(self._remains.trust.lease(LeaseId(each.held.lease)).used)

    def _branch(self, branch: str) -> Mapping[str, bytes]:
        if branch not in self._files:
            self._files[branch] = self._remains.files(branch)
        return self._files[branch]


def _refusal(body: Mapping[str, Any]) -> tuple[str, str, str]:
    return body["action"], body["path"], body["rule"]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")

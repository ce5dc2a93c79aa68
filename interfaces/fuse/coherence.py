"""Keeping the kernel's caches true: which of them must go, and why.

1. The kernel caches entries and attributes without a limit, so every change that does not come through this mount must be
   announced to it. `Workspace.version` tells that something changed, `Workspace.touched` what.
2. What this mount did itself needs no announcement: the kernel knows. A call that surely changed something made the version
   that follows the one seen last; a call that may have changed nothing made it when it was not there before the call and
   names no other node. A bigger step may hide somebody else's change and is announced whole.
3. Deciding (here) happens in the thread that answers the kernel, between two answers: an answer given before is then always
   older than the announcement, and one given after is already made of the new state. Announcing itself blocks in the
   kernel and happens in another thread (`interfaces.fuse.notices`).
4. When everything may have changed, the names at the root go and the attributes of every node: dropping a directory's
   name makes the kernel drop all names below it that are not in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from interfaces.fuse.growing import Growing
from interfaces.fuse.known import Known
from interfaces.port import ROOT, Touch, Workspace

_ROOT_NAMES_MAX = 65536


class Notice(NamedTuple):
    """One thing the kernel must drop: a name of the directory `node`, or (None) what it cached of `node`.

    `pages` tells whether cached content goes too or only the attributes.
    """

    node: int
    name: bytes | None = None
    pages: bool = True


class Coherence:
    """What changed behind the kernel's back."""

    def __init__(self, workspace: Workspace, known: Known) -> None:
        """Take the present state as what the kernel knows."""
        self._workspace = workspace
        self._known = known
        self._seen = workspace.version()
        self._root_names: set[bytes] = set()
        self._stale: set[int] = set()
        self._growing = Growing(workspace)
        self.mutations = 0

    def tell_root_name(self, name: bytes) -> None:
        """Note that the kernel was told about a name at the root, be it that it does not exist."""
        if len(self._root_names) < _ROOT_NAMES_MAX:
            self._root_names.add(name)

    def own(self) -> None:
        """Take the change that our own call surely made as known to the kernel."""
        self.mutations += 1
        if self._workspace.version() == self._seen + 1:
            self._seen += 1

    def settle(self, before: int, node: int | None) -> None:
        """Take a change as known to the kernel if our own call made it: `before` is the version before the call.

        `node` is the only node the call can have changed, None where its names may be others' too.
        """
        self.mutations += 1
        if before == self._seen and self._workspace.version() == before + 1 and self._concerns_only(node):
            self._seen += 1

    def _concerns_only(self, node: int | None) -> bool:
        touched = self._workspace.touched(self._seen)
        return touched is not None and (node is None or all(touch.node == node and touch.name is None for touch in touched))

    def is_stale(self, node: int) -> bool:
        """Tell once whether the content of a node changed elsewhere since the kernel last opened it."""
        if node in self._stale:
            self._stale.discard(node)
            return True
        return False

    def collect(self) -> list[Notice]:
        """Return what the kernel must drop because other doors changed it since the last call."""
        version = self._workspace.version()
        if version == self._seen:
            return []
        touched = self._workspace.touched(self._seen)
        self._seen = version
        self.mutations += 1
        return self.everything() if touched is None else list(self._notices(touched))

    def look_at_growing(self) -> list[Notice]:
        """Return what the kernel must drop of files that are being written elsewhere without a new version for each write."""
        nodes = [node for node in self._growing.collect() if node in self._known]
        self._stale.update(nodes)
        self.mutations += len(nodes)
        return [Notice(node) for node in nodes]

    def everything(self) -> list[Notice]:
        """Return notices for all the kernel holds: names first, so that no path leads past what follows."""
        nodes = self._known.nodes()
        self._stale.update(nodes)
        names = [Notice(ROOT, name) for name in self._root_names]
        return names + [Notice(node) for node in nodes]

    def _notices(self, touched: Sequence[Touch]) -> Iterable[Notice]:
        known = self._known
        names = {(touch.parent, touch.name) for touch in touched if touch.parent is not None and touch.name is not None}
        names = {(parent, name) for parent, name in names if parent in known}
        nodes = {touch.node for touch in touched if touch.node in known}
        self._stale.update(nodes)
        self._growing.note(touch.node for touch in touched)
        yield from (Notice(parent, name) for parent, name in names)
        yield from (Notice(node) for node in nodes)
        yield from (Notice(parent, pages=False) for parent in {parent for parent, _ in names} - nodes)

"""In and out: directories and histories become branches, branches become directories and repositories.

1. An import is whole before its branch exists: content and commit are packed and on stable storage, then one transaction makes the name.
2. An export sees packs only, so the owner flushes first and keeps repacks away until it is done.
3. Both are the owner's work.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from store.contract import Progress
from store.engines.git.branches import Branches, BranchRow, check_name
from store.engines.git.clones import Outgoing, export_history
from store.engines.git.commits import store_objects
from store.engines.git.database import Database
from store.engines.git.exports import export_tree
from store.engines.git.histories import import_history
from store.engines.git.history import History
from store.engines.git.imports import import_tree
from store.engines.git.large import LargeStore, Pointer
from store.engines.git.objects import compose_commit
from store.engines.git.packs import PackWriter, Sync
from store.engines.git.upkeep import Upkeep
from store.engines.git.vault import Vault
from store.errors import Exists, NotFound
from store.model import CommitId, ImportReport, Note


class Transfers:
    """Imports and exports of one store."""

    def __init__(
        self, folder: Path, database: Database, vault: Vault, history: History, large: LargeStore, upkeep: Upkeep, *, sync: Sync
    ) -> None:
        """Work for the store in `folder`."""
        self._folder = folder
        self._git_dir = folder / "repo.git"
        self._packs = self._git_dir / "objects" / "pack"
        self._database = database
        self._vault = vault
        self._history = history
        self._large = large
        self._upkeep = upkeep
        self._sync = sync
        self._branches = Branches(database)

    def import_directory(self, source: Path, branch: str, note: Note, progress: Progress) -> ImportReport:
        """Commit a directory's content as a new branch. Raises `ImportFailed`, `HostileTree`, `Exists`."""
        self._upkeep.owned()
        self._check_free(branch)
        with self._large.writing():
            with PackWriter(self._packs, sync=self._sync, workers=os.cpu_count() or 1) as pack:
                imported = import_tree(source, pack, self._large, progress, avoid=self._folder, taken=self._is_ordinary)
                commit = compose_commit(imported.tree, (), note)
                pack.add(commit)
            self._add_branch(branch, commit.oid, note.when, imported.pointers)
        return ImportReport(CommitId(commit.oid.hex()), imported.files, imported.size, imported.passed_over)

    def import_git(self, source: str, branch: str, now: int, progress: Progress) -> ImportReport:
        """Take over the history of a git repository as a new branch. Raises as `import_directory`."""
        self._check_free(branch)
        quarantine = Path(tempfile.mkdtemp(prefix="quarantine-", dir=self._folder / "tmp"))
        try:
            with self._upkeep.owned().packing():
                imported = import_history(source, quarantine, self._packs, progress, sync=self._sync)
                self._add_branch(branch, imported.head, now, {})
        finally:
            shutil.rmtree(quarantine, ignore_errors=True)
        return ImportReport(CommitId(imported.head.hex()), imported.files, imported.size, imported.passed_over)

    def export_directory(self, commit: bytes, target: Path, progress: Progress) -> int:
        """Write a commit's tree into an empty or missing directory and return the number of files. Raises `Exists`."""
        return export_tree(self._vault, self._history.tree(commit), self._history.when(commit), target, progress)

    def export_git(self, branch: str, target: Path, progress: Progress) -> int:
        """Write a branch with its history as a bare repository, and return the number of commits. Raises `Exists`."""
        row = self._branches.find(branch)
        snapshots = {snapshot.name: snapshot.head for snapshot in self._branches.snapshots()}
        large = self._database.select_one("SELECT 1 FROM large") is not None
        maintainer = self._upkeep.owned()
        with maintainer.packing():
            maintainer.flush()
            return export_history(self._vault, self._git_dir, Outgoing(branch, row.head, snapshots), target, progress, large=large)

    def _is_ordinary(self, oid: bytes) -> bool:
        """Tell whether a blob is here as a file of its own, whatever it spells."""
        return self._vault.pointer(oid) is None and self._vault.has(oid)

    def _check_free(self, branch: str) -> None:
        check_name(branch)
        try:
            self._branches.find(branch)
        except NotFound:
            return
        raise Exists(branch, "the name is a branch")

    def _add_branch(self, name: str, head: bytes, now: int, pointers: Mapping[bytes, Pointer]) -> None:
        with self._database.transaction() as connection:
            store_objects(connection, (), pointers)
            row = BranchRow(0, name, head, head, now, 0)
            self._branches.create(connection, row, self._history.tree(head), self._history.when(head))
        self._database.flush()

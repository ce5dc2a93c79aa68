"""Merging two commits without a checkout.

1. Trees merge by `store.merge`; what both sides changed within a file merges line by line in a git child with a fixed environment.
2. Only text of up to 8 MiB merges by lines; anything else that both sides changed is a conflict.
3. Objects are collected, not stored: the caller keeps them in the transaction that moves the branch, or drops them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from store.engines.git.commands import CommandFailed, run_git
from store.engines.git.harvest import Harvest
from store.engines.git.history import History
from store.engines.git.large import THRESHOLD
from store.engines.git.objects import Kind, encode_tree, make_object
from store.engines.git.vault import Vault
from store.lines import is_binary
from store.merge import MergedTree, merge_trees
from store.renames import NONE
from store.trees import Listing, TreeEntry


class Merger:
    """Merges commits of one store."""

    def __init__(self, vault: Vault, history: History, scratch: Path) -> None:
        """Read from `vault`; `scratch` is a folder for files that live as long as a git child."""
        self._vault = vault
        self._history = history
        self._scratch = scratch

    def merge(self, ours: bytes, theirs: bytes, harvest: Harvest) -> MergedTree:
        """Merge the trees of two commits over that of their common ancestor; `harvest` takes what is written."""
        base = self._history.merge_base(ours, theirs)

        def write(listing: Listing) -> bytes:
            written = make_object(Kind.TREE, encode_tree(listing))
            self._vault.keep_tree(written.oid, listing)
            return harvest.add(written)

        def merge_content(path: bytes, before: TreeEntry | None, mine: TreeEntry, other: TreeEntry) -> TreeEntry | None:
            merged = None if before is None else self._merge_lines(before.content, mine.content, other.content)
            return None if merged is None else TreeEntry(mine.mode, harvest.add(make_object(Kind.BLOB, merged)))

        return merge_trees(
            self._vault.tree,
            write,
            None if base is None else self._history.tree(base),
            self._history.tree(ours),
            self._history.tree(theirs),
            merge_content,
            NONE if base is None else self._history.renames_since(base, ours),
            NONE if base is None else self._history.renames_since(base, theirs),
        )

    def _merge_lines(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """Return the merged content, or None when it does not merge by lines."""
        oids = (ours, base, theirs)
        if any(self._vault.size(oid) >= THRESHOLD for oid in oids):
            return None
        contents = [self._vault.content(oid) for oid in oids]
        if any(is_binary(content) for content in contents):
            return None
        with tempfile.TemporaryDirectory(prefix="merge-", dir=self._scratch) as folder:
            paths = [Path(folder) / side for side in ("ours", "base", "theirs")]
            for path, content in zip(paths, contents, strict=True):
                path.write_bytes(content)
            try:
                return run_git(None, "merge-file", "-p", "-q", *map(str, paths))
            except CommandFailed:
                return None

"""Histories out of the store: one branch as a bare repository that plain git clones.

1. Only what the branch reaches goes out, with the snapshots of it as tags. Everything that is exported lies in packs when an export begins
   and stays there until it ends; the caller sees to both.
2. A large file goes out as the blob it is, not as a pointer: whoever clones needs nothing but git. Commits from the first large file on
   have other identities there; ``nas-export.json`` in the repository lists them. A history without large files goes out identical.
3. A rewritten commit loses its signature, which would not fit it any more, and keeps everything else.
4. The repository is made beside the target and renamed there when it is whole.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from store.contract import Progress
from store.engines.git.commands import git_reader, run_git
from store.engines.git.exports import Source, reported
from store.engines.git.objects import GITLINK, Kind, encode_commit, encode_tree, make_object
from store.engines.git.packs import PackWriter, sync_folder
from store.errors import Exists
from store.trees import DIRECTORY, EXECUTABLE, FILE, TreeEntry

MAP_FILE = "nas-export.json"
"""The file in an exported repository that lists the commits with another identity than here."""

_SIGNATURE = re.compile(rb"^gpgsig(?:-sha256)? .*\n(?: .*\n)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to export: a branch with its head, and the snapshots that become tags where the branch reaches them."""

    branch: str
    head: bytes
    snapshots: Mapping[str, bytes]


def export_history(source: Source, git_dir: Path, outgoing: Outgoing, target: Path, progress: Progress, *, large: bool) -> int:
    """Write a branch with its history as a bare repository and return the number of commits.

    `git_dir` is the store's own repository; `large` tells whether the store knows any large file at all.
    Raises `Exists` when the target holds anything, `NoSpace`, `StoreError`.
    """
    with reported(target):
        _refuse_target(target)
        workspace = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            made = workspace / "exported.git"
            commits = _make(source, git_dir, outgoing, made, progress, large=large)
            made.rename(target)
            sync_folder(target.parent)
        finally:
            shutil.rmtree(workspace)
    progress("export", commits, commits)
    return commits


def _refuse_target(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise Exists(str(target), "something else is there")
    if target.is_dir() and any(target.iterdir()):
        raise Exists(str(target), "the directory is not empty")


def _make(source: Source, git_dir: Path, outgoing: Outgoing, made: Path, progress: Progress, *, large: bool) -> int:
    run_git(None, "init", "--quiet", "--bare", "--template=", f"--initial-branch={outgoing.branch}", str(made))
    rewritten = _rewrite(source, git_dir, outgoing.head, made, progress) if large else {}
    if not rewritten:
        wanted = outgoing.head.hex().encode() + b"\n"
        run_git(git_dir, "pack-objects", "--quiet", "--revs", "--delta-base-offset", str(_packs(made) / "pack"), given=wanted)
    else:
        listed = {old.hex(): new.hex() for old, new in rewritten.items()}
        (made / MAP_FILE).write_text(json.dumps({"format": 1, "rewritten": listed}, indent=1) + "\n")
    _write_refs(made, outgoing, rewritten)
    return int(run_git(made, "rev-list", "--count", f"refs/heads/{outgoing.branch}"))


def _write_refs(made: Path, outgoing: Outgoing, rewritten: Mapping[bytes, bytes]) -> None:
    heads = {name: rewritten.get(commit, commit).hex() for name, commit in outgoing.snapshots.items()}
    present = _present(made, heads.values())
    lines = [f"create refs/heads/{outgoing.branch} {rewritten.get(outgoing.head, outgoing.head).hex()}"]
    lines += [f"create refs/tags/{name} {oid}" for name, oid in heads.items() if oid in present]
    run_git(made, "update-ref", "--stdin", given="\n".join([*lines, ""]).encode())


def _present(made: Path, oids: Iterable[str]) -> set[str]:
    """Return those objects that went out: what the branch reaches, and nothing else."""
    answers = run_git(made, "cat-file", "--batch-check=%(objectname)", given="".join(f"{oid}\n" for oid in oids).encode())
    return set(answers.decode().splitlines())


def _rewrite(source: Source, git_dir: Path, head: bytes, made: Path, progress: Progress) -> dict[bytes, bytes]:
    """Write the objects of a history whose large files become blobs, and return the commits that changed; nothing when none did."""
    with tempfile.TemporaryFile() as kept, PackWriter(_packs(made)) as pack:
        rewrite = _Rewrite(source, pack, kept)
        for count, commit in enumerate(_history(git_dir, head), 1):
            rewrite.take_commit(commit)
            if count % 500 == 0:
                progress("export", count, 0)
        if rewrite.changed:
            kept.seek(0)
            with git_reader(git_dir, "pack-objects", "--quiet", "--delta-base-offset", str(_packs(made) / "pack"), given=kept) as output:
                output.read()
        return rewrite.changed


def _history(git_dir: Path, head: bytes) -> Iterator[bytes]:
    """Yield the commits that `head` reaches, parents first."""
    with git_reader(git_dir, "rev-list", "--topo-order", "--reverse", head.hex()) as output:
        for line in output:
            yield bytes.fromhex(line.decode())


def _packs(git_dir: Path) -> Path:
    return git_dir / "objects" / "pack"


class _Rewrite:
    """A history on its way out: changed objects go to `pack`, the identities of the others to the list `kept`."""

    def __init__(self, source: Source, pack: PackWriter, kept: IO[bytes]) -> None:
        self.changed: dict[bytes, bytes] = {}
        self._source = source
        self._pack = pack
        self._kept = kept
        self._sent: dict[bytes, bytes] = {}

    def take_commit(self, oid: bytes) -> None:
        """Send a commit whose parents went before."""
        commit = self._source.commit(oid)
        tree = self._take_tree(commit.tree)
        parents = tuple(self.changed.get(parent, parent) for parent in commit.parents)
        if (tree, parents) == (commit.tree, commit.parents):
            self._keep((oid,))
            return
        extra = _SIGNATURE.sub(b"", commit.extra)
        made = make_object(Kind.COMMIT, encode_commit(dataclasses.replace(commit, tree=tree, parents=parents, extra=extra)))
        self._pack.add(made)
        self.changed[oid] = made.oid

    def _take_tree(self, oid: bytes) -> bytes:
        known = self._sent.get(oid)
        if known is None:
            known = self._sent[oid] = self._send_tree(oid)
        return known

    def _send_tree(self, oid: bytes) -> bytes:
        before = self._source.tree(oid)
        after = {name: self._take_entry(entry) for name, entry in before.items()}
        self._keep(entry.content for name, entry in after.items() if entry == before[name] and entry.mode not in (DIRECTORY, GITLINK))
        if after == before:
            self._keep((oid,))
            return oid
        made = make_object(Kind.TREE, encode_tree(after))
        self._pack.add(made)
        return made.oid

    def _take_entry(self, entry: TreeEntry) -> TreeEntry:
        if entry.mode == DIRECTORY:
            return entry._replace(content=self._take_tree(entry.content))
        if entry.mode in (FILE, EXECUTABLE) and self._source.pointer(entry.content) is not None:
            return entry._replace(content=self._send_large(entry.content))
        return entry

    def _send_large(self, oid: bytes) -> bytes:
        known = self._sent.get(oid)
        if known is None:
            known = self._sent[oid] = self._pack.add_stream(Kind.BLOB, self._source.size(oid), self._source.chunks(oid))
        return known

    def _keep(self, oids: Iterable[bytes]) -> None:
        self._kept.writelines(oid.hex().encode() + b"\n" for oid in oids)

"""`store.exchange.Exchange` over a store: what git is shown, and where it writes.

1. A shown repository is a handful of small files that borrows every object: from the store, or from a projection of it. It is made for one
   request and removed after it.
2. Everything here but the quarantines lies in a folder of the caller's that may be lost, below the name of the machine's boot.
3. A quarantine is locked by the process that made it, as long as that lives: one that nobody holds is what a death left behind.
4. Git children that read packs need no lock: a repack leaves what is reachable in place before it removes anything, and keeps what is
   young; git looks again when a pack is gone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from store.engines.git.census import Census
from store.engines.git.commands import run_git
from store.engines.git.committed import CommittedHandle
from store.engines.git.content import ContentCache
from store.engines.git.database import Database
from store.engines.git.large import POINTER_SIZES, LargeStore, Pointer, encode_pointer
from store.engines.git.objects import Kind, make_object
from store.engines.git.ownership import read_boot
from store.engines.git.packs import Sync
from store.engines.git.projection import EVERYTHING, Projection, make_object_folder
from store.engines.git.receiving import GitArrival, Incoming, Receiver
from store.engines.git.upkeep import Upkeep
from store.engines.git.vault import Vault
from store.errors import NotFound
from store.exchange import LargeFile, Limits, Selection, Shown
from store.model import CommitId, NodeId

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
_PACKED_REFS = "# pack-refs with: peeled fully-peeled sorted \n"
_DAY = 86_400
_GRACE = 60
_QUARANTINE = "push-"

MoveBranch = Callable[[str, CommitId, CommitId], None]
"""Moves a branch from one commit to another. Raises `Moved`."""


class ShownRepository:
    """`store.exchange.Shown`."""

    def __init__(self, folder: Path, refs: Mapping[str, CommitId], head: str, projection: Projection | None, exchange: GitExchange) -> None:
        """Take over a folder that is complete; `projection` is None where nothing is left out."""
        self.folder = folder
        self.refs = refs
        self.head = head
        self.projection = projection
        self._exchange = exchange

    @property
    def selection(self) -> str:
        """Return the name of the selection."""
        return EVERYTHING if self.projection is None else self.projection.name

    def reaches(self, objects: Iterable[str]) -> bool:
        """Tell whether each of these objects is a shown commit or is reached from one."""
        wanted = set(objects) - set(self.refs.values())
        return not wanted or self._exchange.objects.holds(self.folder, self.selection, self.refs, map(bytes.fromhex, wanted))

    def has_commit(self, commit: str) -> bool:
        """Tell whether a commit is shown."""
        return commit in self.refs.values() or self._exchange.commits.holds(self.folder, self.selection, self.refs, [bytes.fromhex(commit)])

    def open_large(self, sha256: bytes, size: int) -> CommittedHandle:
        """Open the large file that a shown pointer stands for. Raises `NotFound`."""
        return self._exchange.open_large(self, Pointer(sha256, size))

    def large_files(self) -> dict[bytes, LargeFile]:
        """Return the paths of the head's tree where pointers stand for large files."""
        return self._exchange.list_large(self)

    def close(self) -> None:
        """Remove the repository. Repeats do nothing."""
        shutil.rmtree(self.folder, ignore_errors=True)


class GitExchange:
    """The histories of one store, for git."""

    def __init__(
        self,
        store: Path,
        folder: Path,
        *,
        database: Database,
        vault: Vault,
        cache: ContentCache,
        large: LargeStore,
        upkeep: Upkeep,
        move: MoveBranch,
        sync: Sync,
    ) -> None:
        """Exchange the histories of the store in `store`, keeping what may be lost in `folder`."""
        self.objects = Census()
        self.commits = Census(commits_only=True)
        self._store = store
        self._folder = folder / read_boot()
        self._shown = self._folder / "shown"
        self._database = database
        self._vault = vault
        self._cache = cache
        self._upkeep = upkeep
        self._receiver = Receiver(store, database, vault, large, upkeep, move, sync=sync)
        self._projections: dict[str, Projection] = {}
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        self._shown.mkdir(parents=True, exist_ok=True)

    def packed(self, commits: Iterable[CommitId]) -> bool:
        """Tell whether git can read these commits with all they reach: a commit leaves the journal together with what it needs."""
        waits = "SELECT 1 FROM object WHERE oid = ?"
        return all(self._database.select_one(waits, (bytes.fromhex(commit),)) is None for commit in commits)

    def publish(self) -> None:
        """Put every acknowledged commit where git reads it. Raises `InUse` in a gateway, `NoSpace`."""
        self._upkeep.owned().flush()

    def show(self, refs: Mapping[str, CommitId], head: str, selection: Selection) -> ShownRepository:
        """Make a bare repository of these references, whose commits are packed."""
        projection = None if selection.keep.keeps_all(b"") else self._projection(selection)
        shown = refs if projection is None else _project(projection, refs)
        objects = self._own_objects if projection is None else projection.objects
        return ShownRepository(self._make_repository(shown, head, objects), shown, head, projection, self)

    def open_quarantine(self, shown: Shown) -> Path:
        """Make an empty bare repository in the store's folder that borrows what is shown."""
        folder = Path(tempfile.mkdtemp(prefix=_QUARANTINE, dir=self._store / "tmp"))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        borrowed = (shown.folder / "objects" / "info" / "alternates").read_text().splitlines()
        make_object_folder(folder / "objects", *map(Path, borrowed))
        (folder / "config").write_text(_CONFIG)
        self._held[folder.name] = descriptor
        return folder

    def examine(self, quarantine: str, shown: Shown, branch: str, target: str, limits: Limits) -> GitArrival:
        """Look at what came into a quarantine for a branch, whose new head is to be `target`."""
        assert isinstance(shown, ShownRepository)
        incoming = Incoming(self._quarantine(quarantine), branch, target, shown.refs, shown.projection)
        return self._receiver.examine(incoming, limits, shown.reaches)

    def discard(self, quarantine: str) -> None:
        """Remove a quarantine. Repeats do nothing."""
        shutil.rmtree(self._store / "tmp" / Path(quarantine).name, ignore_errors=True)
        descriptor = self._held.pop(quarantine, None)
        if descriptor is not None:
            os.close(descriptor)

    def sweep(self, now: float) -> None:
        """Remove what processes that died left, and what was made before the machine started."""
        stale = [path for path in self._folder.parent.iterdir() if path != self._folder]
        for folder in (self._shown, self._folder):
            stale += [path for path in folder.iterdir() if path != self._shown and _used(path) < now - _DAY]
        stale += [path for path in (self._store / "tmp").glob(f"{_QUARANTINE}*") if _used(path) < now - _GRACE and _is_abandoned(path)]
        for path in stale:
            shutil.rmtree(path, ignore_errors=True)

    def open_large(self, shown: ShownRepository, pointer: Pointer) -> CommittedHandle:
        """Open the large file that a shown pointer stands for. Raises `NotFound`."""
        blob = make_object(Kind.BLOB, encode_pointer(pointer)).oid
        if self._vault.pointer(blob) != pointer or not shown.reaches([blob.hex()]):
            raise NotFound(pointer.sha256.hex(), "no such large file")
        return CommittedHandle(NodeId(0), self._cache.open(blob))

    def list_large(self, shown: ShownRepository) -> dict[bytes, LargeFile]:
        """Return the paths of a shown head's tree where pointers stand for large files."""
        listed = run_git(shown.folder, "ls-tree", "-r", "-z", "--full-tree", "--format=%(objectname) %(objectsize) %(path)", shown.head)
        found = {}
        for line in listed.split(b"\0")[:-1]:
            oid, size, path = line.split(b" ", 2)
            if size.isdigit() and int(size) in POINTER_SIZES and (pointer := self._vault.pointer(bytes.fromhex(oid.decode()))):
                found[path] = LargeFile(*pointer)
        return found

    def close(self) -> None:
        """Release what was opened. Repeats do nothing."""
        with self._lock:
            for projection in self._projections.values():
                projection.close()
            self._projections.clear()
        for quarantine in tuple(self._held):
            self.discard(quarantine)

    @property
    def _own_objects(self) -> Path:
        return self._store / "repo.git" / "objects"

    def _projection(self, selection: Selection) -> Projection:
        with self._lock:
            projection = self._projections.get(selection.name)
            if projection is None or not projection.use():
                projection = Projection(self._folder, self._own_objects, self._vault, selection)
                self._projections[selection.name] = projection
            return projection

    def _make_repository(self, refs: Mapping[str, CommitId], head: str, objects: Path) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self._shown))
        make_object_folder(folder / "objects", objects)
        (folder / "HEAD").write_text(f"ref: {head}\n")
        (folder / "config").write_text(_CONFIG)
        (folder / "packed-refs").write_text(_PACKED_REFS + "".join(f"{refs[name]} {name}\n" for name in sorted(refs)))
        return folder

    def _quarantine(self, name: str) -> Path:
        folder = self._store / "tmp" / name
        if not name.startswith(_QUARANTINE) or Path(name).name != name or not folder.is_dir():
            raise NotFound(name, "no such quarantine")
        return folder


def _project(projection: Projection, refs: Mapping[str, CommitId]) -> dict[str, CommitId]:
    shown = projection.show({bytes.fromhex(commit) for commit in refs.values()})
    return {name: CommitId(shown[bytes.fromhex(commit)].hex()) for name, commit in refs.items()}


def _is_abandoned(quarantine: Path) -> bool:
    """Tell whether no process holds a quarantine any more."""
    try:
        descriptor = os.open(quarantine, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _used(path: Path) -> float:
    try:
        return max(path.stat().st_mtime, *(each.stat().st_mtime for each in path.iterdir()), 0.0)
    except OSError:
        return float("inf")

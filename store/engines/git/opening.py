"""Opening a store: the parts of the engine are made and put together here, each once.

1. The owner makes what is missing, takes the lock, and makes the store safe before anything reads it.
2. What the machine gives (the boot, the clock, how to sync) comes in as arguments and can be replaced by a test.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from store.engines.git.commands import run_git
from store.engines.git.commits import Committer
from store.engines.git.content import ContentCache
from store.engines.git.database import Database
from store.engines.git.engine import GitEngine
from store.engines.git.exchanging import GitExchange, MoveBranch
from store.engines.git.history import History
from store.engines.git.large import LargeStore
from store.engines.git.layer import Surroundings
from store.engines.git.layers import Layers
from store.engines.git.maintenance import Maintainer
from store.engines.git.merging import Merger
from store.engines.git.ownership import is_safe, lock_store, make_safe, read_boot, refuse_network
from store.engines.git.packs import Sync, sync_folder
from store.engines.git.transfers import Transfers
from store.engines.git.upkeep import Upkeep
from store.engines.git.vault import Vault
from store.errors import InUse

Role = Literal["owner", "gateway"]

_FOLDERS = ("cas", "up", "lo", "tmp")


def probe() -> str | None:
    """Return why the engine cannot run here, or None."""
    return None if shutil.which("git") else "git is not installed"


def open_engine(
    folder: Path, *, role: Role = "owner", clock: Callable[[], int], boot: str | None = None, sync: Sync = os.fdatasync
) -> GitEngine:
    """Open the store in `folder`; the owner makes it when it is missing. `clock` gives nanoseconds since the epoch.

    Raises `InUse` when another process owns the store, or a gateway finds none that an owner has made safe since the machine
    started; `Unsupported` on a file system that other machines can write to.
    """
    with ExitStack() as opening:
        this_boot = boot or read_boot()
        if role == "owner":
            _prepare(folder, opening, sync)
        elif not is_safe(folder, this_boot):
            raise InUse(str(folder), "no owner has opened the store since the machine started")
        database = Database(folder / "meta.db", sync=sync)
        opening.callback(database.close)
        large = LargeStore(folder / "lo", sync=sync)
        maintainer = Maintainer(folder, database, large, sync=sync) if role == "owner" else None
        recovered = []
        if maintainer is not None:
            recovered = [] if is_safe(folder, this_boot) else make_safe(folder, database, this_boot, sync=sync)
            maintainer.recover()
        return _assemble(folder, database, large, maintainer, recovered, clock, sync, opening)


def _prepare(folder: Path, opening: ExitStack, sync: Sync) -> None:
    """Make what is missing of a store, and own it."""
    folder.mkdir(parents=True, exist_ok=True)
    refuse_network(folder)
    lock = lock_store(folder)
    opening.callback(os.close, lock)
    shutil.rmtree(folder / "tmp", ignore_errors=True)
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    if not (folder / "repo.git").exists():
        _make_repository(folder, sync)
    sync_folder(folder, sync)
    sync_folder(folder.parent, sync)


def _make_repository(folder: Path, sync: Sync) -> None:
    """Make the bare repository of a store beside its place, and put it there when it is whole and on stable storage."""
    draft = folder / "tmp" / "repo.git"
    run_git(None, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(draft))
    (draft / "objects" / "pack").mkdir(exist_ok=True)
    for path in (*draft.rglob("*"), draft):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
    draft.rename(folder / "repo.git")


def _assemble(
    folder: Path,
    database: Database,
    large: LargeStore,
    maintainer: Maintainer | None,
    recovered: list[str],
    clock: Callable[[], int],
    sync: Sync,
    opening: ExitStack,
) -> GitEngine:
    git_dir = folder / "repo.git"
    vault = Vault(database, git_dir, large)
    opening.callback(vault.close)
    cache = ContentCache(folder / "cas", vault)
    around = Surroundings(database, vault, cache, folder / "up", clock, sync)
    layers = Layers(around)
    opening.callback(layers.close)
    committer = Committer(around, layers, git_dir / "objects" / "pack", large)
    history = History(database, vault)
    upkeep = Upkeep(maintainer, opening.pop_all())

    def open_exchange(target: Path, move: MoveBranch) -> GitExchange:
        return GitExchange(folder, target, database=database, vault=vault, cache=cache, large=large, upkeep=upkeep, move=move, sync=sync)

    return GitEngine(
        database=database,
        vault=vault,
        cache=cache,
        layers=layers,
        committer=committer,
        history=history,
        merger=Merger(vault, history, folder / "tmp"),
        transfers=Transfers(folder, database, vault, history, large, upkeep, sync=sync),
        upkeep=upkeep,
        open_exchange=open_exchange,
        recovered=recovered,
    )

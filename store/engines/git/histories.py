"""Foreign git histories: fetched by git into quarantine, checked there, then adopted whole.

1. The source is a path or a URL; git alone talks to it, with no configuration, no hook, no prompt, and no transport but the one the source
   needs. Passwords in URLs are refused: they would be visible in the process list.
2. Until every object passed `git fsck --strict` and every name of every tree passed the name policy, nothing is outside quarantine,
   and nothing there is ever checked out.
3. Only what the source's current branch reaches comes in. Shallow and partial repositories are refused, their history has holes.
4. What this store will not follow is reported: submodules keep their entry without content, LFS pointers stay the small files they are.
5. Adoption is durable and atomic per pack: synced, renamed pack before index, folder synced. Commits keep their identities.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pygit2

from store import names
from store.contract import Progress
from store.engines.git.commands import CommandFailed, run_git
from store.engines.git.content import disk_errors
from store.engines.git.large import POINTER_SIZES, parse_pointer
from store.engines.git.objects import GITLINK, Kind, parse_commit, parse_tree
from store.engines.git.packs import Sync, sync_folder
from store.engines.git.steps import step
from store.errors import HostileTree, ImportFailed
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry, join_path

_TRANSPORTS = frozenset({"http", "https", "ssh", "git"})
_SHORT_SSH = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:(?!//)[^:].*")
_HEAD = "refs/heads/imported"
_MODES = frozenset({DIRECTORY, FILE, EXECUTABLE, SYMLINK, GITLINK})


@dataclass(frozen=True, slots=True)
class ImportedHistory:
    """A history that is now in the store's packs: its newest commit, the tree of that with its size, and what in it is not followed."""

    head: bytes
    tree: bytes
    files: int
    size: int
    passed_over: dict[bytes, str]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a history comes from, as git is told: an absolute path or a URL, and the one transport to open."""

    address: str
    transport: str


def parse_origin(source: str) -> Origin:
    """Return how to reach a source. Raises `ImportFailed` for anything but a path and the transports known here."""
    if _SHORT_SSH.fullmatch(source):
        return Origin(source, "ssh")
    if source and "://" not in source:
        return Origin(os.path.abspath(source), "file")
    url = urlsplit(source)
    if url.password is not None:
        raise ImportFailed(
            f"{url.scheme}://{url.hostname}", "a password in a URL shows in the process list; use a credential-free URL or SSH"
        )
    if url.scheme == "file":
        return Origin(os.path.abspath(unquote(url.path)), "file")
    if url.scheme not in _TRANSPORTS or not url.hostname or url.hostname.startswith("-"):
        raise ImportFailed(source, "git repositories are reached by path, https, http, ssh or git")
    return Origin(source, url.scheme)


def import_history(source: str, quarantine: Path, packs: Path, progress: Progress, *, sync: Sync = os.fsync) -> ImportedHistory:
    """Take the history of a repository into `packs` by way of the empty folder `quarantine`, which the caller removes afterwards.

    Raises `ImportFailed` when there is no such repository, `HostileTree` when a commit, tree or name in it cannot be trusted.
    """
    origin = parse_origin(source)
    git_dir = quarantine / "fetched.git"
    progress("fetch", 0, 0)
    _fetch(origin, git_dir, quarantine)
    progress("check", 0, 0)
    _check_objects(git_dir)
    repository = pygit2.Repository(str(git_dir))
    try:
        _check_names(repository, progress)
        imported = _survey(repository, progress)
    finally:
        repository.free()
    with disk_errors("import"):
        adopt_packs(git_dir / "objects" / "pack", packs, sync)
    return imported


def _fetch(origin: Origin, git_dir: Path, quarantine: Path) -> None:
    extra: Mapping[str, str] = {}
    if origin.transport == "file":
        if not Path(origin.address).is_dir():
            raise ImportFailed(origin.address, "there is no such directory")
        extra = {"GIT_CONFIG_GLOBAL": str(_trusting(origin.address, quarantine))}
    run_git(None, "init", "--quiet", "--bare", "--template=", str(git_dir))
    settings = (f"protocol.{origin.transport}.allow=always", "transfer.fsckObjects=false")
    arguments = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head")
    try:
        run_git(git_dir, *arguments, "--end-of-options", origin.address, f"+HEAD:{_HEAD}", settings=settings, extra=extra)
    except CommandFailed as failure:
        raise ImportFailed(origin.address, failure.why) from failure
    if not run_git(git_dir, "for-each-ref", _HEAD):
        raise ImportFailed(origin.address, "its history is cut off (a shallow clone)")


def _trusting(address: str, quarantine: Path) -> Path:
    """Return a configuration that lets git read a repository of another owner: its reading side runs nothing that the repository says."""
    path = quarantine / "gitconfig"
    for place in (address, f"{address}/.git"):
        run_git(None, "config", "--file", str(path), "--add", "safe.directory", place)
    return path


def _check_objects(git_dir: Path) -> None:
    """Let git check every object. It was fetched unchecked so that a bad object is told from a bad connection."""
    try:
        run_git(git_dir, "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
    except CommandFailed as failure:
        raise HostileTree("imported history", failure.why) from failure


def _check_names(repository: pygit2.Repository, progress: Progress) -> None:
    explain = lru_cache(maxsize=1 << 16)(_explain_entry)
    odb = repository.odb
    for count, oid in enumerate(odb, 1):
        if int(odb.read_header(oid)[0]) == Kind.TREE:
            _check_tree(odb.read(oid)[1], explain)
        if count % 5000 == 0:
            progress("check", count, 0)


def _check_tree(data: bytes, explain: Callable[[bytes, int], str | None]) -> None:
    for name, entry in parse_tree(data).items():
        why = explain(name, entry.mode)
        if why is not None:
            raise HostileTree(name, why)


def _explain_entry(name: bytes, mode: int) -> str | None:
    if mode not in _MODES:
        return f"mode {mode:o} is neither a file, a directory, a symlink nor a submodule"
    return names.explain_unversionable(name, symlink=mode == SYMLINK)


def _survey(repository: pygit2.Repository, progress: Progress) -> ImportedHistory:
    head = repository.references[_HEAD].target
    assert isinstance(head, pygit2.Oid)
    tree = parse_commit(repository.odb.read(head)[1]).tree
    files = total = 0
    passed_over: dict[bytes, str] = {}
    for path, entry in _walk(repository, tree, b""):
        if entry.mode == GITLINK:
            passed_over[path] = "a submodule; its content is another repository's"
            continue
        size = repository.odb.read_header(pygit2.Oid(raw=entry.content))[1]
        if size in POINTER_SIZES and entry.mode != SYMLINK and _is_pointer(repository, entry.content):
            passed_over[path] = "a Git LFS pointer; the content it stands for is not in the repository"
        files, total = files + 1, total + size
    progress("import", files, files)
    return ImportedHistory(head.raw, tree, files, total, passed_over)


def _walk(repository: pygit2.Repository, tree: bytes, path: bytes) -> Iterator[tuple[bytes, TreeEntry]]:
    waiting = [(path, tree)]
    while waiting:
        path, tree = waiting.pop()
        for name, entry in parse_tree(repository.odb.read(pygit2.Oid(raw=tree))[1]).items():
            if entry.mode == DIRECTORY:
                waiting.append((join_path(path, name), entry.content))
            else:
                yield join_path(path, name), entry


def _is_pointer(repository: pygit2.Repository, oid: bytes) -> bool:
    return parse_pointer(repository.odb.read(pygit2.Oid(raw=oid))[1]) is not None


def adopt_packs(fetched: Path, packs: Path, sync: Sync) -> None:
    """Move the packs of a folder into another on the same disk, each whole and on stable storage before it has its name there."""
    for index in sorted(fetched.glob("pack-*.idx")):
        with open(index.with_suffix(".pack"), "rb") as pack, open(index, "rb") as listed:
            fcntl.flock(pack, fcntl.LOCK_EX)
            sync(pack.fileno())
            sync(listed.fileno())
            step("import: name pack")
            index.with_suffix(".pack").rename(packs / f"{index.stem}.pack")
            step("import: name index")
            index.rename(packs / index.name)
    step("import: sync folder")
    sync_folder(packs, sync)

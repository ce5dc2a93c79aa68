"""Importing a repository: its history as it is, or nothing; whatever the repository tries."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from store.engines.git.commands import git_environment, run_git
from store.engines.git.histories import ImportedHistory, Origin, import_history, parse_origin
from store.engines.git.large import Pointer, encode_pointer
from store.errors import HostileTree, ImportFailed

ZEROS = "0" * 40


def quiet(_stage: str, _done: int, _total: int) -> None:
    """Stand where nobody watches the progress."""


def git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    identity = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "A"), ("EMAIL", "a@x"))}
    environment = git_environment({**identity, "GIT_AUTHOR_DATE": "1700000000 +0100", "GIT_COMMITTER_DATE": "1700000000 +0100"})
    done = subprocess.run(["git", "-C", str(folder), *arguments], input=given, env=environment, capture_output=True, check=True)
    return done.stdout.decode().strip()


class Target:
    """A store's repository and a quarantine to import through."""

    def __init__(self, folder: Path) -> None:
        self.git_dir = folder / "repo.git"
        self.packs = self.git_dir / "objects" / "pack"
        self.quarantine = folder / "quarantine"
        self.quarantine.mkdir()
        run_git(None, "init", "--bare", "--quiet", str(self.git_dir))

    def take(self, source: Path | str) -> ImportedHistory:
        return import_history(str(source), self.quarantine, self.packs, quiet)


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=trunk")
    return path


def commit(folder: Path, files: dict[str, bytes], message: str) -> str:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def commit_entries(folder: Path, entries: Sequence[tuple[str, bytes]]) -> None:
    """Commit a tree of raw entries, in the order given, whatever git thinks of them."""
    blob = git(folder, "hash-object", "-w", "--stdin", given=b"content")
    raw = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(blob) for mode, name in entries)
    tree = git(folder, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=raw)
    text = f"tree {tree}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nhostile\n".encode()
    made = git(folder, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=text)
    git(folder, "update-ref", "refs/heads/trunk", made)


def test_a_history_keeps_its_identities_and_only_the_current_branch_comes_in(target: Target, source: Path) -> None:
    first = commit(source, {"a": b"1", "dir/b": b"2"}, "first")
    git(source, "checkout", "--quiet", "-b", "other")
    other = commit(source, {"secret": b"not reached"}, "elsewhere")
    git(source, "checkout", "--quiet", "trunk")
    git(source, "checkout", "--quiet", "-b", "side", first)
    commit(source, {"c": b"3"}, "side")
    git(source, "checkout", "--quiet", "trunk")
    commit(source, {"a": b"4"}, "second")
    git(source, "merge", "--quiet", "-m", "merge", "side")
    head = git(source, "rev-parse", "HEAD")
    imported = target.take(source)
    assert (imported.head.hex(), imported.files, imported.size, imported.passed_over) == (head, 3, 3, {})
    assert imported.tree.hex() == git(source, "rev-parse", "HEAD^{tree}")
    git(target.git_dir, "update-ref", "refs/heads/main", head)
    git(target.git_dir, "fsck", "--strict", "--full")
    assert git(target.git_dir, "log", "--format=%H %an %ad %s", "main") == git(source, "log", "--format=%H %an %ad %s", "trunk")
    assert other not in run_git(target.git_dir, "cat-file", "--batch-all-objects", "--batch-check").decode()


@pytest.mark.parametrize(
    "entries",
    [
        [("100644", b".git")],
        [("40000", b".GIT")],
        [("100644", b".g\xe2\x80\x8cit")],
        [("100644", b"git~1")],
        [("100644", b".git::$INDEX_ALLOCATION")],
        [("100644", b".git . ")],
        [("100644", b"..")],
        [("100644", b".")],
        [("100644", b"a/b")],
        [("100644", b"..\\..\\x")],
        [("100644", b"a"), ("100644", b"a")],
        [("100644", b"b"), ("100644", b"a")],
        [("120000", b".gitmodules")],
        [("060000", b"device")],
        [("0100644", b"padded")],
    ],
    ids=repr,
)
def test_a_hostile_tree_stays_in_quarantine(target: Target, source: Path, entries: list[tuple[str, bytes]]) -> None:
    commit_entries(source, entries)
    with pytest.raises((HostileTree, ImportFailed)):
        target.take(source)
    assert list(target.packs.iterdir()) == []


@pytest.mark.parametrize("name", [b".git", b"git~1", b".g\xe2\x80\x8cit"])
def test_a_hostile_tree_deep_in_the_history_is_found(target: Target, source: Path, name: bytes) -> None:
    commit_entries(source, [("100644", name)])
    bad = git(source, "rev-parse", "trunk")
    tree = git(source, "mktree", given=b"")
    made = git(source, "commit-tree", "-p", bad, "-m", "all is well now", tree)
    git(source, "update-ref", "refs/heads/trunk", made)
    with pytest.raises(HostileTree):
        target.take(source)


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c 'touch {witness}'",
        "--upload-pack=touch {witness}",
        "-u{witness}",
        "ftp://localhost/x",
        "https://user:word@localhost/x",
        "ssh://-oProxyCommand=touch {witness}/x",
        "fd::7",
        "",
        "https:///x",
    ],
)
def test_an_address_that_is_more_than_an_address_is_refused(target: Target, tmp_path: Path, address: str) -> None:
    witness = tmp_path / "witness"
    with pytest.raises(ImportFailed) as refused:
        target.take(address.format(witness=witness))
    assert not witness.exists()
    assert "word" not in str(refused.value).replace("password", "")


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("git@example.org:team/x.git", Origin("git@example.org:team/x.git", "ssh")),
        ("https://example.org/x", Origin("https://example.org/x", "https")),
        ("file:///a%20b/c", Origin("/a b/c", "file")),
        ("/a/../b", Origin("/b", "file")),
    ],
)
def test_addresses_open_exactly_one_transport(source: str, origin: Origin) -> None:
    assert parse_origin(source) == origin


def test_what_a_repository_would_run_is_not_run(target: Target, source: Path, tmp_path: Path) -> None:
    commit(source, {"a": b"1"}, "first")
    witness = tmp_path / "witness"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {witness}\ncat\n")
    script.chmod(0o755)
    for setting in ("core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand", "core.alternateRefsCommand", "core.pager"):
        git(source, "config", setting, str(script))
    for hook in ("post-checkout", "pre-receive", "reference-transaction", "post-update"):
        (source / ".git" / "hooks").mkdir(exist_ok=True)
        (source / ".git" / "hooks" / hook).symlink_to(script)
    target.take(source)
    assert not witness.exists()


def test_a_shallow_repository_is_refused(target: Target, source: Path, tmp_path: Path) -> None:
    commit(source, {"a": b"1"}, "first")
    commit(source, {"a": b"2"}, "second")
    run_git(None, "clone", "--quiet", "--depth=1", f"file://{source}", str(tmp_path / "shallow"), settings=["protocol.file.allow=always"])
    with pytest.raises(ImportFailed):
        target.take(tmp_path / "shallow")
    assert list(target.packs.iterdir()) == []


@pytest.mark.parametrize("kind", ["empty", "missing", "plain directory"])
def test_what_is_no_repository_with_a_commit_is_refused(target: Target, source: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "plain directory").mkdir()
    with pytest.raises(ImportFailed):
        target.take(source if kind == "empty" else tmp_path / kind)


def test_submodules_and_lfs_pointers_are_reported(target: Target, source: Path) -> None:
    commit(source, {"a": b"1", "weights": encode_pointer(Pointer(b"\7" * 32, 1 << 30))}, "first")
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
    git(source, "commit", "--quiet", "-m", "submodule")
    imported = target.take(source)
    assert set(imported.passed_over) == {b"vendor", b"weights"}
    assert imported.files == 2


def test_a_repository_of_another_owner_can_be_imported(target: Target, source: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a repository to another owner needs root")
    head = commit(source, {"a": b"1"}, "first")
    for path in [source, *source.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert target.take(source).head.hex() == head


@pytest.fixture
def served(source: Path, tmp_path: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    serving = threading.Thread(target=server.serve_forever, args=(0.02,))
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}/source/.git"
    server.shutdown()
    serving.join()
    server.server_close()


def test_a_history_comes_in_by_http(target: Target, source: Path, served: str) -> None:
    head = commit(source, {"a": b"1"}, "first")
    git(source, "update-server-info")
    assert target.take(served).head.hex() == head


def test_nothing_is_adopted_before_it_is_synced(source: Path, target: Target) -> None:
    commit(source, {"a": b"1"}, "first")
    seen: list[tuple[str, int]] = []

    def sync(descriptor: int) -> None:
        seen.append((os.readlink(f"/proc/self/fd/{descriptor}"), len(list(target.packs.iterdir()))))

    import_history(str(source), target.quarantine, target.packs, quiet, sync=sync)
    assert [(Path(path).suffix, present) for path, present in seen] == [(".pack", 0), (".idx", 0), ("", 2)]

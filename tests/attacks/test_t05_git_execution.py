"""T5: a repository that runs what it brings. CVE-2023-29007, CVE-2026-42563, CVE-2026-28292, and `core.fsmonitor`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.attacks.stand import Repository, Stand, open_stand

PLACES = ("post-checkout", "pre-commit", "post-receive", "pre-receive", "update", "post-merge", "reference-transaction")


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Path]:
    """A program whose execution leaves a file."""
    program, mark = tmp_path / "trap", tmp_path / "sprung"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    yield program
    assert not mark.exists(), "what a repository brought was executed"


def spring(folder: Path, trap: Path) -> None:
    """Make a repository that executes the trap in every way git offers."""
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitattributes").write_text("* filter=trap diff=trap merge=trap\n")
    (folder / "file").write_text("content\n")
    bare = folder / "embedded"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    for config in (folder / ".git" / "config", bare / "config"):
        with config.open("a") as text:
            text.write(
                f"[core]\n\tfsmonitor = {trap}\n\thooksPath = hooks\n\tsshCommand = {trap}\n\tpager = {trap}\n"
                f'[filter "trap"]\n\tclean = {trap}\n\tsmudge = {trap}\n\trequired = true\n'
                f'[diff "trap"]\n\tcommand = {trap}\n\ttextconv = {trap}\n[merge "trap"]\n\tdriver = {trap}\n'
                f"[uploadpack]\n\tpackObjectsHook = {trap}\n[alias]\n\tlog = !{trap}\n"
            )
    for hooks in (folder / ".git" / "hooks", bare / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in PLACES:
            (hooks / name).write_text(trap.read_text())
            (hooks / name).chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    plain = [*git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "filter.trap.clean=cat", "-c", "user.name=a"]
    subprocess.run([*plain, "-c", "user.email=a@x", "add", "-A"], check=True, env=environment, capture_output=True)
    subprocess.run([*plain, "-c", "user.email=a@x", "commit", "-qm", "trap"], check=True, env=environment, capture_output=True)


def test_a_pushed_repository_executes_nothing_here(stand: Stand, trap: Path) -> None:
    held = stand.start()
    with closing(Repository(stand, held)) as repository:
        config = repository.blob(f"[core]\n\tbare = true\n\tfsmonitor = {trap}\n\trepositoryformatversion = 0\n".encode())
        head, hook = repository.blob(b"ref: refs/heads/main\n"), repository.blob(trap.read_bytes())
        empty = repository.tree([])
        hooks = repository.tree([("100755", name.encode(), hook) for name in sorted(PLACES)])
        bare = repository.tree(
            sorted(
                [
                    ("100644", b"HEAD", head),
                    ("100644", b"config", config),
                    ("40000", b"hooks", hooks),
                    ("40000", b"objects", empty),
                    ("40000", b"refs", empty),
                ],
                key=lambda entry: entry[1],
            )
        )
        attributes = repository.blob(b"* filter=trap diff=trap merge=trap\n")
        tree = repository.tree([("100644", b".gitattributes", attributes), ("40000", b"bare", bare)])
        done = repository.push(repository.commit(tree))
        if done.returncode == 0:  # refused is as good
            stand.nas.run("diff", held.run, expect=None)
            stand.call("proposal.make", run=held.run, message="a repository")
    held = stand.start()
    with closing(Repository(stand, held)):
        pass


def test_an_imported_repository_executes_nothing_here(tmp_path: Path, trap: Path) -> None:
    folder = tmp_path / "site"
    spring(tmp_path / "hostile", trap)
    folder.mkdir()
    with open_stand(folder) as stand:
        held = stand.start()
        done = stand.nas.run("import", str(tmp_path / "hostile"), expect=None)
        assert "Traceback" not in done.stderr
        with closing(Repository(stand, held)):
            pass

"""Git children run what we say and nothing that a machine, a user or a repository says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store.engines.git.commands import CommandFailed, git_arguments, git_environment, git_reader, run_git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repo.git"
    run_git(None, "init", "--bare", "--quiet", str(path))
    return path


def test_no_setting_of_the_machine_or_the_user_is_read(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitconfig").write_text("[alias]\n\tmine = rev-parse --git-dir\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.yours")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "rev-parse --git-dir")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    for alias in ("mine", "yours"):
        with pytest.raises(CommandFailed):
            run_git(repository, alias)
    assert run_git(repository, "rev-parse", "--git-dir").decode().strip() == str(repository)


def test_a_repository_embedded_in_content_is_inert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = tmp_path / "witness"
    run_git(None, "init", "--bare", "--quiet", str(tmp_path / "content"))
    with (tmp_path / "content" / "config").open("a") as config:
        config.write(f'[core]\n\tbare = false\n\tworktree = "{tmp_path}"\n\tfsmonitor = "touch {witness}; false"\n')
    monkeypatch.chdir(tmp_path / "content")
    with pytest.raises(CommandFailed):
        run_git(None, "status")
    assert not witness.exists()


def test_hooks_and_monitors_of_a_named_repository_do_not_run(repository: Path, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    hook = repository / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    tree = run_git(repository, "mktree").decode().strip()
    run_git(repository, "update-ref", "refs/trees/x", tree)
    assert not witness.exists()


def test_every_transport_is_closed_until_one_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed):
        run_git(None, "clone", "--quiet", str(repository), str(tmp_path / "clone"))
    run_git(None, "clone", "--quiet", "--bare", f"file://{repository}", str(tmp_path / "clone"), settings=["protocol.file.allow=always"])


def test_a_failure_carries_the_last_word_of_the_child(repository: Path) -> None:
    with pytest.raises(CommandFailed) as failed:
        run_git(repository, "cat-file", "-t", "no-such-object")
    assert failed.value.subject == "git cat-file"
    assert "no-such-object" in failed.value.why


def test_output_can_be_left_unread(repository: Path) -> None:
    blob = run_git(repository, "hash-object", "-w", "--stdin", given=bytes(5 << 20)).decode().strip()
    with git_reader(repository, "cat-file", "blob", blob) as output:
        assert output.read(10) == bytes(10)


def test_a_failed_child_is_told_from_an_empty_answer(repository: Path) -> None:
    with pytest.raises(CommandFailed), git_reader(repository, "cat-file", "blob", "0" * 40) as output:
        assert output.read() == b""


def test_a_child_inherits_only_the_descriptor_it_is_given(repository: Path, tmp_path: Path) -> None:
    script = "alias.fds=!ls /proc/self/fd"
    mine, given = os.open(tmp_path, os.O_RDONLY), os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(mine, True)
    listed = run_git(repository, "fds", settings=[script], inherited=(given,)).decode().split()
    assert str(given) in listed
    assert str(mine) not in listed
    os.close(mine)
    os.close(given)


def test_settings_of_a_caller_win() -> None:
    arguments = git_arguments(None, "version", settings=["gc.auto=7"])
    assert arguments.index("gc.auto=0") < arguments.index("gc.auto=7")
    assert "PATH" in git_environment({"X": "1"})

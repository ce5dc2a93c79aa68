"""Git with a password that git gets from the broker alone, against git's own HTTP server."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.broker.passwords import answer_git
from nasd.broker.remotes import GitBounds, fetch, push
from tests.nasd.broker.upstream import GIT_USER, git_upstream, upstream
from trust.accounts import Account, parse_account
from trust.secret import Secret

CANARY = "canary-0123456789"
SECRET = Secret(CANARY.encode())


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}
    identity = ["-c", "user.name=Up", "-c", "user.email=up@example.com"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Make a bare repository with one commit on main, that takes pushes."""
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q", "-b", "main")
    (source / "a.txt").write_text("upstream\n")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "first")
    folder = tmp_path / "served" / "org"
    folder.mkdir(parents=True)
    git(folder, "clone", "-q", "--bare", str(source), "a.git")
    git(folder / "a.git", "config", "http.receivepack", "true")
    return folder / "a.git"


@pytest.fixture
def url(tmp_path: Path, remote: Path) -> Iterator[str]:
    with git_upstream(tmp_path / "served", CANARY) as running:
        yield running


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    folder = tmp_path / "ours.git"
    folder.mkdir()
    git(folder, "init", "-q", "--bare")
    return folder


def account(url: str, **more: object) -> Account:
    document = {"name": "forge", "kind": "git", "url": url, "secret": "env://FORGE", "username": GIT_USER, "rules": ["* org/*"]}
    return parse_account(document | more)


def test_a_branch_is_fetched_with_the_password(url: str, remote: Path, ours: Path) -> None:
    assert fetch(account(url), ours, "/org/a.git", "main", SECRET, GitBounds()) == git(remote, "rev-parse", "main")


@pytest.mark.parametrize("username", ["evil.example?", "evil.example#", "a@b/c", "%40"])
def test_no_name_of_a_user_is_read_as_a_host(url: str, ours: Path, username: str) -> None:
    with upstream() as here:
        with pytest.raises(Fault):
            fetch(account(here.url, username=username), ours, "/org/a.git", "main", SECRET, GitBounds())
        assert here.seen[0].target.startswith("/org/a.git/info/refs")


def test_the_password_is_in_no_argument_no_variable_and_no_file(url: str, ours: Path, tmp_path: Path) -> None:
    found: list[str] = []
    stop = threading.Event()
    looked = [0]

    def look() -> None:
        while not stop.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ"):
                    try:
                        content = (process / name).read_bytes()
                    except OSError:
                        continue
                    looked[0] += b"credential.helper=!" in content
                    if CANARY.encode() in content:
                        found.append(f"{process}/{name}")

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(3):
            fetch(account(url), ours, "/org/a.git", "main", SECRET, GitBounds())
    finally:
        stop.set()
        watcher.join()
    assert looked[0] > 0, "the watcher never saw git at work"
    assert found == []
    assert not any(CANARY.encode() in path.read_bytes() for path in ours.rglob("*") if path.is_file())


def test_a_wrong_password_is_a_fault_without_it(url: str, ours: Path) -> None:
    with pytest.raises(Fault) as refused:
        fetch(account(url), ours, "/org/a.git", "main", Secret(b"canary-wrong-0123"), GitBounds())
    assert refused.value.kind is Kind.UNAVAILABLE
    assert "canary" not in refused.value.message


def test_a_push_moves_a_branch_forward_and_never_back(url: str, remote: Path, ours: Path) -> None:
    first = fetch(account(url), ours, "/org/a.git", "main", SECRET, GitBounds())
    tree = git(ours, "rev-parse", f"{first}^{{tree}}")
    second = git(ours, "commit-tree", tree, "-p", first, "-m", "second")
    told = push(account(url), ours, "/org/a.git", second, "main", SECRET, GitBounds())
    assert second[:7] in told
    assert git(remote, "rev-parse", "main") == second
    other = git(ours, "commit-tree", tree, "-p", first, "-m", "another second")
    with pytest.raises(Fault) as refused:
        push(account(url), ours, "/org/a.git", other, "main", SECRET, GitBounds())
    assert refused.value.kind is Kind.CONFLICT
    assert git(remote, "rev-parse", "main") == second


@pytest.mark.parametrize("branch", ["--upload-pack=touch", "-f", "a..b", "a b", "", "x.lock", "refs/../x"])
def test_no_name_of_a_branch_is_an_option(url: str, ours: Path, branch: str) -> None:
    with pytest.raises(Fault) as refused:
        fetch(account(url), ours, "/org/a.git", branch, SECRET, GitBounds())
    assert refused.value.kind is Kind.INVALID


def test_a_remote_that_sends_git_elsewhere_gets_no_password_there(ours: Path) -> None:
    with upstream() as here, upstream() as evil:
        here.answers["/org/a.git/info/refs"] = lambda _: (301, {"Location": f"{evil.url}/org/a.git/info/refs"}, b"")
        with pytest.raises(Fault):
            fetch(account(here.url), ours, "/org/a.git", "main", SECRET, GitBounds())
        assert evil.seen == []


def test_a_remote_that_sends_too_much_is_cut_off(url: str, remote: Path, ours: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(remote), "work")
    (work / "large.bin").write_bytes(os.urandom(2 << 20))
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "large")
    git(work, "push", "-q", "origin", "HEAD:main")
    with pytest.raises(Fault) as refused:
        fetch(account(url), ours, "/org/a.git", "main", SECRET, GitBounds(largest=1 << 20))
    assert refused.value.kind is Kind.TOO_LARGE


def test_a_remote_that_never_answers_is_left_at_the_deadline(ours: Path) -> None:
    with upstream() as slow:
        slow.answers["/org/a.git/info/refs"] = lambda _: (time.sleep(3), (500, {}, b""))[1]
        began = time.monotonic()
        with pytest.raises(Fault, match=r"took more than 0\.5 seconds"):
            fetch(account(slow.url), ours, "/org/a.git", "main", SECRET, GitBounds(seconds=0.5))
        assert time.monotonic() - began < 2.5


@pytest.mark.parametrize(
    "question",
    [
        b"protocol=https\nhost=evil.example\n\n",
        b"protocol=http\nhost=forge.example\n\n",
        b"protocol=https\nhost=forge.example:8443\n\n",
        b"protocol=https\nhost=forge.example\nusername=root\n\n",
        b"host=forge.example\n\n",
        b"\n\n",
        b"protocol=https\nhost=forge.example\nhost=evil.example\n\n",
    ],
)
def test_the_password_is_for_the_pinned_place_only(question: bytes) -> None:
    forge = account("https://forge.example/git")
    assert CANARY.encode() in answer_git(forge, b"protocol=https\nhost=forge.example\nusername=nas\n\n", SECRET)
    assert answer_git(forge, question, SECRET) == b"quit=1\n\n"

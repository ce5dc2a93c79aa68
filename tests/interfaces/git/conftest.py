"""A real appliance behind the git door on a real port, and real git in front of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from interfaces.git import GitDoor
from interfaces.git.pushing import PushLimits
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from nasd.repositories import GitRepositories
from tests.house_of_doors import HouseOfDoors, Started, open_house
from tests.serving import serving

TIMEOUT = 60
BIG = b"0123456789abcdef" * (9 << 16)
"""A content that the store keeps as a large file."""


@dataclass
class Site:
    """An appliance that git reaches at `url`."""

    house: HouseOfDoors
    url: str
    folder: Path

    def write(self, branch: str, files: dict[str, bytes | None]) -> None:
        """Change files below the rights of anybody, uncommitted."""
        run = self.house.house.runs.of_branch(branch)
        assert run is not None
        self.house.house.write(run, files)

    def address(self, secret: str, branch: str = "main", user: str = "x") -> str:
        """Return the address of a repository with a credential in it, as people paste it."""
        return f"{self.url.replace('://', f'://{user}:{secret}@')}/git/{branch}.git"

    def clone(self, secret: str, branch: str, *options: str, user: str, name: str = "clone") -> Path:
        target = self.folder / name
        git(self.folder, "clone", "--quiet", *options, self.address(secret, branch, user), os.fspath(target))
        return target


def environment(folder: Path, **extra: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.fspath(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/true",
        "GIT_PROTOCOL_FROM_USER": "1",
        "GIT_ALLOW_PROTOCOL": "http:file:ssh",
        **{f"GIT_{role}_{what}": "a@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        **extra,
    }


def attempt(folder: Path, *arguments: str, given: bytes = b"", **extra: str) -> subprocess.CompletedProcess[str]:
    """Run git and return what became of it, its two outputs as text."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(folder, **extra), input=given, capture_output=True, check=False, timeout=TIMEOUT
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1"))


def git(folder: Path, *arguments: str, given: bytes = b"", **extra: str) -> str:
    """Run git, which succeeds, and return what it printed."""
    done = attempt(folder, *arguments, given=given, **extra)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def refused(folder: Path, *arguments: str, given: bytes = b"", **extra: str) -> str:
    """Run git, which fails, and return everything it printed."""
    done = attempt(folder, *arguments, given=given, **extra)
    assert done.returncode != 0, f"git {' '.join(arguments)} succeeded: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def commit(clone: Path, files: dict[str, bytes | None], message: str = "change") -> str:
    """Commit files in a clone (None removes) and return the commit."""
    for name, data in files.items():
        path = clone / name
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    git(clone, "add", "-A")
    git(clone, "commit", "--quiet", "-m", message)
    return git(clone, "rev-parse", "HEAD")


@contextmanager
def open_site(
    folder: Path, policy: str | None = None, push_limits: PushLimits | None = None, limits: Limits | None = None
) -> Iterator[Site]:
    """Run the block with an appliance and its git door."""
    with open_house(folder / "house", policy=policy) as house:
        pool = Pool("git", 8)
        repositories = GitRepositories(house.house.desk, house.control)
        door = GitDoor(house.control, repositories, pool=pool, push_limits=push_limits, limits=limits)
        try:
            with serving(door) as url:
                yield Site(house, url, folder)
        finally:
            pool.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as made:
        yield made


@pytest.fixture
def run(site: Site) -> Started:
    return site.house.start_run()

"""T15: a push of kilobytes that stands for billions of files, or that asks for more than is there. Git bombs."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from tests.attacks.stand import Repository, Stand

PATIENCE = 240.0
"""Seconds; a machine of its own needs fifteen to count a million paths and say no."""


def resident(pid: int) -> int:
    """Return the kilobytes that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def test_a_tree_of_billions_is_refused_and_costs_nothing(stand: Stand) -> None:
    held = stand.start()
    before, pid = stand.head(held.branch), stand.nas.pid()
    weight = resident(pid)
    with closing(Repository(stand, held)) as repository:
        tree = repository.tree([("100644", b"f%d" % number, repository.blob(b"x")) for number in range(10)])
        for _ in range(10):
            tree = repository.tree([("40000", b"d%d" % number, tree) for number in range(10)])
        began = time.monotonic()
        done = repository.push(repository.commit(tree), seconds=PATIENCE)
        assert done.returncode != 0, "ten thousand million files were taken"
        assert time.monotonic() - began < PATIENCE
        assert b"Traceback" not in done.stderr
    assert stand.head(held.branch) == before
    assert stand.nas.pid() == pid
    assert resident(pid) < weight + 700_000
    assert stand.nas.get_file(held.branch, "work/a.txt") == b"one\n"


def test_names_without_end_are_refused(stand: Stand) -> None:
    held = stand.start()
    with closing(Repository(stand, held)) as repository:
        long = repository.tree([("100644", b"n" * 5000, repository.blob(b"x"))])
        assert repository.push(repository.commit(long)).returncode != 0
        deep = repository.tree([("100644", b"f", repository.blob(b"x"))])
        for _ in range(3000):
            deep = repository.tree([("40000", b"d", deep)]) if _ < 40 else deep
        repository.push(repository.commit(deep))
        many = [f"{repository.head}:refs/heads/{held.branch}-{number}" for number in range(500)]
        assert repository.run("push", "-q", "origin", *many).returncode != 0
    assert stand.nas.json("status")["pid"] == stand.nas.pid()

"""T3: entries of a tree that a checkout follows out of it, or into `.git`. CVE-2024-32002, CVE-2025-48384, CVE-2014-9390, CVE-2019-1352."""

from __future__ import annotations

from contextlib import closing, suppress

import pytest

from tests.attacks.stand import Repository, Stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.git import GIT
from tests.contract.doors.model import Refused
from tests.contract.doors.skipping import each_of

NAMES = (
    b".git",
    b".GIT",
    b".Git",
    ".g\u200cit".encode(),
    b"git~1",
    b".git ",
    b".git.",
    b".git::$INDEX_ALLOCATION",
    b"..",
    b".",
    b"a/b",
    b"",
)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_no_tree_with_such_an_entry_is_taken(stand: Stand, name: bytes) -> None:
    held = stand.start()
    before = stand.head(held.branch)
    with closing(Repository(stand, held)) as repository:
        config = repository.blob(b"[core]\n\tfsmonitor = touch /tmp/owned\n")
        inner = repository.tree([("100644", b"config", config)])
        for entry in (("40000", name, inner), ("100644", name, config)):
            nested = repository.tree([("40000", b"work", repository.tree([entry]))])
            done = repository.push(repository.commit(nested))
            assert done.returncode != 0, (name, entry)
            assert b"Traceback" not in done.stderr
    assert stand.head(held.branch) == before


def test_no_tree_that_is_none_is_taken(stand: Stand) -> None:
    held = stand.start()
    before = stand.head(held.branch)
    with closing(Repository(stand, held)) as repository:
        blob = repository.blob(b"x")
        modules = repository.blob(b'[submodule "a"]\n\tpath = a\n\turl = -u./payload\n')
        link = repository.blob(b"../../outside")
        for entries in (
            [("100644", b"same", blob), ("100644", b"same", blob)],
            [("100644", b"z", blob), ("100644", b"a", blob)],
            [("120000", b".gitmodules", link)],
            [("100644", b".gitmodules", modules)],
        ):
            assert repository.push(repository.commit(repository.tree(entries))).returncode != 0, entries
    assert stand.head(held.branch) == before


@pytest.mark.parametrize("door", each_of(*(door for door in OTHERS if door is not GIT)))
def test_no_door_writes_into_a_git_folder(stand: Stand, door: Door) -> None:
    held = stand.start()
    with closing(door.connect(stand, held)) as client:
        for path in (".git/config", "work/.git/hooks/post-checkout", "work/.GIT/config", "work/git~1/config"):
            with suppress(Refused):  # a working layer may hold such a name; no commit ever does
                client.create(path, b"[core]\n\tfsmonitor = touch /tmp/owned\n")
        client.create("work/ordinary.txt", b"x")
    stand.commit(held)
    with closing(Repository(stand, held)) as repository:
        listed = repository.git("ls-tree", "-r", "--name-only", "FETCH_HEAD").lower()
    assert "work/ordinary.txt" in listed
    assert ".git/" not in listed and "git~1" not in listed

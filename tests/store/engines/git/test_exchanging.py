"""What git is shown of a store, and what it may bring: real git on both sides, no protocol between."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engines.git.commands import git_environment
from store.engines.git.engine import GitEngine
from store.engines.git.exchanging import GitExchange, ShownRepository
from store.engines.git.large import Pointer, encode_pointer
from store.errors import Corrupt, HostileTree, InUse, Moved, NotFound, TooLarge, Unsupported
from store.exchange import Limits, Selection
from store.model import CommitId
from tests.store.engines.git.desk import commit, names, open_store, put, read

LIMITS = Limits()
WHO = {f"GIT_{role}_{what}": "a@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Everything:
    """Keeps every path."""

    def keeps(self, _directory: bytes, _name: bytes) -> bool:
        return True

    def keeps_all(self, _directory: bytes) -> bool:
        return True

    def keeps_none(self, _directory: bytes) -> bool:
        return False


class NoSecrets(Everything):
    """Leaves out every file called ``secret``."""

    def keeps(self, _directory: bytes, name: bytes) -> bool:
        return name != b"secret"

    def keeps_all(self, _directory: bytes) -> bool:
        return False


ALL = Selection("all", Everything())
PARTIAL = Selection("partial", NoSecrets())


def git(folder: Path, *arguments: str, given: bytes = b"", **extra: str) -> str:
    """Run git in a folder and return what it printed."""
    done = subprocess.run(
        ["git", "-C", os.fspath(folder), *arguments], input=given, env=git_environment(WHO | extra), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("latin-1").strip()


class Desk:
    """A store with a protected main branch, a run's branch, and its exchange."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine: GitEngine = open_store(folder / "store")
        self.engine.create_branch("main", None, 1)
        self.exchange: GitExchange = self.engine.exchange(folder / "exchange")

    def commit(self, branch: str, files: dict[bytes, bytes]) -> CommitId:
        working = self.engine.working(branch)
        for path, data in files.items():
            put(working, path, data)
        working.close()
        return commit(self.engine, branch)

    def fork(self, branch: str) -> None:
        self.engine.create_branch(branch, self.engine.branch("main").head, 2)

    def show(self, *branches: str, selection: Selection = ALL) -> ShownRepository:
        self.exchange.publish()
        refs = {f"refs/heads/{name}": self.engine.branch(name).head for name in branches}
        return self.exchange.show(refs, f"refs/heads/{branches[-1]}", selection)

    def clone(self, shown: ShownRepository, name: str = "clone") -> Path:
        target = self.folder / name
        git(
            self.folder,
            "clone",
            "--quiet",
            "--no-local",
            os.fspath(shown.folder),
            os.fspath(target),
            GIT_PROTOCOL_FROM_USER="1",
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0="protocol.file.allow",
            GIT_CONFIG_VALUE_0="always",
        )
        return target

    def send(self, shown: ShownRepository, clone: Path, revisions: str = "HEAD --not --remotes") -> str:
        """Put what a clone would push into a quarantine, as the door does, and return the quarantine's name."""
        return self.send_objects(shown, clone, git(clone, "rev-list", "--objects", "--no-object-names", *revisions.split()).split())

    def send_objects(self, shown: ShownRepository, clone: Path, objects: list[str]) -> str:
        """Put objects of a clone into a quarantine and return the quarantine's name."""
        quarantine = self.exchange.open_quarantine(shown)
        pack = subprocess.run(
            ["git", "-C", os.fspath(clone), "pack-objects", "--stdout", "--quiet"],
            input="\n".join([*objects, ""]).encode(),
            env=git_environment(),
            capture_output=True,
            check=True,
        ).stdout
        subprocess.run(
            ["git", f"--git-dir={quarantine}", "index-pack", "--stdin", "--fix-thin"],
            input=pack,
            env=git_environment(),
            capture_output=True,
            check=True,
        )
        return quarantine.name


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.engine.close()


def add(clone: Path, files: dict[str, str | None], message: str = "change") -> str:
    """Commit files in a clone (None removes) and return the commit."""
    for name, text in files.items():
        path = clone / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "--quiet", "-m", message)
    return git(clone, "rev-parse", "HEAD")


def test_what_is_shown_is_cloned_with_its_own_ids(desk: Desk) -> None:
    head = desk.commit("main", {b"a": b"1"})
    shown = desk.show("main")
    assert shown.refs == {"refs/heads/main": head}
    clone = desk.clone(shown)
    assert git(clone, "rev-parse", "HEAD") == head
    assert git(clone, "fsck", "--strict") == ""
    shown.close()
    assert not shown.folder.exists()


def test_what_is_left_out_leaves_no_name_and_no_object(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1", b"secret": b"hidden"})
    desk.commit("main", {b"b": b"2"})
    shown = desk.show("main", selection=PARTIAL)
    clone = desk.clone(shown)
    assert git(clone, "log", "--format=%s", "--name-only").split() == ["work", "b", "work", "a", "start"]
    assert sorted(git(clone, "ls-tree", "-r", "--name-only", "HEAD").split()) == ["a", "b"]
    assert "hidden" not in git(clone, "cat-file", "--batch-all-objects", "--batch")


def test_a_history_that_holds_nothing_to_leave_out_keeps_its_ids_until_it_does(desk: Desk) -> None:
    first = desk.commit("main", {b"a": b"1"})
    assert desk.show("main", selection=PARTIAL).refs["refs/heads/main"] == first
    second = desk.commit("main", {b"secret": b"2"})
    shown = desk.show("main", selection=PARTIAL)
    assert shown.refs["refs/heads/main"] != second
    assert git(shown.folder, "rev-parse", "main~1") == first


def test_a_projection_that_was_lost_is_made_again_with_the_same_ids(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1", b"secret": b"2"})
    before = desk.show("main", selection=PARTIAL).refs
    again = desk.engine.exchange(desk.folder / "elsewhere").show(
        {"refs/heads/main": desk.engine.branch("main").head}, "refs/heads/main", PARTIAL
    )
    assert again.refs == before


def test_only_what_shown_references_reach_is_reached(desk: Desk) -> None:
    desk.fork("coder/r1")
    desk.fork("coder/r2")
    mine, theirs = desk.commit("coder/r1", {b"a": b"mine"}), desk.commit("coder/r2", {b"a": b"theirs"})
    shown = desk.show("main", "coder/r1")
    blobs = {text: git(desk.folder, "hash-object", "--stdin", given=text.encode()) for text in ("mine", "theirs", "nothing")}
    assert shown.reaches([mine, blobs["mine"]])
    assert not shown.reaches([theirs])
    assert not shown.reaches([blobs["mine"], blobs["theirs"]])
    assert not shown.reaches([blobs["nothing"]])
    assert shown.has_commit(mine)
    assert not shown.has_commit(theirs)
    later = desk.commit("coder/r1", {b"b": b"more"})
    assert desk.show("main", "coder/r1").reaches([later, mine, blobs["mine"]])


def test_what_is_left_out_is_not_reached(desk: Desk) -> None:
    head = desk.commit("main", {b"a": b"1", b"secret": b"hidden"})
    shown = desk.show("main", selection=PARTIAL)
    assert not shown.reaches([git(desk.folder, "hash-object", "--stdin", given=b"hidden")])
    assert not shown.reaches([head])
    assert shown.reaches([git(desk.folder, "hash-object", "--stdin", given=b"1")])


def test_a_push_becomes_part_of_its_branch_and_of_the_working_layer(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1"})
    desk.fork("coder/r1")
    shown = desk.show("main", "coder/r1")
    clone = desk.clone(shown)
    pushed = add(clone, {"b": "2", "a": None})
    arrival = desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", pushed, LIMITS)
    assert [each.id for each in arrival.commits] == [pushed]
    assert [(each.path, each.entry is None) for each in arrival.introduced] == [(b"a", True), (b"b", False)]
    assert arrival.size == 1
    assert arrival.accept({}) == pushed
    working = desk.engine.working("coder/r1")
    assert names(working) == [b"b"]
    assert read(working, b"b") == b"2"
    working.close()


def test_a_push_onto_a_selection_goes_back_onto_the_whole(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1", b"secret": b"kept"})
    desk.fork("coder/r1")
    shown = desk.show("main", "coder/r1", selection=PARTIAL)
    clone = desk.clone(shown)
    add(clone, {"b": "2"})
    pushed = add(clone, {"a": None, "d/e": "3"})
    arrival = desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", pushed, LIMITS)
    assert arrival.accept({}) != pushed
    working = desk.engine.working("coder/r1")
    assert names(working) == [b"b", b"d", b"secret"]
    working.close()
    assert desk.show("main", "coder/r1", selection=PARTIAL).refs["refs/heads/coder/r1"] == pushed


def test_a_merge_takes_what_it_does_not_see_from_the_side_that_changed_it(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1", b"secret": b"old"})
    desk.fork("coder/r1")
    working = desk.engine.working("main")
    working.unlink(working.attributes(1).node, b"secret")  # type: ignore[arg-type]
    put(working, b"secret", b"new")
    put(working, b"m", b"main")
    working.close()
    commit(desk.engine, "main")
    shown = desk.show("main", "coder/r1", selection=PARTIAL)
    clone = desk.clone(shown)
    add(clone, {"b": "2"})
    git(clone, "merge", "--quiet", "--no-edit", "origin/main")
    pushed = git(clone, "rev-parse", "HEAD")
    arrival = desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", pushed, LIMITS)
    assert [each.path for each in arrival.introduced] == [b"b"]
    arrival.accept({})
    working = desk.engine.working("coder/r1")
    assert read(working, b"secret") == b"new"
    working.close()


def test_what_a_view_leaves_out_cannot_be_pushed_into(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1", b"secret": b"kept"})
    desk.fork("coder/r1")
    shown = desk.show("main", "coder/r1", selection=PARTIAL)
    clone = desk.clone(shown)
    pushed = add(clone, {"d/secret": "mine"})
    arrival = desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", pushed, LIMITS)
    with pytest.raises(HostileTree):
        arrival.accept({})


def test_a_push_cannot_name_what_it_did_not_send_and_does_not_see(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1"})
    desk.fork("coder/r1")
    desk.fork("coder/r2")
    theirs = desk.commit("coder/r2", {b"b": b"theirs"})
    shown = desk.show("main", "coder/r1")
    desk.exchange.publish()
    empty = desk.exchange.open_quarantine(shown).name
    with pytest.raises(HostileTree):
        desk.exchange.examine(empty, shown, "coder/r1", theirs, LIMITS)
    clone = desk.clone(shown)
    blob = git(desk.folder, "hash-object", "--stdin", given=b"theirs")
    tree = git(clone, "mktree", "--missing", given=f"100644 blob {blob}\tstolen\n".encode())
    stolen = git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "steal")
    quarantine = desk.send_objects(shown, clone, [stolen, tree])
    with pytest.raises(HostileTree):
        desk.exchange.examine(quarantine, shown, "coder/r1", stolen, LIMITS)


@pytest.mark.parametrize("entry", ["100644 .git", "100644 .GIT", "100644 git~1", "120000 .gitmodules", "100644 a\\..\\b"])
def test_names_that_no_checkout_can_be_trusted_with_are_refused(desk: Desk, entry: str) -> None:
    desk.commit("main", {b"a": b"1"})
    desk.fork("coder/r1")
    shown = desk.show("main", "coder/r1")
    clone = desk.clone(shown)
    mode, name = entry.split(" ")
    blob = git(clone, "hash-object", "-w", "--stdin", given=b"x")
    raw = f"{mode} {name}\0".encode() + bytes.fromhex(blob)
    tree = git(clone, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=raw)
    hostile = git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "hostile")
    git(clone, "update-ref", "refs/heads/x", hostile)
    with pytest.raises(HostileTree):
        desk.exchange.examine(desk.send(shown, clone, f"{hostile} --not --remotes"), shown, "coder/r1", hostile, LIMITS)


def test_a_push_that_loses_commits_or_comes_late_is_refused(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1"})
    desk.fork("coder/r1")
    desk.commit("coder/r1", {b"b": b"2"})
    shown = desk.show("main", "coder/r1")
    clone = desk.clone(shown)
    git(clone, "reset", "--quiet", "--hard", "HEAD~1")
    lost = add(clone, {"c": "3"})
    with pytest.raises(Moved):
        desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", lost, LIMITS)
    git(clone, "reset", "--quiet", "--hard", "origin/coder/r1")
    late = add(clone, {"d": "4"})
    arrival = desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", late, LIMITS)
    desk.commit("coder/r1", {b"e": b"5"})
    with pytest.raises(Moved):
        arrival.accept({})


def test_limits_hold_before_anything_is_taken(desk: Desk) -> None:
    desk.fork("coder/r1")
    shown = desk.show("main", "coder/r1")
    clone = desk.clone(shown)
    pushed = add(clone, {f"d{number}/f": "x" * 100 + str(number) for number in range(20)})
    quarantine = desk.send(shown, clone)
    for limits in (Limits(paths=19), Limits(size=2000), Limits(tree_bytes=100)):
        with pytest.raises(TooLarge):
            desk.exchange.examine(quarantine, shown, "coder/r1", pushed, limits)


class Bytes:
    """A content in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, offset: int, size: int, /) -> bytes:
        return self.data[offset : offset + size]

    def close(self) -> None:
        """Release nothing."""


def test_a_pushed_pointer_stands_for_the_content_that_came_with_it(desk: Desk) -> None:
    data = b"large" * 1000
    pointer = Pointer(hashlib.sha256(data).digest(), len(data))
    desk.fork("coder/r1")
    shown = desk.show("main", "coder/r1")
    clone = desk.clone(shown)
    pushed = add(clone, {"big": encode_pointer(pointer).decode()})
    quarantine = desk.send(shown, clone)
    arrival = desk.exchange.examine(quarantine, shown, "coder/r1", pushed, LIMITS)
    assert [(each.sha256, each.size) for each in arrival.large] == [pointer]
    with pytest.raises(Corrupt):
        arrival.accept({pointer.sha256: Bytes(data[:-1])})
    arrival.accept({pointer.sha256: Bytes(data)})
    working = desk.engine.working("coder/r1")
    assert read(working, b"big") == data
    working.close()
    again = desk.show("main", "coder/r1")
    handle = again.open_large(*pointer)
    assert handle.read(0, 10) == data[:10]
    handle.close()
    assert {path: (each.sha256, each.size) for path, each in again.large_files().items()} == {b"big": pointer}
    with pytest.raises(NotFound):
        desk.show("main").open_large(*pointer)


def test_a_gateway_shows_and_the_owner_receives(desk: Desk) -> None:
    head = desk.commit("main", {b"a": b"1"})
    desk.fork("coder/r1")
    gateway = open_store(desk.folder / "store", role="gateway")
    try:
        exchange = gateway.exchange(desk.folder / "exchange")
        assert not exchange.packed([head])
        with pytest.raises(InUse):
            exchange.publish()
        desk.exchange.publish()
        assert exchange.packed([head])
        shown = exchange.show({"refs/heads/main": head}, "refs/heads/main", ALL)
        quarantine = exchange.open_quarantine(shown)
        with pytest.raises(InUse):
            exchange.examine(quarantine.name, shown, "main", head, LIMITS)
    finally:
        gateway.close()


def test_a_quarantine_is_found_by_its_name_only(desk: Desk) -> None:
    shown = desk.show("main")
    for name in ("../repo.git", "push-none", "push-a/../..", ""):
        with pytest.raises(NotFound):
            desk.exchange.examine(name, shown, "main", "0" * 40, LIMITS)
    quarantine = desk.exchange.open_quarantine(shown)
    desk.exchange.discard(quarantine.name)
    assert not quarantine.exists()


def test_what_the_dead_left_is_swept_and_what_is_in_use_is_not(desk: Desk) -> None:
    shown = desk.show("main")
    quarantine, abandoned = desk.exchange.open_quarantine(shown), desk.folder / "store/tmp/push-dead"
    abandoned.mkdir()
    begun = quarantine.stat().st_mtime
    desk.exchange.sweep(begun + 10)
    assert abandoned.exists()
    desk.exchange.sweep(begun + 3600)
    assert quarantine.exists()
    assert not abandoned.exists()
    assert shown.folder.exists()
    desk.exchange.sweep(begun + 90_000)
    assert quarantine.exists()
    assert not shown.folder.exists()
    desk.exchange.close()
    assert not quarantine.exists()


def test_a_projection_that_was_swept_is_made_again(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1", b"secret": b"2"})
    shown = desk.show("main", selection=PARTIAL)
    desk.exchange.sweep(shown.folder.stat().st_mtime + 90_000)
    again = desk.show("main", selection=PARTIAL)
    assert again.refs == shown.refs
    assert git(desk.clone(again), "ls-files") == "a"


def test_a_merge_whose_sides_both_changed_what_it_does_not_see_is_refused(desk: Desk) -> None:
    desk.commit("main", {b"a": b"1"})
    desk.fork("coder/r1")
    desk.commit("main", {b"secret": b"one", b"m": b"m"})
    desk.commit("coder/r1", {b"secret": b"two"})
    shown = desk.show("main", "coder/r1", selection=PARTIAL)
    clone = desk.clone(shown)
    git(clone, "merge", "--quiet", "--no-edit", "origin/main")
    pushed = git(clone, "rev-parse", "HEAD")
    arrival = desk.exchange.examine(desk.send(shown, clone), shown, "coder/r1", pushed, LIMITS)
    with pytest.raises(Unsupported):
        arrival.accept({})

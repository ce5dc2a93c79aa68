"""Upkeep: everything acknowledged stays readable by ordinary git whatever is moved, dropped or interrupted."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.engines.git import steps
from store.engines.git.commands import run_git
from store.engines.git.database import Database
from store.engines.git.housekeeping import GRACE, KEPT, evict_contents, sweep_upper_files
from store.engines.git.large import LargeStore, encode_pointer
from store.engines.git.maintenance import Maintainer, Pace
from store.engines.git.objects import GitObject, Kind, compose_commit, encode_tree, make_object
from store.engines.git.packs import write_pack
from store.errors import StoreError
from store.model import Note, Provenance
from store.trees import FILE, TreeEntry


class Store:
    """A store's folder with just enough in it to be maintained: commits go to the journal as the engine puts them there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git_dir = folder / "repo.git"
        self.packs = self.git_dir / "objects" / "pack"
        if not self.git_dir.exists():
            run_git(None, "init", "--bare", "--quiet", "--template=", str(self.git_dir))
        for name in ("cas", "up"):
            (folder / name).mkdir(exist_ok=True)
        self.database = Database(folder / "meta.db")
        self.large = LargeStore(folder / "lo")

    def maintainer(self, pace: Pace = Pace()) -> Maintainer:
        return Maintainer(self.folder, self.database, self.large, pace=pace)

    def commit(self, branch: str, text: bytes, *, packed: bool = False) -> str:
        """Put a commit with one file on a branch and return its id."""
        row = self.database.select_one("SELECT head FROM branch WHERE name = ?", (branch,))
        objects = commit_objects(text, [row[0]] if row else [])
        if packed:
            write_pack(self.packs, objects[:-1])
        with self.database.transaction() as rows:
            rows.executemany(
                "INSERT OR IGNORE INTO object (oid, kind, data) VALUES (?, ?, ?)",
                [(item.oid, int(item.kind), item.data) for item in (objects[-1:] if packed else objects)],
            )
            rows.execute(
                "INSERT INTO branch (name, head, base, tree, created, inherited_ns) VALUES (?1, ?2, ?2, ?3, 1, 1)"
                " ON CONFLICT (name) DO UPDATE SET head = excluded.head, tree = excluded.tree",
                (branch, objects[-1].oid, objects[-2].oid),
            )
        self.database.flush()
        return objects[-1].oid.hex()

    def heads(self) -> dict[str, str]:
        listed = run_git(self.git_dir, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads").decode().split()
        return dict(zip(listed[::2], listed[1::2], strict=True))

    def count_packs(self) -> int:
        return len(list(self.packs.glob("pack-*.idx")))

    def check(self) -> None:
        run_git(self.git_dir, "fsck", "--strict", "--full")


def commit_objects(text: bytes, parents: list[bytes]) -> list[GitObject]:
    blob = make_object(Kind.BLOB, text)
    tree = make_object(Kind.TREE, encode_tree({b"file": TreeEntry(FILE, blob.oid)}))
    return [blob, tree, compose_commit(tree.oid, parents, Note("work", Provenance("agent:x"), 1_700_000_000))]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.database.close()


def test_a_flush_moves_the_journal_into_a_pack_and_publishes_every_head(store: Store) -> None:
    heads = {name: store.commit(name, name.encode()) for name in ("main", "coder/r1", "coder/r2")}
    maintainer = store.maintainer()
    assert maintainer.flush() == 9
    assert store.heads() == heads
    assert store.database.select("SELECT count(*) FROM object") == [(0,)]
    assert store.database.select("SELECT name FROM branch WHERE published_head IS NOT head") == []
    store.check()
    assert maintainer.flush() == 0


def test_snapshots_and_fork_points_are_published_too(store: Store) -> None:
    first = store.commit("main", b"1")
    store.commit("main", b"2")
    with store.database.transaction() as rows:
        rows.execute("INSERT INTO snapshot VALUES ('v1', ?, 1)", (bytes.fromhex(first),))
    store.maintainer().flush()
    listed = run_git(store.git_dir, "for-each-ref", "--format=%(refname)").decode().split()
    assert listed == [f"refs/bases/{first}", "refs/heads/main", "refs/tags/v1"]


def test_a_deleted_branch_loses_its_ref(store: Store) -> None:
    store.commit("main", b"1")
    store.commit("gone", b"2")
    maintainer = store.maintainer()
    maintainer.flush()
    with store.database.transaction() as rows:
        rows.execute("DELETE FROM branch WHERE name = 'gone'")
    maintainer.flush()
    assert set(store.heads()) == {"main"}


def test_a_head_is_published_only_with_its_objects_in_packs(store: Store) -> None:
    first = store.commit("main", b"1")
    late: list[str] = []

    def commit_late(name: str) -> None:
        if name == "journal: pack":
            late.append(store.commit("main", b"2"))

    steps.watch_steps(commit_late)
    try:
        store.maintainer().flush()
    finally:
        steps.watch_steps(None)
    assert (store.heads()["main"], len(late)) == (first, 1)
    store.check()
    store.maintainer().flush()
    assert store.heads()["main"] == late[0]
    store.check()


@pytest.mark.parametrize("effect", ["flush", "maintain"])
def test_a_death_at_any_step_loses_nothing(tmp_path: Path, effect: str) -> None:
    for point in range(60):
        code = in_a_child(lambda: commit_and_die(tmp_path, effect, point))
        assert code in (0, DIED)
        store = Store(tmp_path)
        head = store.database.select("SELECT head FROM branch")[0][0].hex()
        store.maintainer().recover()
        assert store.heads() == {"main": head}
        assert int(run_git(store.git_dir, "rev-list", "--count", "main")) == 2 * (point + 1)
        store.check()
        assert not list(store.packs.glob("tmp_*"))
        store.database.close()
        if code == 0:
            break
    assert code == 0
    assert point > 8


DIED = 17


def commit_and_die(folder: Path, effect: str, steps_left: int) -> None:
    """Make two commits and maintain them; the process ends at the step after `steps_left` others."""
    store = Store(folder)
    maintainer = store.maintainer()
    store.commit("main", b"%d" % steps_left)
    store.commit("main", b"%d!" % steps_left, packed=True)
    left = iter(range(steps_left))

    def die(_name: str) -> None:
        if next(left, None) is None:
            os._exit(DIED)

    steps.watch_steps(die)
    maintainer.maintain(2_000_000_000) if effect == "maintain" else maintainer.flush()


def in_a_child(work: Callable[[], None]) -> int:
    """Run `work` in a child process and return its exit code: 0 when it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_commits_of_others_survive_a_full_repack_that_runs_meanwhile(store: Store) -> None:
    """One thread commits, some with a pack of its own first; another repacks as hard as it can; every head must be whole."""
    store.commit("main", b"0")
    stop = threading.Event()
    made: list[str] = []

    def work() -> None:
        while not stop.is_set():
            made.append(store.commit("main", b"%d" % len(made), packed=len(made) % 2 == 0))

    working = threading.Thread(target=work)
    working.start()
    maintainer = store.maintainer()
    try:
        for _ in range(6):
            maintainer.maintain(int(time.time()))
            maintainer.flush()
    finally:
        stop.set()
        working.join()
    maintainer.flush()
    store.check()
    assert run_git(store.git_dir, "rev-list", "main").decode().split()[:-1] == made[::-1]


def test_a_repack_drops_what_nothing_reaches_once_it_is_old(store: Store) -> None:
    store.commit("main", b"kept")
    gone = store.commit("gone", os.urandom(200_000))
    maintainer = store.maintainer()
    maintainer.flush()
    with store.database.transaction() as rows:
        rows.execute("DELETE FROM branch WHERE name = 'gone'")
    assert maintainer.maintain(int(time.time())).bytes < 100_000
    assert run_git(store.git_dir, "cat-file", "-t", gone) == b"commit\n"
    store.commit("main", b"more")
    for path in list(store.packs.iterdir()):
        os.utime(path, (1, 1))
        if path.suffix == ".mtimes":
            path.unlink()
    assert maintainer.maintain(int(time.time())).bytes > 150_000
    assert run_git(store.git_dir, "cat-file", "--batch-all-objects", "--batch-check").count(b"\n") == 6
    store.check()


def test_small_packs_are_gathered_and_keep_unreachable_objects(store: Store) -> None:
    maintainer = store.maintainer(Pace(flush_after=0, packs=5))
    orphan = make_object(Kind.BLOB, b"not reachable yet")
    write_pack(store.packs, [orphan])
    for at in range(12):
        store.commit("main", b"%d" % at)
        maintainer._take_turn(time.time())
    assert store.count_packs() <= 7
    assert run_git(store.git_dir, "cat-file", "blob", orphan.oid.hex()) == orphan.data
    store.check()


def test_commits_that_were_packed_at_once_are_published_and_their_packs_gathered(store: Store) -> None:
    maintainer = store.maintainer(Pace(flush_after=0, packs=5))
    for at in range(12):
        head = store.commit("main", b"%d" % at, packed=True)
        with store.database.transaction() as rows:
            stored = rows.execute("SELECT oid, kind, data FROM object").fetchall()
            rows.execute("DELETE FROM object")
        write_pack(store.packs, [GitObject(oid, Kind(kind), data) for oid, kind, data in stored])
        maintainer._take_turn(time.time())
        assert store.heads()["main"] == head
    assert store.count_packs() <= 7
    store.check()


def test_chunks_go_after_their_pointer_went_and_not_before(store: Store, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(100_000))
    descriptor = os.open(tmp_path / "big", os.O_RDONLY)
    with store.large.writing():
        pointer = store.large.put(descriptor)
        with store.database.transaction() as rows:
            pointed = make_object(Kind.BLOB, encode_pointer(pointer))
            rows.execute("INSERT INTO large VALUES (?, ?, ?)", (pointed.oid, pointer.sha256, pointer.size))
            rows.execute("INSERT INTO object (oid, kind, data) VALUES (?, 3, ?)", (pointed.oid, pointed.data))
    os.close(descriptor)
    store.commit("main", b"x")
    maintainer = store.maintainer()
    maintainer.maintain(int(time.time()))
    assert store.large.holds(pointer)
    for path in store.packs.iterdir():
        path.unlink()
    assert maintainer._collect_large().files == 2
    assert store.database.select("SELECT * FROM large") == []


def test_an_eviction_removes_the_longest_unused_first(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    for age in range(10):
        path = tmp_path / "ab" / f"{age}"
        path.write_bytes(bytes(8192))
        os.utime(path, (time.time() + 1000 - age, time.time() + 1000 - age))
    (tmp_path / "ab" / "x.tmp").write_bytes(b"draft")
    swept = evict_contents(tmp_path, 3 * 8192, time.time())
    assert swept == (7, 7 * 8192)
    assert sorted(path.name for path in (tmp_path / "ab").iterdir()) == ["0", "1", "2", "x.tmp"]
    evict_contents(tmp_path, 3 * 8192, time.time() + GRACE + 1)
    assert sorted(path.name for path in (tmp_path / "ab").iterdir()) == ["0", "1", "2"]


def test_upper_files_without_a_node_go_after_a_while(store: Store) -> None:
    store.commit("main", b"x")
    branch = store.database.select("SELECT id FROM branch")[0][0]
    with store.database.transaction() as rows:
        columns = "branch, id, kind, mode, mtime_ns, ctime_ns, atime_ns, upper, dirty, ver, rev"
        rows.execute(f"INSERT INTO node ({columns}) VALUES (?, 5, 1, 420, 0, 0, 0, 77, 1, 1, 1)", (branch,))
    for place in (f"{branch}/77", f"{branch}/78", f"{branch}/fence", "999/1"):
        (store.folder / "up" / place).parent.mkdir(exist_ok=True)
        (store.folder / "up" / place).write_bytes(b"x")
    assert sweep_upper_files(store.folder / "up", store.database, time.time()).files == 0
    assert sweep_upper_files(store.folder / "up", store.database, time.time() + GRACE + 1).files == 2
    left = sorted(str(path.relative_to(store.folder / "up")) for path in (store.folder / "up").rglob("*"))
    assert left == [str(branch), f"{branch}/77", f"{branch}/fence"]


def test_staged_bytes_are_kept_for_a_week(store: Store) -> None:
    store.commit("main", b"x")
    branch = store.database.select("SELECT id FROM branch")[0][0]
    (store.folder / "up" / str(branch)).mkdir(parents=True)
    (store.folder / "up" / str(branch) / "77").write_bytes(b"x")
    with store.database.transaction() as rows:
        rows.execute("INSERT INTO staged VALUES ('id', ?, 77, 1, ?)", (branch, int(time.time())))
    assert sweep_upper_files(store.folder / "up", store.database, time.time() + KEPT - 60).files == 0
    assert sweep_upper_files(store.folder / "up", store.database, time.time() + KEPT + 60).files == 1
    assert store.database.select("SELECT * FROM staged") == []


def test_the_thread_flushes_and_a_stop_leaves_nothing_behind(store: Store) -> None:
    maintainer = store.maintainer(Pace(turn=0.01, flush_after=0))
    maintainer.start()
    head = store.commit("main", b"1")
    deadline = time.monotonic() + 20
    while store.heads().get("main") != head and time.monotonic() < deadline:
        time.sleep(0.02)
    assert store.heads()["main"] == head
    second = store.commit("main", b"2")
    maintainer.stop()
    maintainer.stop()
    assert store.heads()["main"] == second


def test_a_failure_is_logged_and_tried_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()

    def fail(name: str) -> None:
        if name == "journal: pack" and not failed.is_set():
            failed.set()
            raise StoreError("the disk", "it has a bad day")

    head = store.commit("main", b"1")
    maintainer = store.maintainer(Pace(turn=0.01, flush_after=0))
    steps.watch_steps(fail)
    try:
        maintainer.start()
        deadline = time.monotonic() + 20
        while store.heads().get("main") != head and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        steps.watch_steps(None)
        maintainer.stop()
    assert store.heads()["main"] == head
    assert [record.getMessage() for record in caplog.records] == ["maintenance failed; it is tried again"]


def test_a_stale_lock_of_a_dead_owner_is_removed(store: Store) -> None:
    head = store.commit("main", b"1")
    (store.git_dir / "packed-refs.lock").write_bytes(b"half")
    store.maintainer().recover()
    assert store.heads() == {"main": head}

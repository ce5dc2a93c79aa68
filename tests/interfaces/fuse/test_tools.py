"""Ordinary programs at work inside a mount."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.interfaces.fuse.mounting import Served, Shop, becomes

pytestmark = pytest.mark.fuse

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"], "HOME": "/nonexistent"}
IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@example.org"]

SQLITE_WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
db.execute("pragma journal_mode=wal")
for number in range(200):
    db.execute("insert into line values (?, ?)", (sys.argv[2], number))
"""

MAKEFILE = """
all: program
program: main.o part.o
\tcc -o $@ $^
%.o: %.c part.h
\tcc -c -o $@ $<
"""


def git(where: Path, *arguments: str) -> str:
    """Run git and return what it prints."""
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=where, env=GIT, check=True, capture_output=True, text=True)
    return done.stdout


def test_git_initialises_commits_and_clones(here: Path) -> None:
    repository = here / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for number in range(50):
        (repository / f"file{number}").write_text(f"content {number}\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "first")
    (repository / "file7").write_text("changed\n")
    (repository / "file8").unlink()
    assert git(repository, "status", "--porcelain").splitlines() == [" M file7", " D file8"]
    git(repository, "commit", "-q", "-a", "-m", "second")
    git(here, "clone", "-q", "--no-hardlinks", "repository", "clone")
    assert git(here / "clone", "log", "--format=%s").splitlines() == ["second", "first"]
    assert git(here / "clone", "status", "--porcelain") == ""
    git(repository, "gc", "-q", "--prune=now")
    assert git(repository, "fsck", "--strict") == ""


@pytest.mark.skipif(shutil.which("cc") is None or shutil.which("make") is None, reason="needs make and a C compiler")
def test_make_builds_a_program_and_rebuilds_what_changed(here: Path) -> None:
    (here / "Makefile").write_text(MAKEFILE)
    (here / "part.h").write_text("int part(void);\n")
    (here / "part.c").write_text('#include "part.h"\nint part(void) { return 7; }\n')
    (here / "main.c").write_text('#include "part.h"\nint main(void) { return part(); }\n')
    subprocess.run(["make", "-s"], cwd=here, check=True)
    assert subprocess.run([here / "program"], check=False).returncode == 7
    assert subprocess.run(["make", "-q"], cwd=here, check=False).returncode == 0
    (here / "part.c").write_text('#include "part.h"\nint part(void) { return 9; }\n')
    subprocess.run(["make", "-s"], cwd=here, check=True)
    assert subprocess.run([here / "program"], check=False).returncode == 9


def test_two_processes_share_a_database_in_wal_mode(here: Path) -> None:
    path = here / "lines.db"
    with sqlite3.connect(path) as db:
        db.execute("pragma journal_mode=wal")
        db.execute("create table line (writer, number)")
    db.close()
    writers = [subprocess.Popen([sys.executable, "-c", SQLITE_WRITER, str(path), word]) for word in ("left", "right")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    db = sqlite3.connect(path)
    assert db.execute("select writer, count(*), max(number) from line group by writer order by writer").fetchall() == [
        ("left", 200, 199),
        ("right", 200, 199),
    ]
    assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    db.close()


def test_an_editors_saves_lose_nothing_while_commits_run(shop: Shop) -> None:
    served = shop.serve("edited")
    document = served.point / "document"
    document.write_text("0")
    done = threading.Event()
    failures: list[BaseException] = []

    def commit_often() -> None:
        try:
            while not done.is_set():
                shop.commit("edited")
        except BaseException as error:
            failures.append(error)

    committer = threading.Thread(target=commit_often)
    committer.start()
    for number in range(1, 300):
        draft = served.point / f".document.{number}~"
        draft.write_text(str(number))
        draft.rename(document)
        assert document.read_text() == str(number)
    done.set()
    committer.join()
    assert failures == []
    shop.commit("edited")
    assert os.listdir(served.point) == ["document"]
    tree = shop.engine.view(shop.engine.branch("edited").head)
    handle = tree.open(tree.lookup(1, b"document").node)  # type: ignore[arg-type]
    assert handle.read(0, 10) == b"299"
    handle.close()


def test_a_large_committed_file_is_read_changed_and_cut(shop: Shop) -> None:
    content = bytearray(os.urandom(9 << 20))
    path = shop.serve("large").point / "large"
    path.write_bytes(content)
    shop.commit("large")
    path = shop.serve("large").point / "large"
    assert path.read_bytes() == content
    with open(path, "r+b", buffering=0) as file:
        file.seek(4 << 20)
        file.write(b"changed")
    content[4 << 20 : (4 << 20) + 7] = b"changed"
    assert path.read_bytes() == content
    os.truncate(path, 5 << 20)
    assert path.read_bytes() == content[: 5 << 20]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may say how far the kernel reads ahead")
def test_the_kernel_reads_ahead_as_far_as_one_message_carries(shared: Served) -> None:
    device = os.stat(shared.point).st_dev
    setting = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    assert becomes(lambda: setting.read_text().strip() == "1024")


def test_tar_and_rm_leave_nothing_behind(here: Path, shared: Served) -> None:
    source = here / "source"
    for number in range(40):
        (source / f"dir{number}").mkdir(parents=True)
        for name in ("a", "b", "c"):
            (source / f"dir{number}" / name).write_bytes(os.urandom(100))
    subprocess.run(["tar", "-cf", here / "all.tar", "source"], cwd=here, check=True)
    (here / "copy").mkdir()
    subprocess.run(["tar", "-xf", here / "all.tar", "-C", here / "copy"], check=True)
    subprocess.run(["diff", "-r", source, here / "copy/source"], check=True)
    subprocess.run(["rm", "-rf", source, here / "copy"], check=True)
    assert os.listdir(here) == ["all.tar"]

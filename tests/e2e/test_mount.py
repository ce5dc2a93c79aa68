"""A mounted branch of a real run, with decisions and records on, used by the programs people use."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Nas, needs_fuse, wait_until

pytestmark = needs_fuse
REPOSITORY = Path(__file__).resolve().parents[2]


def run(command: list[str], place: Path, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.parent), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=240, check=True, **more)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def place(shared: Nas) -> Path:
    return shared.mount(shared.start()["run"])


def test_git_clones_into_the_mount_and_finds_it_clean(shared: Nas, tmp_path: Path) -> None:
    started = shared.start()
    place = shared.mount(started["run"])
    source = tmp_path / "source"
    source.mkdir()
    files = subprocess.run(["git", "-C", str(REPOSITORY), "ls-files", "-z"], capture_output=True, check=False).stdout.split(b"\0")
    for name in filter(None, files):
        path = source / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / os.fsdecode(name)).is_file():
            shutil.copy(REPOSITORY / os.fsdecode(name), path)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    run(["git", "init", "-q", "-b", "main", "."], source)
    run(["git", "add", "."], source)
    run(["git", *identity, "commit", "-q", "-m", "all of it"], source)
    run(["git", "clone", "-q", str(source), "clone"], place)
    assert run(["git", "status", "--porcelain"], place / "clone").stdout == ""
    assert run(["git", "fsck", "--strict"], place / "clone").returncode == 0
    (place / "clone" / "README.md").write_text("changed")
    assert run(["git", "status", "--porcelain"], place / "clone").stdout == " M README.md\n"
    committed = shared.json("commit", started["run"], "-m", "with a clone in it")
    assert committed["left_out"] == ["clone/.git"]
    assert (place / "clone" / ".git" / "HEAD").exists()


def test_pip_installs_into_a_virtual_environment_that_then_runs(place: Path) -> None:
    run([sys.executable, "-m", "venv", "--without-pip", "venv"], place)
    package = place / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[project]\nname = "tiny"\nversion = "1"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (package / "backend.py").write_text(
        "import zipfile\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        "    with zipfile.ZipFile(folder + '/tiny-1-py3-none-any.whl', 'w') as z:\n"
        "        z.writestr('tiny.py', 'VALUE = 42\\n')\n"
        "        z.writestr('tiny-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n')\n"
        "        z.writestr('tiny-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        z.writestr('tiny-1.dist-info/RECORD', '')\n"
        "    return 'tiny-1-py3-none-any.whl'\n"
    )
    pip = [sys.executable, "-m", "pip", "--python", "venv/bin/python"]
    run([*pip, "install", "-q", "--no-index", "--no-build-isolation", "./package"], place)
    assert run(["venv/bin/python", "-c", "import tiny; print(tiny.VALUE)"], place).stdout == "42\n"


def test_make_builds_a_c_project_and_does_not_build_it_again_after_a_commit(shared: Nas) -> None:
    started = shared.start()
    place = shared.mount(started["run"])
    for number in range(10):
        (place / f"part{number}.c").write_text(f"int part{number}(void) {{ return {number}; }}\n")
    calls = "+".join(f"part{number}()" for number in range(10))
    declarations = "".join(f"int part{number}(void);" for number in range(10))
    (place / "main.c").write_text(f'#include <stdio.h>\n{declarations}\nint main(void) {{ printf("%d\\n", {calls}); return 0; }}\n')
    (place / "Makefile").write_text("OBJS := $(patsubst %.c,%.o,$(wildcard *.c))\nprogram: $(OBJS)\n\t$(CC) -o $@ $^\n")
    run(["make", "-j2"], place)
    assert run(["./program"], place).stdout == "45\n"
    shared.json("commit", started["run"], "-m", "built")
    assert "up to date" in run(["make"], place).stdout


def test_two_processes_write_one_sqlite_database_in_wal_mode(place: Path) -> None:
    writer = (
        "import sqlite3, sys\n"
        "db = sqlite3.connect('shared.db', timeout=60, isolation_level=None)\n"
        "db.execute('pragma journal_mode=wal')\n"
        "for n in range(200): db.execute('insert into t values (?, ?)', (sys.argv[1], n))\n"
    )
    with sqlite3.connect(place / "shared.db") as database:
        assert database.execute("pragma journal_mode=wal").fetchone() == ("wal",)
        database.execute("create table t (who text, n integer)")
    children = [subprocess.Popen([sys.executable, "-c", writer, name], cwd=place) for name in ("one", "other")]
    assert [child.wait(120) for child in children] == [0, 0]
    with sqlite3.connect(place / "shared.db") as database:
        assert database.execute("select who, count(*), sum(n) from t group by who order by who").fetchall() == [
            ("one", 200, 19900),
            ("other", 200, 19900),
        ]
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_an_editor_saves_by_renaming_while_commits_run(shared: Nas) -> None:
    started = shared.start()
    place = shared.mount(started["run"])
    stop = threading.Event()
    commits: list[str] = []

    def commit_often() -> None:
        while not stop.is_set():
            commits.append(shared.json("commit", started["run"], "-m", "meanwhile")["commit"])

    committer = threading.Thread(target=commit_often)
    committer.start()
    for number in range(300):
        fresh = place / ".document.tmp"
        fresh.write_text(f"version {number}\n" * 50)
        fresh.rename(place / "document.txt")
        assert (place / "document.txt").read_text() == f"version {number}\n" * 50
    stop.set()
    committer.join()
    shared.json("commit", started["run"], "-m", "at the end")
    assert len(set(commits)) > 1
    out = shared.mounts.parent / "exported"
    shared.json("export", started["branch"], str(out), "--format", "dir")
    assert (out / "document.txt").read_text() == "version 299\n" * 50


def test_two_processes_append_five_thousand_lines_and_none_is_lost_or_torn(place: Path) -> None:
    script = (
        "import os, sys\n"
        "fd = os.open('log', os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
        "for n in range(2500): os.write(fd, b'%s %05d\\n' % (sys.argv[1].encode(), n))\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", script, name], cwd=place) for name in ("aaaa", "bbbb")]
    assert [child.wait(120) for child in children] == [0, 0]
    lines = (place / "log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name} {number:05d}" for name in ("aaaa", "bbbb") for number in range(2500))


def test_nothing_outside_the_lease_can_be_reached(shared: Nas) -> None:
    place = shared.mount(shared.start("coder", "--paths", "src/**")["run"])
    assert sorted(os.listdir(place)) == ["src"]
    assert sorted(os.listdir(place / "src")) == ["a.py", "b.py"]
    (place / "src" / "escape").symlink_to("../secret/plan.txt")
    reaches = {
        "read": lambda: (place / "secret" / "plan.txt").read_text(),
        "stat": lambda: os.stat(place / "secret"),
        "list": lambda: os.listdir(place / "secret"),
        "symlink": lambda: (place / "src" / "escape").read_text(),
        "dots": lambda: open(f"{place}/src/../secret/plan.txt"),  # noqa: SIM115
        "link": lambda: os.link(place / "README.md", place / "src" / "stolen"),
        "rename": lambda: (place / "README.md").rename(place / "src" / "stolen"),
        "missing": lambda: os.stat(place / "never-existed"),
    }
    for name, reach in reaches.items():
        with pytest.raises(OSError) as caught:
            reach()
        assert caught.value.errno == errno.ENOENT, name
    for write in (
        lambda: (place / "new.txt").write_text("x"),
        lambda: (place / "secret").mkdir(),
        lambda: (place / "src" / "a.py").rename(place / "README.md"),
        lambda: os.link(place / "src" / "a.py", place / "linked"),
        lambda: (place / "src").rename(place / "moved"),
    ):
        with pytest.raises(PermissionError):
            write()
    assert (place / "src" / "a.py").read_text() == "a = 1\n"


def test_a_swap_between_check_and_use_reaches_nothing(shared: Nas) -> None:
    """A name that turns from a file inside the lease into a symlink out of it, as fast as it can, while others read it."""
    place = shared.mount(shared.start("coder", "--paths", "src/**")["run"])
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (place / "src" / "t1").write_text("inside")
            os.replace(place / "src" / "t1", place / "src" / "target")
            os.symlink("../secret/plan.txt", place / "src" / "t2")
            os.replace(place / "src" / "t2", place / "src" / "target")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    deadline = time.monotonic() + 20
    while seen < {"inside", "absent"} or len(seen) > 2 or time.monotonic() < deadline - 17:
        try:
            seen.add((place / "src" / "target").read_text())
        except FileNotFoundError:
            seen.add("absent")
        if time.monotonic() > deadline:
            break
    stop.set()
    swapper.join()
    assert "the plan\n" not in seen
    assert "inside" in seen


def test_a_spent_budget_of_bytes_is_edquot(shared: Nas) -> None:
    place = shared.mount(shared.start("coder", "--budget", "bytes_written=100000")["run"])
    (place / "fits").write_bytes(b"x" * 60000)
    with pytest.raises(OSError) as caught:
        (place / "too-much").write_bytes(b"x" * 60000)
    assert caught.value.errno == errno.EDQUOT
    assert os.statvfs(place).f_bavail * os.statvfs(place).f_frsize <= 100000


def test_a_revoked_lease_closes_an_open_mount_within_a_second(shared: Nas) -> None:
    started = shared.start()
    place = shared.mount(started["run"])
    descriptor = os.open(place / "src" / "a.py", os.O_RDWR)
    os.pread(descriptor, 100, 0)
    (place / "mine").write_text("kept")
    shared.json("lease", "revoke", started["lease"])
    revoked = time.monotonic()
    while True:
        try:
            os.pread(descriptor, 100, 0)
            os.stat(place / "README.md")
        except OSError:
            break
        assert time.monotonic() - revoked < 1.5
    os.close(descriptor)
    wait_until(lambda: shared.json("run", "show", started["run"])["state"] == "revoked")
    assert "mine" in [item["path"] for item in shared.json("diff", started["run"])]


def test_main_is_mounted_read_only_and_follows_merges(shared: Nas) -> None:
    place = shared.mount("main")
    assert (place / "docs" / "one.md").read_text() == "1\n"
    with pytest.raises(OSError) as caught:
        (place / "new").write_text("x")
    assert caught.value.errno in (errno.EROFS, errno.EACCES)
    started = shared.start()
    (shared.mount(started["run"]) / "docs" / "one.md").write_text("one\n")
    assert shared.json("propose", started["run"], "-m", "one")["decision"] == "merged"
    wait_until(lambda: (place / "docs" / "one.md").read_text() == "one\n")


def test_a_killed_mount_process_loses_no_write_and_comes_back(shared: Nas) -> None:
    started = shared.start()
    place = shared.mount(started["run"])
    mount = next(item for item in shared.json("status")["mounts"] if item["run"] == started["run"])
    for number in range(50):
        (place / f"file-{number}").write_text(f"content {number}")
    os.kill(mount["pid"], signal.SIGKILL)

    def back() -> bool:
        try:
            return (place / "file-49").read_text() == "content 49"
        except OSError:
            return False

    wait_until(back)
    assert [(place / f"file-{number}").read_text() for number in range(50)] == [f"content {number}" for number in range(50)]


def test_a_mount_inside_the_data_directory_is_refused(shared: Nas) -> None:
    started = shared.start()
    inside = shared.home / "run" / "here"
    inside.mkdir()
    done = shared.run("mount", started["run"], str(inside), expect=None)
    assert done.returncode not in (0, None)
    assert "hint:" in done.stderr

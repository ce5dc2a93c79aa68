"""What POSIX promises about files, tried by system calls on a real mount."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.fuse

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
AT_FDCWD = -100

APPENDER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for number in range(2500):
    os.write(fd, b"%s %04d\\n" % (sys.argv[2].encode(), number))
"""


def refused_with(number: int, call: Callable[[], object]) -> bool:
    """Tell whether a call fails with an errno."""
    with pytest.raises(OSError) as caught:
        call()
    assert caught.value.errno == number, caught.value
    return True


def rename_with(flags: int, source: Path, target: Path) -> None:
    """Call renameat2."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, bytes(source), AT_FDCWD, bytes(target), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def test_an_unlinked_file_stays_usable_while_open(here: Path) -> None:
    with open(here / "scratch", "w+b", buffering=0) as file:
        os.unlink(here / "scratch")
        file.write(b"kept")
        file.truncate(10)
        os.fchmod(file.fileno(), 0o600)
        assert os.pread(file.fileno(), 20, 0) == b"kept" + bytes(6)
        found = os.fstat(file.fileno())
    assert (found.st_nlink, found.st_size, stat.S_IMODE(found.st_mode)) == (0, 10, 0o600)
    assert os.listdir(here) == []


def test_renaming_over_an_open_file_leaves_its_reader_what_it_had(here: Path) -> None:
    (here / "target").write_bytes(b"former")
    (here / "source").write_bytes(b"present")
    with open(here / "target", "rb", buffering=0) as reader:
        (here / "source").rename(here / "target")
        assert reader.read() == b"former"
    assert (here / "target").read_bytes() == b"present"
    assert os.listdir(here) == ["target"]


def test_renaming_a_directory_keeps_what_is_open_below_it(here: Path) -> None:
    (here / "a/deep").mkdir(parents=True)
    with open(here / "a/deep/file", "w+b", buffering=0) as file:
        (here / "a").rename(here / "b")
        file.write(b"moved")
        assert (here / "b/deep/file").read_bytes() == b"moved"
    assert not (here / "a").exists()


def test_a_rename_can_refuse_to_replace_and_can_exchange(here: Path) -> None:
    (here / "one").write_bytes(b"1")
    (here / "two").mkdir()
    assert refused_with(errno.EEXIST, lambda: rename_with(RENAME_NOREPLACE, here / "one", here / "two"))
    rename_with(RENAME_EXCHANGE, here / "one", here / "two")
    assert (here / "one").is_dir()
    assert (here / "two").read_bytes() == b"1"


def test_a_directory_cannot_move_below_itself_nor_over_a_full_one(here: Path) -> None:
    (here / "a/b").mkdir(parents=True)
    (here / "c").mkdir()
    assert refused_with(errno.EINVAL, lambda: (here / "a").rename(here / "a/b/c"))
    assert refused_with(errno.ENOTEMPTY, lambda: (here / "c").rename(here / "a"))
    assert refused_with(errno.ENOTEMPTY, (here / "a").rmdir)


def test_appends_of_two_processes_are_all_there(here: Path) -> None:
    log = here / "log"
    log.touch()
    writers = [subprocess.Popen([sys.executable, "-c", APPENDER, str(log), word]) for word in ("left", "right")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    lines = log.read_text().splitlines()
    assert sorted(lines) == [f"{word} {number:04}" for word in ("left", "right") for number in range(2500)]


def test_a_shared_mapping_beside_an_appending_descriptor_writes_in_place(here: Path) -> None:
    path = here / "both"
    path.write_bytes(bytes(2 * mmap.PAGESIZE))
    with open(path, "ab", buffering=0) as log, open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        pages[:4] = b"head"
        pages.flush()
        log.write(b"tail")
    content = path.read_bytes()
    assert (content[:4], content[-4:], len(content)) == (b"head", b"tail", 2 * mmap.PAGESIZE + 4)


def test_open_flags_mean_what_they_say(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"before")
    assert refused_with(errno.EEXIST, lambda: os.open(path, os.O_CREAT | os.O_EXCL))
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
    assert path.read_bytes() == b""
    assert refused_with(errno.ENOTDIR, lambda: os.open(path, os.O_DIRECTORY))
    assert refused_with(errno.EISDIR, lambda: os.open(here, os.O_WRONLY))


def test_a_mapping_and_reads_agree(here: Path) -> None:
    path = here / "pages"
    path.write_bytes(bytes(3 * mmap.PAGESIZE))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        pages[mmap.PAGESIZE : mmap.PAGESIZE + 5] = b"hello"
        pages.flush()
        assert path.read_bytes()[mmap.PAGESIZE :][:5] == b"hello"
        os.pwrite(file.fileno(), b"again", 0)
        assert pages[:5] == b"again"


def test_a_sparse_file_reads_zeros_and_grows_by_truncate(here: Path) -> None:
    path = here / "sparse"
    with open(path, "wb") as file:
        file.seek(5 << 20)
        file.write(b"end")
    os.truncate(path, 6 << 20)
    with open(path, "rb") as file:
        assert file.read(4096) == bytes(4096)
        file.seek(5 << 20)
        assert file.read(4) == b"end\0"
    assert os.stat(path).st_size == 6 << 20
    os.truncate(path, 3)
    assert path.read_bytes() == bytes(3)


def test_names_are_bytes(here: Path) -> None:
    names = [b"\xff\xfe", "ñandú".encode(), b"a b\nc", b"x" * 255, b"-rf", b"*"]
    for name in names:
        with open(bytes(here) + b"/" + name, "wb") as file:
            file.write(name)
    assert sorted(os.listdir(bytes(here))) == sorted(names)
    for name in names:
        with open(bytes(here) + b"/" + name, "rb") as file:
            assert file.read() == name
    assert refused_with(errno.ENAMETOOLONG, lambda: os.open(bytes(here) + b"/" + b"y" * 256, os.O_CREAT))


def test_symlinks_hold_long_targets_and_loops_are_found(here: Path) -> None:
    os.symlink("t" * 4095, here / "long")
    assert os.readlink(here / "long") == "t" * 4095
    os.symlink("b", here / "a")
    os.symlink("a", here / "b")
    assert refused_with(errno.ELOOP, lambda: os.stat(here / "a"))


def test_hard_links_share_a_node(here: Path) -> None:
    (here / "one").write_bytes(b"same")
    os.link(here / "one", here / "two")
    assert os.stat(here / "one").st_ino == os.stat(here / "two").st_ino
    assert os.stat(here / "one").st_nlink == 2
    (here / "two").write_bytes(b"both")
    os.unlink(here / "one")
    assert (here / "two").read_bytes() == b"both"
    assert os.stat(here / "two").st_nlink == 1


def test_extended_attributes_of_the_user_are_kept_and_no_others(here: Path) -> None:
    path = here / "file"
    path.touch()
    os.setxattr(path, "user.note", b"\0\xff" * 100)
    assert os.getxattr(path, "user.note") == b"\0\xff" * 100
    assert os.listxattr(path) == ["user.note"]
    assert refused_with(errno.EEXIST, lambda: os.setxattr(path, "user.note", b"", os.XATTR_CREATE))
    assert refused_with(errno.ENODATA, lambda: os.setxattr(path, "user.other", b"", os.XATTR_REPLACE))
    os.removexattr(path, "user.note")
    assert refused_with(errno.ENODATA, lambda: os.getxattr(path, "user.note"))
    assert refused_with(errno.ENODATA, lambda: os.removexattr(path, "user.note"))


def test_pipes_and_sockets_work(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(here / "pipe")
    reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(here / "pipe", os.O_WRONLY)
    os.write(writer, b"through")
    assert os.read(reader, 10) == b"through"
    os.close(writer)
    os.close(reader)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client, monkeypatch.context() as inside:
        inside.chdir(here)
        server.bind("socket")
        server.listen()
        client.connect("socket")


def test_times_and_modes_are_kept(here: Path) -> None:
    path = here / "file"
    path.touch()
    os.utime(path, ns=(1_000_000_000_123_456_789, 2_000_000_000_987_654_321))
    os.chmod(path, 0o640)
    found = os.stat(path)
    assert (found.st_atime_ns, found.st_mtime_ns) == (1_000_000_000_123_456_789, 2_000_000_000_987_654_321)
    assert stat.S_IMODE(found.st_mode) == 0o640
    path.read_bytes()
    assert os.stat(path).st_atime_ns == 1_000_000_000_123_456_789


@pytest.mark.parametrize("act", ["create", "unlink", "mkdir", "rmdir", "rename", "link", "symlink"])
def test_a_directory_changes_when_an_entry_does(here: Path, act: str) -> None:
    (here / "file").touch()
    (here / "empty").mkdir()
    os.utime(here, ns=(1, 1))
    acts: dict[str, Callable[[], object]] = {
        "create": (here / "fresh").touch,
        "unlink": (here / "file").unlink,
        "mkdir": (here / "dir").mkdir,
        "rmdir": (here / "empty").rmdir,
        "rename": lambda: (here / "file").rename(here / "moved"),
        "link": lambda: os.link(here / "file", here / "second"),
        "symlink": lambda: os.symlink("x", here / "points"),
    }
    acts[act]()
    assert os.stat(here).st_mtime_ns > 1


def test_writing_clears_set_id_bits(here: Path) -> None:
    path = here / "program"
    path.touch()
    os.chmod(path, 0o6755)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o6755
    with open(path, "wb") as file:
        file.write(b"other")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o755


def test_locks_bind_the_processes_of_the_mount(here: Path) -> None:
    path = here / "lock"
    path.touch()
    taker = "import fcntl,sys\nf=open(sys.argv[1],'r+')\n%s(f, fcntl.LOCK_EX|fcntl.LOCK_NB)"
    for lock in ("fcntl.flock", "fcntl.lockf"):
        with open(path, "r+b") as file:
            (fcntl.flock if lock == "fcntl.flock" else fcntl.lockf)(file, fcntl.LOCK_EX)
            other = [sys.executable, "-c", taker % lock, str(path)]
            assert subprocess.run(other, check=False, stderr=subprocess.DEVNULL).returncode == 1
        assert subprocess.run(other, check=False).returncode == 0


def test_ten_thousand_files_are_created_and_listed(here: Path) -> None:
    names = [f"file-{number:05}" for number in range(10_000)]
    for name in names:
        os.close(os.open(here / name, os.O_CREAT | os.O_WRONLY))
    assert sorted(os.listdir(here)) == names
    with os.scandir(here) as entries:
        assert all(entry.is_file(follow_symlinks=False) for entry in entries)


def test_a_listing_survives_the_removal_of_what_it_lists(here: Path) -> None:
    for number in range(1000):
        (here / f"{number:04}").touch()
    listed = set()
    with os.scandir(here) as entries:
        for entry in entries:
            os.unlink(entry.path)
            listed.add(entry.name)
    assert len(listed) == 1000
    assert os.listdir(here) == []


def test_a_deep_tree_can_be_walked(here: Path) -> None:
    deep = here
    for _ in range(100):
        deep /= "d"
        deep.mkdir()
    (deep / "leaf").write_bytes(b"deep")
    assert sum(1 for _ in os.walk(here)) == 101
    assert (deep / "leaf").read_bytes() == b"deep"


def test_a_program_on_the_mount_runs(here: Path) -> None:
    program = here / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    assert subprocess.run([program], check=False).returncode == 0
    assert refused_with(errno.ETXTBSY, lambda: _write_while_running(here))


def _write_while_running(here: Path) -> None:
    sleeper = here / "sleeper"
    sleeper.write_bytes(Path("/bin/sleep").read_bytes())
    sleeper.chmod(0o755)
    running = subprocess.Popen([sleeper, "60"])
    try:
        os.close(os.open(sleeper, os.O_WRONLY))
    finally:
        running.kill()
        running.wait()


def test_the_room_left_is_told(here: Path) -> None:
    room = os.statvfs(here)
    assert 0 < room.f_bavail <= room.f_blocks
    assert room.f_namemax == 255


def test_syncing_works_on_files_and_directories(here: Path) -> None:
    with open(here / "file", "wb") as file:
        file.write(b"durable")
        os.fsync(file.fileno())
        os.fdatasync(file.fileno())
    directory = os.open(here, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)

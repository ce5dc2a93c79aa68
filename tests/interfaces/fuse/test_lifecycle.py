"""A mount's beginning and end: crashes, ends in order, leases that end, and other doors."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from interfaces.fuse import check_mountpoint, find_holders, find_mount, is_dead, recover_mountpoint, unmount, wait_usable
from tests.interfaces.fuse.mounting import Shop, becomes

pytestmark = pytest.mark.fuse

TOUCHER = """
import ctypes, mmap, sys
file = open(sys.argv[1], "rb")
pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
pages[0]
print("mapped", flush=True)
sys.stdin.readline()
pages[0]
"""

WRITER = """
import os, sys
number = 0
while True:
    with open(f"{sys.argv[1]}/file{number % 50}", "wb", buffering=0) as file:
        file.write(b"%08d" % number)
    print(number, flush=True)
    number += 1
"""


def content(path: Path) -> bytes | None:
    """Return what is in a file, or None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def test_the_mount_table_names_the_branch(shop: Shop) -> None:
    served = shop.serve("named/run1")
    mount = find_mount(served.point)
    assert mount is not None
    assert (mount.source, mount.type) == ("agent-nas:named/run1", "fuse.agent-nas")


def test_two_mounts_of_one_branch_see_each_others_changes(shop: Shop) -> None:
    one, other = shop.serve("both").point, shop.serve("both").point
    assert content(other / "file") is None
    (one / "file").write_bytes(b"first")
    assert becomes(lambda: content(other / "file") == b"first")
    (other / "file").write_bytes(b"second, longer")
    assert becomes(lambda: content(one / "file") == b"second, longer")
    (one / "dir").mkdir()
    (one / "file").rename(one / "dir/moved")
    assert becomes(lambda: content(other / "dir/moved") == b"second, longer")
    assert becomes(lambda: not (other / "file").exists())
    (one / "dir/moved").unlink()
    (one / "dir").rmdir()
    assert becomes(lambda: os.listdir(other) == [])


def test_a_file_that_one_mount_keeps_writing_grows_on_the_other(shop: Shop) -> None:
    one, other = shop.serve("log").point, shop.serve("log").point
    with open(one / "log", "ab", buffering=0) as log:
        written = b""
        for number in range(5):
            line = b"line %d\n" % number
            log.write(line)
            written += line
            assert becomes(lambda written=written: content(other / "log") == written)
            assert os.stat(other / "log").st_size == len(written)


def test_both_mounts_append_to_one_log(shop: Shop) -> None:
    one, other = shop.serve("logs").point, shop.serve("logs").point
    (one / "log").touch()
    with open(one / "log", "ab", buffering=0) as left, open(other / "log", "ab", buffering=0) as right:
        for number in range(50):
            left.write(b"left %d\n" % number)
            right.write(b"right %d\n" % number)
    expected = sorted(b"%s %d" % (word, number) for word in (b"left", b"right") for number in range(50))
    assert becomes(lambda: sorted((content(one / "log") or b"").splitlines()) == expected)
    assert becomes(lambda: content(other / "log") == content(one / "log"))


def test_a_killed_server_loses_no_write_that_returned(shop: Shop) -> None:
    served = shop.serve("killed")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(served.point)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert writer.stdout is not None
    acknowledged = [int(next(writer.stdout)) for _ in range(200)]
    served.kill()
    acknowledged += [int(line) for line in writer.stdout]
    writer.wait()
    writer.stdout.close()
    assert is_dead(served.point)
    assert recover_mountpoint(served.point)
    assert not recover_mountpoint(served.point)
    latest = {number % 50: number for number in acknowledged}
    again = shop.serve("killed").point
    for slot, number in latest.items():
        found = int((again / f"file{slot}").read_bytes() or b"-1")
        # The write under way when the server died may be there or not; every one that returned is.
        assert found == number or (found in (-1, number + 50) and number + 50 == acknowledged[-1] + 1)


def test_a_server_told_to_end_unmounts_and_says_so(shop: Shop) -> None:
    served = shop.serve("ended")
    (served.point / "file").write_bytes(b"kept")
    assert served.terminate() == "terminated"
    assert find_mount(served.point) is None
    assert (shop.serve("ended").point / "file").read_bytes() == b"kept"


def test_unmounting_ends_the_server_and_a_busy_mount_names_its_holder(shop: Shop) -> None:
    served = shop.serve("busy")
    holder = subprocess.Popen(["sleep", "600"], cwd=served.point)
    with pytest.raises(Fault) as caught:
        unmount(served.point)
    assert caught.value.kind is Kind.BUSY
    assert f"sleep ({holder.pid})" in caught.value.message
    mount = find_mount(served.point)
    assert mount is not None
    assert [found.pid for found in find_holders(mount)] == [holder.pid]
    holder.kill()
    holder.wait()
    unmount(served.point)
    assert served.farewell() == "unmounted"
    unmount(served.point)


def test_an_ended_lease_refuses_whatever_comes_next(shop: Shop) -> None:
    served = shop.serve("leased")
    (served.point / "dir").mkdir()
    path = served.point / "dir/file"
    path.write_bytes(b"x" * 3 * mmap.PAGESIZE)
    with open(path, "rb", buffering=0) as reader, open(path, "r+b", buffering=0) as writer:
        assert reader.read(1) == b"x"
        assert os.stat(path).st_size == 3 * mmap.PAGESIZE
        mapper = subprocess.Popen([sys.executable, "-c", TOUCHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert mapper.stdout is not None
        assert mapper.stdout.readline() == "mapped\n"
        served.end_lease()
        for refused in (
            lambda: os.stat(path),
            lambda: os.listdir(served.point),
            lambda: os.pread(reader.fileno(), 1, 0),
            lambda: os.pwrite(writer.fileno(), b"y", 0),
            lambda: os.open(path, os.O_RDONLY),
            (served.point / "other").touch,
            path.unlink,
        ):
            assert becomes(lambda refused=refused: _errno_of(refused) == errno.EACCES)
        mapper.communicate("\n")
        assert mapper.returncode == -7, "the mapping is gone: SIGBUS"


def _errno_of(call: object) -> int:
    assert callable(call)
    try:
        call()
    except OSError as error:
        return error.errno or 0
    return 0


def test_a_mountpoint_inside_or_above_the_data_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "nas/store"
    (data / "up").mkdir(parents=True)
    (tmp_path / "link").symlink_to(data / "up")
    for point, relation in ((data, "inside"), (data / "up", "inside"), (tmp_path / "link", "inside"), (tmp_path, "above")):
        with pytest.raises(Fault, match=relation) as caught:
            check_mountpoint(point, [data])
        assert caught.value.kind is Kind.INVALID


def test_a_mountpoint_is_an_empty_directory_of_its_own(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "file").touch()
    refusals = {tmp_path / "missing": Kind.NOT_FOUND, tmp_path / "file": Kind.NOT_A_DIRECTORY, tmp_path: Kind.NOT_EMPTY}
    for point, kind in refusals.items():
        with pytest.raises(Fault) as caught:
            check_mountpoint(point, [])
        assert caught.value.kind is kind
    assert check_mountpoint(tmp_path, [], allow_nonempty=True) == tmp_path
    served = shop.serve("taken")
    with pytest.raises(Fault) as caught:
        check_mountpoint(served.point, [])
    assert caught.value.kind is Kind.BUSY


def test_waiting_for_a_mount_that_never_comes_ends(tmp_path: Path) -> None:
    with pytest.raises(Fault) as caught:
        wait_usable(tmp_path, 0.05)
    assert caught.value.kind is Kind.UNAVAILABLE

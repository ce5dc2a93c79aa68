"""Waiting: how long, for whom, and what no flood can do to the table of those who wait."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasd.identities.attempts import _SIZE, Attempts
from nasd.identities.lockout import FREE, LONGEST, QUIET, Strikes, begins_burst, block_of, is_shared, strike, wait_after

NOW = 1_800_000_000.0


def test_the_first_failures_cost_nothing_and_each_further_one_doubles_the_wait_up_to_the_longest() -> None:
    waits = [wait_after(count, FREE) for count in range(1, FREE + 12)]
    assert waits[:FREE] == [0.0] * FREE
    assert waits[FREE : FREE + 4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST == max(waits)
    assert wait_after(10**9, FREE) == LONGEST


@given(st.lists(st.floats(0, QUIET / 2), max_size=40))
def test_a_burst_is_told_exactly_once_however_its_failures_are_spaced(pauses: list[float]) -> None:
    now, strikes, told = NOW, Strikes(), 0
    for pause in pauses:
        now += pause
        before, strikes = strikes, strike(strikes, now, FREE)
        told += begins_burst(before, strikes, FREE)
    assert told == (len(pauses) > FREE)


def test_a_pause_forgets_everything_and_a_clock_that_was_set_back_locks_nobody_out_for_long() -> None:
    strikes = Strikes()
    for _ in range(FREE + 3):
        strikes = strike(strikes, NOW, FREE)
    assert strikes.wait(NOW) == 4.0
    assert strikes.wait(NOW + QUIET) == 0.0
    assert strike(strikes, NOW + QUIET, FREE).count == 1
    assert strikes.wait(NOW - 7 * 86400) == 0.0


@pytest.mark.parametrize(
    ("address", "shared", "block"),
    [
        ("127.0.0.1", True, "127.0.0.1"),
        ("::1", True, "::/64"),
        ("::ffff:127.0.0.9", True, "127.0.0.9"),
        ("", True, ""),
        ("not an address", True, "not an address"),
        ("192.0.2.7", False, "192.0.2.7"),
        ("::ffff:192.0.2.7", False, "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", False, "2001:db8:1:2::/64"),
        ("fe80::1%eth0", False, "fe80::/64"),
    ],
)
def test_an_address_is_counted_as_what_one_customer_has_and_the_loopback_is_everybodys(address: str, shared: bool, block: str) -> None:
    assert (is_shared(address), block_of(address)) == (shared, block)


def strike_often(path: Path, times: int) -> None:
    attempts = Attempts(path)
    for _ in range(times):
        attempts.strike("ana", "192.0.2.1", now=NOW, free=FREE)
    attempts.close()


def test_processes_count_together_and_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "attempts"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=strike_often, args=(path, 200)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    attempts = Attempts(path)
    assert attempts.find("ana", "192.0.2.1").count == 400
    assert attempts.find("ana", "192.0.2.2").count == 0
    attempts.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_flood_over_invented_names_neither_grows_the_file_nor_frees_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "attempts"
    attempts = Attempts(path)
    for _ in range(FREE + 8):
        attempts.strike("ana", "192.0.2.1", now=NOW, free=FREE)
    attempts.establish(b"right", NOW)
    for number in range(20_000):
        attempts.strike(f"invented {number}", "192.0.2.1", now=NOW, free=FREE)
    assert attempts.find("ana", "192.0.2.1").wait(NOW) == 128.0
    assert path.stat().st_size == _SIZE
    attempts.close()


def test_what_was_right_is_known_in_every_process_for_half_a_day_and_nothing_in_the_file_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "attempts"
    one, other = Attempts(path), Attempts(path)
    one.establish(b"digest of ana's", NOW)
    one.strike("ana", "192.0.2.1", now=NOW, free=FREE)
    assert other.is_established(b"digest of ana's", NOW)
    assert not other.is_established(b"digest of bo's", NOW)
    assert not other.is_established(b"digest of ana's", NOW + 13 * 3600)
    for attempts in (one, other, one):
        attempts.close()
    assert b"ana" not in path.read_bytes()


def test_a_broken_file_is_made_anew_and_a_symlink_in_its_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "attempts"
    path.write_bytes(b"something else")
    attempts = Attempts(path)
    attempts.strike("ana", "192.0.2.1", now=NOW, free=FREE)
    assert attempts.find("ana", "192.0.2.1").count == 1
    attempts.close()
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    path.unlink()
    path.symlink_to(victim)
    with pytest.raises(OSError):
        Attempts(path)
    assert victim.read_bytes() == b"kept"
    assert os.path.islink(path)

"""Logs begin anew under the feet of who writes them."""

from __future__ import annotations

from pathlib import Path

from nasd.logs import rotate_logs


def test_a_long_log_begins_anew_and_its_writer_goes_on(tmp_path: Path) -> None:
    with (tmp_path / "gateways.log").open("ab", buffering=0) as writer:
        writer.write(b"first\n")
        assert rotate_logs(tmp_path, longest=5) == [tmp_path / "gateways.log"]
        writer.write(b"second\n")
    assert (tmp_path / "gateways.log").read_bytes() == b"second\n"
    assert (tmp_path / "gateways.log.1").read_bytes() == b"first\n"


def test_a_short_log_stays(tmp_path: Path) -> None:
    (tmp_path / "nasd.log").write_bytes(b"12345")
    assert rotate_logs(tmp_path, longest=5) == []
    assert (tmp_path / "nasd.log").read_bytes() == b"12345"

"""The tree over the chain, checkpoints, segments and redaction, over the real engine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tests.trust.samples import NOW, open_trust
from trust import Trust
from trust.chain import GENESIS, row_hash
from trust.checkpoints import Checkpoint
from trust.errors import ChainBroken, NoteInvalid, Unknown
from trust.lines import parse_lines, render_lines
from trust.merkle import TILE, Frontier, leaf_hash, verify_consistency, verify_inclusion
from trust.segments import next_end


def fill(trust: Trust, count: int) -> None:
    with trust.transaction():
        for number in range(count):
            trust.state("seen", None, {"n": number, "secret": f"s{number}"}, NOW + number)


@contextmanager
def tampering(folder: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(folder / "trust.db"))
    for (name,) in list(connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA foreign_keys=OFF")
    yield connection
    connection.close()


def leaves(trust: Trust) -> list[bytes]:
    return [leaf_hash(bytes.fromhex(record.hash)) for record in trust.records()]


def root(found: list[bytes]) -> bytes:
    frontier = Frontier()
    frontier.add(found)
    return frontier.root()


# the tree


@pytest.mark.parametrize("count", [1, 2, TILE - 1, TILE, TILE + 1, 5 * TILE + 3])
def test_the_tree_is_over_the_hashes_of_the_records(trust: Trust, count: int) -> None:
    fill(trust, count)
    found = leaves(trust)
    for size in {0, 1, count // 2, count - 1, count}:
        assert trust.evidence.root_at(size) == root(found[:size])


def test_every_record_is_proven_in_every_later_tree(trust: Trust) -> None:
    fill(trust, 3 * TILE + 5)
    found = leaves(trust)
    sizes = [1, 7, TILE, TILE + 1, 2 * TILE, 3 * TILE + 5]
    for size in sizes:
        for sequence in range(1, size + 1, 97):
            proof = trust.evidence.prove_inclusion(sequence, size)
            assert verify_inclusion(found[sequence - 1], sequence - 1, size, proof, root(found[:size]))
        for first in sizes:
            if first <= size:
                proof = trust.evidence.prove_consistency(first, size)
                assert verify_consistency(first, size, root(found[:first]), root(found[:size]), proof)
    for act in (
        lambda: trust.evidence.root_at(3 * TILE + 6),
        lambda: trust.evidence.prove_inclusion(9, 8),
        lambda: trust.evidence.prove_inclusion(0, 8),
    ):
        with pytest.raises(Unknown):
            act()


def test_a_tree_is_kept_by_whoever_appends(trust: Trust, tmp_path: Path) -> None:
    other = Trust.open(tmp_path / "trust")
    for number in range(TILE + 10):
        (trust if number % 3 else other).state("seen", None, {}, NOW)
    assert other.evidence.root_at(TILE + 10) == root(leaves(trust)) and trust.verify().ok
    other.close()


def test_a_record_of_the_first_release_gets_its_tree_and_stays_verifiable(tmp_path: Path) -> None:
    folder = Path(__file__).with_name("data") / "first-release.sql"
    (tmp_path / "old").mkdir()
    connection = sqlite3.connect(tmp_path / "old" / "trust.db")
    connection.executescript(folder.read_text())
    connection.close()
    trust = Trust.open(tmp_path / "old")
    assert (trust.verify().ok, trust.head()[0]) == (True, 300)
    fill(trust, TILE)
    assert trust.verify().ok and trust.evidence.root_at(556) == root(leaves(trust))
    with pytest.raises(ChainBroken, match="first release"):
        trust.evidence.redact(3)
    trust.close()


# checkpoints


def test_a_checkpoint_signs_the_head_and_opens_with_the_key_of_this_log(trust: Trust, tmp_path: Path) -> None:
    with pytest.raises(Unknown):
        trust.evidence.checkpoint(NOW)
    fill(trust, 300)
    kept = trust.evidence.checkpoint(NOW)
    assert trust.evidence.open(kept.note) == Checkpoint(trust.evidence.verifier.name, 300, root(leaves(trust)))
    assert trust.evidence.checkpoint(NOW + 9) == kept == trust.evidence.last_checkpoint()
    fill(trust, 5)
    later = trust.evidence.checkpoint(NOW + 10)
    assert [each.size for each in trust.evidence.checkpoints()] == [300, 305] and trust.evidence.covering(301) == later
    other = open_trust(tmp_path / "other")
    with pytest.raises(NoteInvalid):
        other.evidence.open(kept.note)
    other.close()


def test_a_checkpoint_is_of_records_that_are_on_stable_storage(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(trust, 3)
    synced, real = [], os.fdatasync
    monkeypatch.setattr("trust.engines.sqlite.database.os.fdatasync", lambda descriptor: (real(descriptor), synced.append(trust.head()[0])))
    trust.state("seen", None, {}, NOW)
    kept = trust.evidence.checkpoint(NOW)
    assert kept.size == 4 and synced[0] >= 4


def test_the_key_of_the_log_is_a_file_that_only_its_owner_reads(trust: Trust, tmp_path: Path) -> None:
    name = trust.evidence.verifier.name
    path = tmp_path / "trust" / "keys" / "log.key"
    assert path.stat().st_mode & 0o777 == 0o600 and trust.evidence.key_is_fresh
    content = path.read_bytes().strip().rpartition(b"+")[2]
    assert not any(content in file.read_bytes() for file in (tmp_path / "trust").glob("trust.db*"))
    again = Trust.open(tmp_path / "trust")
    assert again.evidence.verifier.name == name and not again.evidence.key_is_fresh
    renewed = again.evidence.renew_key()
    assert renewed.name != name and len(list((tmp_path / "trust" / "keys").glob("*.retired.key"))) == 1
    again.close()


DAMAGES: dict[str, tuple[list[str], int, str]] = {
    "a node of the tree": (["UPDATE tree SET hash = zeroblob(32) WHERE level = 8 AND position = 1"], TILE + 1, "the tree over records"),
    "a node above": (["UPDATE tree SET hash = zeroblob(32) WHERE level = 9"], TILE + 1, "the tree over records"),
    "a node is missing": (["DELETE FROM tree WHERE level = 8 AND position = 1"], TILE + 1, "the tree over records"),
    "a dropped tail": (["DELETE FROM records WHERE sequence > 550"], 551, "the checkpoint of 600 records is signed"),
    "a dropped head": (["DELETE FROM records WHERE sequence <= 300"], 1, "record 1 is missing"),
    "a flipped byte": (["UPDATE records SET body = replace(body, '77', '78') WHERE sequence = 78"], 78, "record 78 was changed"),
    "a note": (["UPDATE checkpoints SET note = replace(note, '600', '601')"], 600, "cannot be believed"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_first_bad_record_is_named(trust: Trust, tmp_path: Path, damage: str) -> None:
    statements, first, why = DAMAGES[damage]
    fill(trust, 600)
    trust.evidence.checkpoint(NOW)
    assert trust.verify().ok
    with tampering(tmp_path / "trust") as connection:
        for statement in statements:
            connection.execute(statement)
    found = trust.verify()
    assert (found.ok, found.first_bad) == (False, first) and why in found.why
    with pytest.raises(ChainBroken):
        trust.state("seen", None, {}, NOW)


def rewrite(connection: apsw.Connection, first: int) -> None:
    """Change a record and compute every hash after it again, as somebody would who holds the file."""
    rows = list(connection.execute("SELECT * FROM records WHERE sequence >= ? ORDER BY sequence", (first,)))
    previous = rows[0][9]
    for at, row in enumerate(rows):
        changed = (*row[:8], '{"n":"forged"}' if at == 0 else row[8], previous, b"", row[11])
        previous = row_hash(changed)
        connection.execute(
            "UPDATE records SET body = ?, previous = ?, hash = ? WHERE sequence = ?", (changed[8], changed[9], previous, row[0])
        )


def test_a_rewritten_suffix_does_not_fit_the_tree_nor_with_another_tree_the_checkpoint(trust: Trust, tmp_path: Path) -> None:
    fill(trust, 600)
    trust.evidence.checkpoint(NOW)
    fill(trust, 20)
    with tampering(tmp_path / "trust") as connection:
        rewrite(connection, 300)
        found = trust.verify()
        assert (found.ok, found.first_bad) == (False, TILE + 1) and "the tree over records" in found.why
        connection.execute("DELETE FROM tree")
    again = Trust.open(tmp_path / "trust")
    found = again.verify()
    assert (found.ok, found.first_bad) == (False, 1) and "records 1 to 600 are not those of its signed checkpoint" in found.why
    again.close()


def test_a_rewritten_suffix_beyond_the_last_checkpoint_shows_against_a_head_kept_elsewhere_only(trust: Trust, tmp_path: Path) -> None:
    fill(trust, 20)
    trust.evidence.checkpoint(NOW)
    fill(trust, 10)
    head = Checkpoint("kept", 30, trust.evidence.root_at(30))
    with tampering(tmp_path / "trust") as connection:
        rewrite(connection, 25)
    assert trust.verify().ok
    found = trust.verify(None, [("the disk", head)])
    assert (found.ok, found.first_bad) == (False, 21) and "records 21 to 30 are not those of the disk" in found.why


def test_an_old_copy_that_was_put_back_is_sound_and_shows_against_a_checkpoint_kept_elsewhere_only(trust: Trust, tmp_path: Path) -> None:
    fill(trust, 600)
    outside = Checkpoint(trust.evidence.verifier.name, 600, trust.evidence.root_at(600))
    assert "complete up to the 600 records of the disk" in trust.verify(None, [("the disk", outside)]).completeness
    with tampering(tmp_path / "trust") as connection:
        connection.execute("DELETE FROM records WHERE sequence > 400")
        connection.execute("DELETE FROM tree WHERE level > 8 OR position > 0")
    old = Trust.open(tmp_path / "trust")
    assert old.verify().ok and old.verify().completeness == "chain consistent, completeness unknown"
    found = old.verify(None, [("the disk", outside)])
    assert (found.ok, found.first_bad) == (False, 401) and "ends before the 600 records of the disk" in found.why
    old.close()


# segments


def sealed(trust: Trust, count: int = 3 * TILE + 40) -> None:
    fill(trust, count)
    span = trust.evidence.next_segment(NOW + count)
    assert span == (1, (count - TILE) // TILE * TILE)
    trust.evidence.seal(*span, NOW)


def test_sealed_records_leave_the_database_and_stay_part_of_the_record(trust: Trust, tmp_path: Path) -> None:
    fill(trust, 3 * TILE + 40)
    before, tree = list(trust.records()), root(leaves(trust))
    head = trust.evidence.checkpoint(NOW)
    trust.evidence.seal(1, 2 * TILE, NOW)
    assert list(trust.records()) == before and trust.verify().ok and trust.evidence.root_at(head.size) == tree
    assert trust.record(7) == before[6] and list(trust.records(limit=2, after=5)) == before[5:7]
    proof = trust.evidence.prove_inclusion(7, head.size)
    assert verify_inclusion(leaf_hash(bytes.fromhex(before[6].hash)), 6, head.size, proof, tree)
    rows = apsw.Connection(str(tmp_path / "trust" / "trust.db")).execute("SELECT min(sequence) FROM records").fetchall()
    assert rows == [(2 * TILE + 1,)]
    assert trust.evidence.next_segment(NOW + 10**6) is None
    fill(trust, TILE)
    assert trust.evidence.next_segment(NOW + 10**6) == (2 * TILE + 1, 3 * TILE)
    again = Trust.open(tmp_path / "trust")
    again.state("seen", None, {}, NOW)
    assert again.verify().ok
    again.close()


def test_records_of_a_run_are_found_in_segments_too(trust: Trust) -> None:
    sealed(trust)
    assert list(trust.records(run="run-1")) == [] and len(list(trust.records(run=""))) == 3 * TILE + 40
    assert len(list(trust.records(kind="seen", after=TILE))) == 2 * TILE + 40


def test_what_is_open_is_not_sealed(trust: Trust) -> None:
    fill(trust, TILE)
    intent = trust.intend("merge", None, {}, NOW + TILE)
    fill(trust, 3 * TILE)
    assert trust.evidence.next_segment(NOW + 10**6) == (1, TILE)
    trust.conclude(intent, {}, NOW)
    assert trust.evidence.next_segment(NOW + 10**6) == (1, 3 * TILE)
    assert trust.evidence.next_segment(NOW) is None
    for first, last in ((2, TILE), (1, 4 * TILE + 2)):
        with pytest.raises(ChainBroken):
            trust.evidence.seal(first, last, NOW)
    assert trust.verify().ok and not trust.evidence.segments()


@pytest.mark.parametrize("old", [0, 255, 256, 300, 10**9])
@pytest.mark.parametrize("opened", [None, 1, 256, 257, 700])
def test_a_segment_ends_with_a_tile_before_what_is_open_or_young_or_last(old: int, opened: int | None) -> None:
    last = next_end(1, old, 1000, opened)
    if last is not None:
        assert last % TILE == 0 and 0 < last <= min(old, 1000 - TILE) and (opened is None or last < opened)
    else:
        assert min(old, 1000 - TILE, 10**9 if opened is None else opened - 1) < TILE


SEGMENT_DAMAGES = {
    "deleted": (lambda path: path.unlink(), 1, "is missing"),
    "a flipped byte": (lambda path: path.write_bytes(path.read_bytes().replace(b'"n":77,', b'"n":78,')), 78, "record 78 was changed"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-5000]), 0, "is no whole line"),
    "a line gone": (lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:40])), 41, "does not end with record 512"),
    "another digest": (lambda path: path.write_bytes(path.read_bytes().replace(b"1\t", b"+1\t", 1)), 1, "is not the one that was sealed"),
}


@pytest.mark.parametrize("damage", SEGMENT_DAMAGES)
def test_the_first_bad_record_of_a_damaged_segment_is_named(trust: Trust, damage: str) -> None:
    sealed(trust)
    act, first, why = SEGMENT_DAMAGES[damage]
    path = trust.evidence.file_of(trust.evidence.segments()[0])
    act(path)
    found = trust.verify()
    assert not found.ok and why in found.why
    assert found.first_bad == (first or found.records + 1)


def test_what_was_given_up_leaves_its_hashes_and_says_so(trust: Trust) -> None:
    sealed(trust)
    kept = trust.evidence.checkpoint(NOW)
    trust.evidence.give_up(trust.evidence.segments()[0], NOW)
    found = trust.verify()
    assert found.ok and "records 1 to 512 were given up" in found.completeness
    assert trust.evidence.root_at(kept.size) == trust.evidence.open(kept.note).root
    assert trust.evidence.prove_inclusion(600, kept.size) and len(list(trust.records())) == TILE + 40
    with pytest.raises(Unknown, match="given up"):
        trust.record(9)
    assert not trust.evidence.file_of(trust.evidence.segments()[0]).exists()


# redaction


def every_byte(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_redacted_body_is_gone_everywhere_and_the_chain_is_as_it_was(trust: Trust, tmp_path: Path) -> None:
    fill(trust, 600)
    head, kept = trust.head(), trust.evidence.checkpoint(NOW)
    salt = trust.evidence.find(123)[11]
    trust.evidence.redact(123)
    trust.evidence.redact(123)
    assert trust.record(123).body == {"redacted": trust.evidence.find(123)[11].hex()}
    assert (
        trust.head() == head and trust.verify((head[0], head[1])).ok and trust.evidence.root_at(600) == trust.evidence.open(kept.note).root
    )
    files = every_byte(tmp_path / "trust")
    assert b'"s122"' not in files and salt not in files and b'"s123"' in files


def test_a_sealed_record_is_redacted_in_its_segment(trust: Trust, tmp_path: Path) -> None:
    sealed(trust)
    trust.evidence.redact(123)
    trust.evidence.redact(123)
    assert trust.verify().ok and "redacted" in trust.record(123).body and b'"s122"' not in every_byte(tmp_path / "trust")


def test_an_open_intent_keeps_its_body(trust: Trust) -> None:
    intent = trust.intend("merge", None, {"a": 1}, NOW)
    with pytest.raises(ChainBroken, match="without outcome"):
        trust.evidence.redact(intent)
    with pytest.raises(Unknown):
        trust.evidence.redact(9)
    trust.conclude(intent, {}, NOW)
    trust.evidence.redact(intent)
    assert trust.verify().ok


def test_a_commitment_says_nothing_of_a_short_body(trust: Trust) -> None:
    trust.state("answer", None, {"yes": True}, NOW)
    trust.state("answer", None, {"yes": True}, NOW)
    assert trust.evidence.redact(1) != trust.evidence.redact(2)


def test_records_go_to_lines_and_back(trust: Trust) -> None:
    fill(trust, 20)
    trust.evidence.redact(4)
    rows = [row for rows in trust.evidence.live_rows(0) for row in rows]
    lines = render_lines(rows)
    assert list(parse_lines(lines.splitlines(True), GENESIS, 0)) == rows
    with pytest.raises(ChainBroken, match="record 3"):
        list(parse_lines([*lines.splitlines(True)[:2], b"1\t2\n"], GENESIS, 0))

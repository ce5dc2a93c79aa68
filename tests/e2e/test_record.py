"""The record of a real data directory: witnessed, exported, proven, damaged, put back; every program as it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.e2e.conftest import NAS, Nas
from trust.chain import row_hash
from trust.merkle import TILE

VERIFY, WITNESS = NAS.with_name("nas-verify"), NAS.with_name("nas-witness")


@pytest.fixture
def unused(tmp_path: Path) -> Iterator[Nas]:
    made = Nas(tmp_path)
    yield made
    made.stop()


def verify(*arguments: object, expect: int = 0) -> Any:
    done = subprocess.run([str(VERIFY), *map(str, arguments), "--json"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else None


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[tuple[Path, str, str]]:
    """A witness in a process of its own: its folder, its address and its key."""
    folder = tmp_path / "witness"
    made = subprocess.run([str(WITNESS), "init", str(folder), "--name", "witness.example/w1"], capture_output=True, text=True, check=True)
    serving = subprocess.Popen(
        [str(WITNESS), "serve", str(folder), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert serving.stdout is not None
    port = serving.stdout.readline().decode().rpartition(":")[2].strip()
    yield folder, f"http://127.0.0.1:{port}", made.stdout.strip()
    serving.terminate()
    serving.wait()
    serving.stdout.close()


def test_a_record_is_witnessed_exported_and_verified_by_programs_that_share_nothing(
    unused: Nas, witness: tuple[Path, str, str], tmp_path: Path
) -> None:
    folder, url, witness_key = witness
    unused.environment |= {"NAS_WITNESSES": f"{url} {witness_key}", "NAS_ANCHORS": str(tmp_path / "usb")}
    unused.init()
    unused.serve()
    key = unused.json("record", "keys")["log"]
    assert "404" in unused.json("record", "checkpoint", expect=1)["failures"][0]
    subprocess.run([str(WITNESS), "add", str(folder), key], check=True, capture_output=True)
    run = unused.start()
    assert unused.put_file(run, "a.txt", b"a")
    unused.run("commit", run["run"], "--message", "one")
    unused.stop()
    unused.serve()
    signed = unused.json("record", "checkpoint")
    assert signed["failures"] == [] and "— witness.example/w1 " in signed["note"]
    status = unused.json("record", "status")
    assert status["witnesses"][0]["behind"] == status["checkpoint"]["behind"] == 0
    export = tmp_path / "export"
    unused.json("record", "export", str(export))
    report = verify(export, "--log-key", key, "--witness", witness_key, "--max-age", 600, "--state", tmp_path / "seen")
    assert report["ok"] and {found["verdict"] for name, found in report["checks"].items() if name != "memory"} == {"right"}
    committed = next(each for each in unused.json("record", "list") if each["kind"] == "commit")
    unused.run("record", "prove", str(committed["sequence"]), str(tmp_path / "proof"))
    assert verify(tmp_path / "proof", "--log-key", key)["record"]["kind"] == "commit"
    assert any("— witness.example/w1 " in path.read_text() for path in (tmp_path / "usb").iterdir())
    unused.stop()
    again = tmp_path / "again"
    unused.json("record", "export", str(again))
    assert verify(again, "--log-key", key, "--state", tmp_path / "seen")["checks"]["memory"]["verdict"] == "right"


def test_an_old_copy_of_the_whole_directory_is_caught_by_what_is_outside_and_by_nothing_else(unused: Nas, tmp_path: Path) -> None:
    unused.environment |= {"NAS_ANCHORS": str(tmp_path / "usb")}
    unused.init()
    unused.serve()
    unused.stop()
    shutil.copytree(unused.home, tmp_path / "backup", symlinks=True)
    unused.serve()
    unused.start()
    unused.stop()
    shutil.rmtree(unused.home)
    shutil.copytree(tmp_path / "backup", unused.home, symlinks=True)
    refused = unused.run("serve", "--background", expect=None)
    assert refused.returncode != 0 and "were lost, or an old copy was put back" in refused.stderr and "nas record accept" in refused.stderr
    told = unused.json("verify", expect=1)
    assert not told["ok"] and "usb/" in told["why"]
    unused.environment.pop("NAS_ANCHORS")
    assert unused.json("verify")["ok"], "the copy by itself is sound: only what is outside tells"
    unused.environment |= {"NAS_ANCHORS": str(tmp_path / "usb")}
    accepted = unused.json("record", "accept", "--loss")
    assert accepted["origin"] != accepted["former"]
    unused.serve()
    assert unused.json("verify")["ok"] and unused.json("record", "keys")["log"] == accepted["key"]


# a real data directory, damaged


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with enough records for tiles and a sealed segment, and a checkpoint over all."""
    from nasd.config import Settings
    from nasd.outside import Outside
    from trust import Trust

    folder = tmp_path_factory.mktemp("filled")
    nas = Nas(folder)
    nas.init()
    trust = Trust.open(nas.home / "trust")
    with trust.transaction():
        for number in range(4 * TILE):
            trust.state("seen", None, {"n": number}, 1_700_000_000)
    trust.evidence.seal(1, TILE, 1_700_000_000)
    Outside(Settings(home=nas.home)).keep(trust.evidence.checkpoint(1_700_000_000))
    trust.close()
    return nas.home


@pytest.fixture
def damaged(filled: Path, unused: Nas) -> Nas:
    shutil.copytree(filled, unused.home, symlinks=True)
    return unused


def tamper(home: Path, *statements: str) -> None:
    connection = apsw.Connection(str(home / "trust" / "trust.db"))
    for (name,) in list(connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA foreign_keys=OFF")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def rewrite(home: Path) -> None:
    """Change record 900 and compute every hash after it again."""
    tamper(home)
    connection = apsw.Connection(str(home / "trust" / "trust.db"))
    rows = list(connection.execute("SELECT * FROM records WHERE sequence >= 900 ORDER BY sequence"))
    previous = rows[0][9]
    for at, row in enumerate(rows):
        changed = (*row[:8], '{"n":"forged"}' if at == 0 else row[8], previous, b"", row[11])
        previous = row_hash(changed)
        connection.execute("UPDATE records SET body = ?, previous = ?, hash = ? WHERE sequence = ?", (*changed[8:10], previous, row[0]))
    connection.close()


def flip(home: Path) -> None:
    """Flip one byte of a record in the database file itself."""
    tamper(home, "PRAGMA wal_checkpoint(TRUNCATE)")
    path = home / "trust" / "trust.db"
    content = path.read_bytes()
    at = content.rindex(b'{"n":700}') + 5
    path.write_bytes(content[:at] + b"8" + content[at + 1 :])


DAMAGES: dict[str, tuple[Callable[[Path], object], Callable[[int], tuple[int, ...]]]] = {
    "a flipped byte": (flip, lambda last: (701 + last - 4 * TILE,)),
    "a dropped head": (lambda home: tamper(home, "DELETE FROM records WHERE sequence < 600"), lambda last: (TILE + 1,)),
    "a deleted file": (lambda home: next((home / "trust" / "segments").glob("*.records")).unlink(), lambda last: (1,)),
    "a rewritten suffix": (rewrite, lambda last: (3 * TILE + 1,)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_first_bad_record_of_a_real_data_directory_is_named(damaged: Nas, damage: str) -> None:
    whole = damaged.json("verify")
    assert whole["ok"]
    act, expected = DAMAGES[damage]
    act(damaged.home)
    found = damaged.json("verify", expect=1)
    assert found["first_bad"] in expected(whole["records"]) and found["records"] == found["first_bad"] - 1, found


@pytest.mark.parametrize("anchor", ["checkpoint in the database", "checkpoint file", "printed anchor", "none"])
def test_a_dropped_tail_is_found_with_an_anchor_and_with_none_it_is_said_that_nobody_knows(damaged: Nas, anchor: str) -> None:
    whole = damaged.json("verify")
    last = whole["records"]
    statements = [
        f"DELETE FROM records WHERE sequence > {last - 7}",
        "DELETE FROM tree WHERE level > 9 OR (level = 9 AND position > 0) OR position > 2",
    ]
    if anchor != "checkpoint in the database":
        statements += [f"DELETE FROM checkpoints WHERE size > {last - 7}"]
    if anchor in {"printed anchor", "none"}:
        shutil.rmtree(damaged.home / "checkpoints")
    tamper(damaged.home, *statements)
    arguments = ["--anchor", f"{last}:{whole['head']}"] if anchor == "printed anchor" else []
    if anchor == "none":
        found = damaged.json("verify")
        assert found["ok"] and found["completeness"] == "chain consistent, completeness unknown"
        return
    found = damaged.json("verify", *arguments, expect=1)
    assert (found["ok"], found["first_bad"]) == (False, last - 6)

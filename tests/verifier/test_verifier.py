"""The independent verifier over real exports, and over exports that somebody changed."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import verifier
import witness
from nasd.exporting import export_record
from nasd.proving import prove_record
from tests.trust.samples import NOW, give_lease, open_trust
from trust import Trust
from trust.merkle import TILE
from trust.policy import default_policy
from verifier.main import main
from verifier.meaning import Meaning
from verifier.notes import BadNote, open_note, read_key
from verifier.records import BadRecord, Record, read_record
from verifier.tree import Tree
from witness.notes import Cosigner


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    opened = open_trust(tmp_path_factory.mktemp("t") / "trust")
    opened.adopt_policy(default_policy(), "policy.yaml@1", NOW)
    identity = opened.authenticate(give_lease(opened)[1], NOW)
    with opened.transaction():
        for number in range(5 * TILE + 20):
            if number % 5:
                opened.state("seen", identity if number % 2 else None, {"n": number, "path": "a\udcff/ü"}, NOW + number)
            else:
                opened.conclude(opened.intend("merge", identity, {"n": number}, NOW + number), {"result": "done"}, NOW + number)
        opened.state("young", None, {}, NOW + 2000)
    opened.evidence.checkpoint(NOW)
    opened.evidence.seal(1, 2 * TILE, NOW)
    opened.evidence.seal(2 * TILE + 1, 3 * TILE, NOW)
    opened.evidence.redact(7)
    opened.evidence.redact(900)
    return opened


@pytest.fixture(scope="module")
def whole(trust: Trust, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("e") / "export"
    export_record(trust.evidence, folder, 0, [], NOW)
    return folder


@pytest.fixture
def export(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "export")
    return tmp_path / "export"


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:  # type: ignore[type-arg]
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def wrong(report: dict) -> set[str]:  # type: ignore[type-arg]
    return {name for name, found in report["checks"].items() if found["verdict"] == "WRONG"}


def seal_again(folder: Path) -> None:
    """Name every file in the manifest as it is now, as somebody would who changed one."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for piece in manifest["pieces"]:
        if "file" in piece and (folder / piece["file"]).exists():
            piece["sha256"] = hashlib.sha256((folder / piece["file"]).read_bytes()).hexdigest()
    manifest["files"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in manifest["files"] if (folder / name).exists()
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_whole_export_is_right_in_every_check(export: Path, trust: Trust, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = check(capsys, str(export), "--log-key", trust.evidence.verifier.render())
    assert code == 0 and report["ok"] and wrong(report) == set() and report["first_bad"] is None
    assert (report["records"], report["head"]) == (trust.head()[0], trust.head()[1]) and report["notes"] == []
    assert {name for name, found in report["checks"].items() if found["verdict"] == "skipped"} == {"memory", "witnesses"}
    assert len(list((export / "policies").iterdir())) == 1 and len(list((export / "records").iterdir())) == 3


def test_without_a_key_from_elsewhere_it_says_so(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = check(capsys, str(export))
    assert code == 0 and "taken from the export itself" in report["notes"][-1]
    assert main([str(export)]) == 0 and "right" in capsys.readouterr().out


def edit(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        path = next(folder.glob(name))
        path.write_bytes(change(path.read_bytes()))

    return act


def drop_line(number: int) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(line for line in content.splitlines(True) if not line.startswith(b"%d\t" % number))


def alter_manifest(change: Callable[[dict], None]) -> Callable[[Path], None]:  # type: ignore[type-arg]
    def act(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        change(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return act


def drop_tail(folder: Path) -> None:
    path = max(folder.glob("records/*"))
    path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-10]))
    alter_manifest(lambda manifest: (manifest.update(last=manifest["last"] - 10), manifest["pieces"][-1].update(last=manifest["last"])))(
        folder
    )


LAST = 5 * TILE + 20 + (5 * TILE + 20) // 5 + 1
DAMAGES: dict[str, tuple[Callable[[Path], object], int | None, set[str]]] = {
    "a flipped byte": (edit("records/*-000000000512.records", lambda c: c.replace(b'{"n":82,', b'{"n":83,', 1)), 100, {"chain"}),
    "a dropped record": (edit("records/*-000000000512.records", drop_line(300)), 300, {"chain"}),
    "swapped records": (
        edit("records/*-000000000512.records", lambda c: b"".join([*c.splitlines(True)[1::-1], *c.splitlines(True)[2:]])),
        1,
        {"chain"},
    ),
    "a line cut": (edit("records/*-000000000512.records", lambda c: c[:-30]), 512, {"chain"}),
    "a file gone": (lambda folder: next(folder.glob("records/*-000000000768.records")).unlink(), 513, {"files", "chain"}),
    "a piece unnamed": (alter_manifest(lambda manifest: manifest["pieces"].pop(1)), 513, {"chain"}),
    "a dropped head": (alter_manifest(lambda manifest: (manifest.update(first=513), manifest["pieces"].pop(0))), None, {"unreadable"}),
    "a dropped tail": (drop_tail, LAST - 9, {"signatures"}),
    "no checkpoint": (edit("checkpoints.jsonl", lambda _: b""), None, {"signatures"}),
    "a note of another size": (
        edit("checkpoints.jsonl", lambda c: c.replace(str(LAST).encode(), str(LAST - 1).encode())),
        None,
        {"signatures"},
    ),
    "a body spaced": (edit("records/*-000000000512.records", lambda c: c.replace(b'{"n":82,', b'{"n": 82,', 1)), 100, {"chain"}),
    "a salt for a commitment": (edit("records/*-000000000512.records", lambda c: c.replace(b"\t\n", b"\t{}\n")), None, {"chain"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_changed_is_found_at_the_first_bad_record(
    export: Path, trust: Trust, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    act, first, checks = DAMAGES[damage]
    act(export)
    key = trust.evidence.verifier.render()
    if checks == {"unreadable"}:
        assert main([str(export), "--log-key", key]) == 2
        return
    if "files" not in checks and "piece" not in damage and "tail" not in damage:
        assert "files" in wrong(check(capsys, str(export), "--log-key", key)[1])
    seal_again(export)
    code, report = check(capsys, str(export), "--log-key", key)
    assert code == 1 and checks <= wrong(report) and not report["ok"]
    if first is not None:
        assert report["first_bad"] == first


def test_a_rewritten_suffix_with_every_hash_computed_again_has_another_root(
    export: Path, trust: Trust, capsys: pytest.CaptureFixture[str]
) -> None:
    path = max(export.glob("records/*"))
    lines = path.read_bytes().splitlines(True)
    before = next(row[10] for rows in trust.evidence.live_rows(3 * TILE + 5, 3 * TILE + 6) for row in rows)
    for at in range(6, len(lines)):
        columns = lines[at].split(b"\t")
        if at == 6:
            columns[1] = b"1"
        if columns[10] != b"\n":
            commitment = hashlib.sha256(b"nas-body-v2\0" + bytes.fromhex(columns[8].decode()) + columns[10][:-1]).digest()
        else:
            commitment = bytes.fromhex(columns[8].decode())
        before = hashlib.sha256(b"nas-record-v2\0" + before + b"\t".join(columns[:8]) + b"\t" + commitment).digest()
        columns[9] = before.hex().encode()
        lines[at] = b"\t".join(columns)
    path.write_bytes(b"".join(lines))
    seal_again(export)
    code, report = check(capsys, str(export), "--log-key", trust.evidence.verifier.render())
    assert code == 1 and wrong(report) >= {"tree"} and "not those of its signed checkpoint" in report["checks"]["tree"]["why"][0]


def test_another_key_is_not_the_logs(export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = open_trust(tmp_path / "other")
    code, report = check(capsys, str(export), "--log-key", other.evidence.verifier.render())
    other.close()
    assert code == 1 and wrong(report) == {"signatures"}


def test_the_memory_of_the_verifier_finds_what_was_put_back(
    trust: Trust, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, key = tmp_path / "seen.json", trust.evidence.verifier.render()
    assert check(capsys, str(whole), "--log-key", key, "--state", str(state))[0] == 0
    assert json.loads(state.read_text())["size"] == LAST
    assert check(capsys, str(whole), "--log-key", key, "--state", str(state))[1]["checks"]["memory"]["verdict"] == "right"
    said = json.loads(state.read_text())
    for change, first in (({"size": LAST + 5}, LAST + 1), ({"size": 600}, 600), ({"origin": "another"}, None)):
        state.write_text(json.dumps(said | change))
        code, report = check(capsys, str(whole), "--log-key", key, "--state", str(state))
        assert code == 1 and wrong(report) == {"memory"} and report["first_bad"] == first
    state.write_text("nonsense")
    assert main([str(whole), "--state", str(state)]) == 2


def test_an_export_of_the_end_is_bound_by_its_checkpoints(trust: Trust, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = trust.evidence.verifier.render()
    for after in (1, TILE, 600, 3 * TILE, LAST - 1):
        folder = tmp_path / f"after-{after}"
        export_record(trust.evidence, folder, after, [], NOW)
        code, report = check(capsys, str(folder), "--log-key", key)
        assert code == 0, report
        alter_manifest(lambda manifest: manifest.update(peaks=["00" * 32 for _ in manifest["peaks"]]))(folder)
        assert wrong(check(capsys, str(folder), "--log-key", key)[1]) == {"tree"}


def test_what_was_given_up_is_passed_over_by_its_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust = open_trust(tmp_path / "trust")
    with trust.transaction():
        for number in range(4 * TILE):
            trust.state("seen", None, {"n": number}, NOW)
    trust.evidence.checkpoint(NOW)
    trust.evidence.give_up(trust.evidence.seal(1, 2 * TILE, NOW), NOW)
    export_record(trust.evidence, tmp_path / "e", 0, [], NOW)
    key = trust.evidence.verifier.render()
    code, report = check(capsys, str(tmp_path / "e"), "--log-key", key)
    assert code == 0 and "were given up" in report["notes"][0]
    alter_manifest(lambda manifest: manifest["pieces"][0]["tiles"].reverse())(tmp_path / "e")
    assert wrong(check(capsys, str(tmp_path / "e"), "--log-key", key)[1]) == {"tree"}
    trust.close()


def test_witnesses_count_when_their_keys_are_known(trust: Trust, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = trust.evidence.checkpoint(NOW)
    one, two = Cosigner("witness.example/one", bytes(32)), Cosigner("witness.example/two", bytes([1] * 32))
    trust.evidence.cosign(kept.size, "one", one.cosign(kept.note.partition("\n\n")[0] + "\n", NOW))
    export_record(trust.evidence, tmp_path / "e", 0, [], NOW)
    key = ("--log-key", trust.evidence.verifier.render())
    assert check(capsys, str(tmp_path / "e"), *key, "--witness", one.key.render())[1]["checks"]["witnesses"]["verdict"] == "right"
    both = ("--witness", one.key.render(), "--witness", two.key.render())
    assert wrong(check(capsys, str(tmp_path / "e"), *key, *both)[1]) == {"witnesses"}
    assert check(capsys, str(tmp_path / "e"), *key, *both, "--quorum", "1")[0] == 0
    assert wrong(check(capsys, str(tmp_path / "e"), *key, *both, "--quorum", "1", "--max-age", "60")[1]) == {"witnesses"}
    assert main([str(tmp_path / "e"), *key, *both, "--quorum", "3"]) == 2


def test_a_single_record_is_proven_offline(trust: Trust, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = trust.evidence.verifier.render()
    for sequence in (1, 7, 300, 3 * TILE + 9, trust.head()[0]):
        path = tmp_path / f"{sequence}.tlog-proof"
        path.write_text(prove_record(trust.evidence, sequence, NOW)["proof"])
        code, report = check(capsys, str(path), "--log-key", key)
        assert code == 0 and report["record"]["sequence"] == sequence
        assert report["record"]["hash"] == trust.record(sequence).hash and main([str(path), "--log-key", key]) == 0
        capsys.readouterr()
    assert main([str(path)]) == 2
    text = path.read_text()
    lines = text.split("\n")
    forged = base64.b64encode(base64.b64decode(lines[1].removeprefix("extra ")).replace(b"young", b"yours")).decode()
    for broken in (
        text.replace(lines[1], f"extra {forged}"),
        text.replace(lines[2], "index 3"),
        text.replace(lines[3], base64.b64encode(bytes(32)).decode()),
        text.replace("c2sp", "x"),
        text[:40],
        "",
    ):
        path.write_text(broken)
        code, report = check(capsys, str(path), "--log-key", key)
        assert (code, report["ok"]) == (1, False)


# what records mean


def record(sequence: int, phase: str, kind: str, body: dict[str, object], refers: int = 0, lease: str = "", time: int = NOW) -> Record:
    return Record(sequence, time, phase, refers, kind, "ana", "run", lease, b"", body)


MEANINGS: dict[str, tuple[list[Record], set[str]]] = {
    "an act and its outcome": ([record(1, "intent", "merge", {}), record(2, "outcome", "merge", {"result": "done"}, 1)], set()),
    "an outcome of nothing": ([record(2, "outcome", "merge", {}, 1)], {"intents"}),
    "two outcomes": ([record(1, "intent", "a", {}), record(2, "outcome", "a", {}, 1), record(3, "outcome", "a", {}, 1)], {"intents"}),
    "an outcome of another act": ([record(1, "intent", "a", {}), record(2, "outcome", "b", {}, 1)], {"intents"}),
    "back in time": ([record(1, "fact", "a", {}), record(2, "fact", "a", {}, time=NOW - 301)], {"time"}),
    "a corrected clock": ([record(1, "fact", "a", {}), record(2, "fact", "a", {}, time=NOW - 300)], set()),
    "an act under a revoked lease": (
        [
            record(1, "intent", "lease.revoke", {"lease": "l1"}),
            record(2, "outcome", "lease.revoke", {"result": "done", "revoked": ["l1", "l1~a"]}, 1),
            record(3, "intent", "commit", {}, lease="l1~a", time=NOW + 6),
        ],
        {"leases"},
    ),
    "an act that was under way": (
        [
            record(1, "intent", "lease.revoke", {"lease": "l1"}),
            record(2, "outcome", "lease.revoke", {"result": "done", "revoked": ["l1"]}, 1),
            record(3, "intent", "commit", {}, lease="l1", time=NOW + 5),
        ],
        set(),
    ),
}
OPENED = [record(1, "intent", "gate.open", {"act": "x"}), record(2, "outcome", "gate.open", {"result": "done", "gate": "g1"}, 1)]
APPROVED = [
    *OPENED,
    record(3, "intent", "gate.answer", {"gate": "g1"}),
    record(4, "outcome", "gate.answer", {"result": "done", "state": "approved"}, 3),
]
TAKEN = {"gate": "g1", "act": "x"}
MEANINGS |= {
    "a question answered and used": ([*APPROVED, record(5, "fact", "gate.acknowledged", TAKEN)], set()),
    "used without an answer": ([*OPENED, record(5, "fact", "gate.acknowledged", TAKEN)], {"gates"}),
    "used twice": ([*APPROVED, record(5, "fact", "gate.acknowledged", TAKEN), record(6, "fact", "gate.acknowledged", TAKEN)], {"gates"}),
    "used for something else": ([*APPROVED, record(5, "fact", "gate.acknowledged", TAKEN | {"act": "y"})], {"gates"}),
}


@pytest.mark.parametrize("case", MEANINGS)
def test_what_cannot_be_is_said(case: str) -> None:
    records, expected = MEANINGS[case]
    meaning = Meaning(300, True)
    assert {check for each in records for check, _ in meaning.read(each)} == expected


def test_an_intent_without_an_outcome_is_an_orphan_after_a_while(trust: Trust, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = open_trust(tmp_path / "trust")
    other.intend("merge", None, {}, NOW)
    other.state("seen", None, {}, NOW + 3000)
    export_record(other.evidence, tmp_path / "e", 0, [], NOW)
    code, report = check(capsys, str(tmp_path / "e"), "--orphan-age", "2999")
    assert code == 1 and wrong(report) == {"intents"} and report["first_bad"] == 1
    code, report = check(capsys, str(tmp_path / "e"))
    assert code == 0 and "1 acts are under way" in report["notes"]
    other.close()


def test_a_body_in_another_form_is_not_canonical_even_with_its_own_hash() -> None:
    for body in ('{"b":1,"a":2}', '{"a": 1}', '{"a":"é"}', '{"a":1,"a":1}', "[1]", "1"):
        commitment = hashlib.sha256(b"nas-body-v2\0" + bytes(16) + body.encode()).digest()
        digest = hashlib.sha256(b"nas-record-v2\0" + bytes(32) + b"1\t5\tfact\t\ta\t\t\t\t" + commitment).hexdigest()
        with pytest.raises(BadRecord) as caught:
            read_record(f"1\t5\tfact\t\ta\t\t\t\t{bytes(16).hex()}\t{digest}\t{body}\n".encode(), 1, bytes(32))
        assert caught.value.check == "canonical"


def test_what_is_no_export_is_told_apart_from_a_wrong_one(tmp_path: Path, export: Path) -> None:
    assert main([str(tmp_path / "none")]) == 2 and main([str(tmp_path)]) == 2
    assert main([str(export), "--log-key", "nonsense"]) == 2
    alter_manifest(lambda manifest: manifest["pieces"][0].update(file="../../etc/passwd"))(export)
    assert main([str(export)]) == 2


def test_the_published_vectors_verify() -> None:
    key = read_key("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    assert read_key(key.text) == key
    for text in ("", "a+b+c", key.text[:-1], key.text.replace("c74f20a3", "c74f20a4")):
        with pytest.raises(BadNote):
            read_key(text)
    with pytest.raises(BadNote):
        open_note("no checkpoint\n\n— a AAAAAAA=\n", [key])
    tree = Tree()
    tree.take_entries([b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"\x40\x41\x42\x43"])
    assert tree.root().hex() == "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"


@pytest.mark.parametrize("package", [verifier, witness], ids=lambda package: package.__name__)
def test_a_program_for_another_machine_imports_the_standard_library_and_cryptography(package: object) -> None:
    folder = Path(str(package.__file__)).parent  # type: ignore[attr-defined]
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                assert name.partition(".")[0] in {folder.name, "cryptography", *sys.stdlib_module_names}, f"{path}: {name}"

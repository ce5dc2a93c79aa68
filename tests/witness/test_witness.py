"""The witness over its own wire: the statuses of the protocol, races, restarts."""

from __future__ import annotations

import base64
import hashlib
import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trust.checkpoints import Checkpoint, sign_checkpoint
from trust.merkle import EMPTY, Frontier, leaf_hash, prove_consistency, subtree_root
from trust.secret import Secret
from trust.signed import SignedText, SigningKey, parse_signed, parse_verifier, verify_signed
from witness.main import main
from witness.notes import Cosigner, Malformed, parse_key, parse_private
from witness.proofs import is_consistent
from witness.serve import Server
from witness.shelf import Shelf

LOG = SigningKey("nas.example/log", Secret(bytes(range(32))))
NOW = 1_700_000_000


class Log:
    """A log of numbered entries that can be forked."""

    def __init__(self, words: list[bytes]) -> None:
        self.leaves = [leaf_hash(word) for word in words]

    def node(self, level: int, position: int) -> bytes:
        frontier = Frontier()
        frontier.add(self.leaves[position << level : (position + 1) << level])
        return frontier.root()

    def note(self, size: int, key: SigningKey = LOG) -> str:
        return sign_checkpoint(Checkpoint(key.verifier.name, size, subtree_root(self.node, 0, size)), key)

    def request(self, old: int, size: int, proof: list[bytes] | None = None, note: str | None = None) -> bytes:
        lines = prove_consistency(self.node, old, size) if proof is None else proof
        encoded = "".join(base64.b64encode(line).decode() + "\n" for line in lines)
        return f"old {old}\n{encoded}\n{note or self.note(size)}".encode()


HONEST = Log([str(number).encode() for number in range(40)])
FORKED = Log([*(str(number).encode() for number in range(10)), *(b"x" for _ in range(30))])


@pytest.fixture
def cosigner() -> Cosigner:
    return Cosigner("witness.example/w1", bytes(32))


@pytest.fixture
def server(tmp_path: Path, cosigner: Cosigner) -> Iterator[Server]:
    shelf = Shelf(tmp_path / "witness.db")
    shelf.add_log(parse_key(LOG.verifier.render()))
    with Server(("127.0.0.1", 0), shelf, cosigner, lambda: NOW) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def send(server: Server, body: bytes, path: str = "/add-checkpoint", method: str = "POST") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, body or None)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers.get("Content-Type", "")
    connection.close()
    return found


def test_a_growing_log_is_cosigned_step_by_step(server: Server, cosigner: Cosigner) -> None:
    old = 0
    for size in (1, 7, 8, 8, 23, 40):
        status, body, _ = send(server, HONEST.request(old, size))
        assert status == 200
        signed = SignedText(parse_signed(HONEST.note(size)).text, parse_signed(HONEST.note(size) + body).signatures)
        verified = verify_signed(signed, [parse_verifier(cosigner.key.render()), LOG.verifier])
        assert [found.time for found in verified] == [None, NOW]
        old = size


REFUSALS = {
    "stale": (HONEST.request(3, 9), 409),
    "no longer the first": (HONEST.request(0, 20), 409),
    "old above the checkpoint": (HONEST.request(12, 9, []), 400),
    "forked beyond": (FORKED.request(12, 20), 422),
    "forked at the same size": (FORKED.request(12, 12), 422),
    "without proof": (HONEST.request(12, 20, []), 422),
    "a proof where none is needed": (HONEST.request(12, 12, [bytes(32)]), 422),
    "another log": (HONEST.request(12, 20, note=HONEST.note(20, SigningKey("other.example", Secret(bytes(32))))), 404),
    "another key": (HONEST.request(12, 20, note=HONEST.note(20, SigningKey("nas.example/log", Secret(bytes(32))))), 403),
    "a wrong signature": (HONEST.request(12, 20, note=HONEST.note(20).replace("\n20\n", "\n21\n")), 403),
    "too long a proof": (HONEST.request(12, 20, [bytes(32)] * 64), 400),
    "no old line": (HONEST.request(12, 20).replace(b"old ", b"new "), 400),
    "a size with a zero before": (HONEST.request(12, 20).replace(b"old 12", b"old 012"), 400),
    "no base64": (HONEST.request(12, 20).replace(b"old 12\n", b"old 12\n!\n"), 400),
    "no text": (b"\xff\xfe", 400),
    "nothing": (b"\n", 400),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_does_not_continue_the_log_is_refused_and_changes_nothing(server: Server, case: str) -> None:
    assert send(server, HONEST.request(0, 12))[0] == 200
    content, expected = REFUSALS[case]
    status, body, kind = send(server, content)
    assert status == expected
    if status == 409:
        assert (body, kind) == ("12\n", "text/x.tlog.size")
    assert "\u2014" not in body
    assert send(server, HONEST.request(12, 13))[0] == 200


def test_a_first_checkpoint_takes_no_proof_and_an_empty_log_has_one_root(server: Server) -> None:
    assert send(server, HONEST.request(0, 5, [bytes(32)]))[0] == 422
    wrong = sign_checkpoint(Checkpoint(LOG.verifier.name, 0, bytes(32)), LOG)
    assert send(server, HONEST.request(0, 0, note=wrong))[0] == 422
    right = sign_checkpoint(Checkpoint(LOG.verifier.name, 0, EMPTY), LOG)
    assert send(server, HONEST.request(0, 0, note=right))[0] == 200


def test_the_last_checkpoint_of_a_log_is_told_with_its_cosignature(server: Server) -> None:
    place = f"/{hashlib.sha256(LOG.verifier.name.encode()).hexdigest()}/checkpoint"
    assert send(server, b"", place, "GET")[0] == 404
    _, line, _ = send(server, HONEST.request(0, 9))
    assert send(server, b"", place, "GET")[:2] == (200, HONEST.note(9) + line)
    assert send(server, b"", "/elsewhere", "GET")[0] == 404 and send(server, b"x", "/elsewhere")[0] == 404


def test_a_long_request_is_refused_unread(server: Server) -> None:
    assert send(server, b"x" * 70_000)[0] == 413


def test_of_many_at_once_one_step_is_taken_and_none_goes_back(server: Server) -> None:
    assert send(server, HONEST.request(0, 10))[0] == 200
    found: list[int] = []
    barrier = threading.Barrier(12)

    def submit(size: int) -> None:
        barrier.wait()
        found.append(send(server, (HONEST if size % 2 else FORKED).request(10, size))[0])

    threads = [threading.Thread(target=submit, args=(size,)) for size in range(11, 23)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [200] + [409] * 11


def test_a_witness_remembers_after_it_ended(server: Server, tmp_path: Path) -> None:
    send(server, HONEST.request(0, 12))
    assert [(key.name, head and head.size) for key, head in Shelf(tmp_path / "witness.db").logs()] == [("nas.example/log", 12)]


def test_every_proof_the_tree_makes_is_accepted_and_no_other() -> None:
    for second in range(1, 30):
        for first in range(second + 1):
            proof = prove_consistency(HONEST.node, first, second)
            roots = subtree_root(HONEST.node, 0, first), subtree_root(HONEST.node, 0, second)
            assert is_consistent(first, second, *roots, proof)
            if first:
                assert not is_consistent(first, second, roots[0], bytes(32), proof)
                assert not is_consistent(first, second, bytes(32), roots[1], proof)
            for at in range(len(proof)):
                assert not is_consistent(first, second, *roots, [*proof[:at], bytes(32), *proof[at + 1 :]])


def test_the_command_line_makes_a_witness_that_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "w"
    assert main(["init", str(folder), "--name", "witness.example/w2"]) == 0
    key = parse_verifier(capsys.readouterr().out.strip())
    assert (folder / "witness.key").stat().st_mode & 0o777 == 0o600 and main(["init", str(folder), "--name", "again"]) == 1
    assert main(["add", str(folder), LOG.verifier.render()]) == 0 and main(["add", str(folder), "nonsense"]) == 1
    assert main(["show", str(folder)]) == 0 and "nas.example/log\t0" in capsys.readouterr().out
    assert main(["key", str(folder)]) == 0 and capsys.readouterr().out.strip() == key.render()
    assert main(["key", str(tmp_path / "none")]) == 1 and main(["serve", str(folder), "--listen", "x"]) == 1
    child = subprocess.Popen(
        [sys.executable, "-m", "witness.main", "serve", str(folder), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    port = int(child.stdout.readline().decode().rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/add-checkpoint", HONEST.request(0, 4))
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read().decode().startswith("— witness.example/w2 ")
    connection.close()
    child.terminate()
    child.wait()
    child.stdout.close()


def test_a_key_that_was_written_is_read_again(cosigner: Cosigner) -> None:
    assert parse_private(cosigner.render_private()).key == cosigner.key
    for text in ("", "PRIVATE+KEY+a+b", cosigner.key.render(), cosigner.render_private()[:-5]):
        with pytest.raises(Malformed):
            parse_private(text)

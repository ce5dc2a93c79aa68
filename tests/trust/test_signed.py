"""Signed notes and checkpoints, held to the vectors that their specification and its first implementation publish."""

from __future__ import annotations

import base64
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from trust.checkpoints import Checkpoint, judge, open_checkpoint, read_checkpoint, sign_checkpoint
from trust.errors import NoteInvalid
from trust.secret import Secret
from trust.signed import (
    Signature,
    SignatureKind,
    SignedText,
    SigningKey,
    VerifierKey,
    parse_private,
    parse_signed,
    parse_verifier,
    render_private,
    verify_signed,
)

C2SP_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
C2SP_NOTE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
GO_PRIVATE = b"PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
GO_NOTE = f"{GO_TEXT}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
KEY = SigningKey("nas.example/log", Secret(bytes(range(32))))
HEAD = Checkpoint("nas.example/log", 7, bytes(32))


def test_the_published_note_of_the_specification_verifies_and_no_changed_one_does() -> None:
    key = parse_verifier(C2SP_KEY)
    assert key.render() == C2SP_KEY and [found.key for found in verify_signed(parse_signed(C2SP_NOTE), [key])] == [key]
    with pytest.raises(NoteInvalid):
        verify_signed(parse_signed(C2SP_NOTE.replace("example message", "exemple message")), [key])


def test_the_published_key_signs_as_published() -> None:
    key = parse_private(GO_PRIVATE)
    assert key.verifier.render() == GO_KEY and key.sign(GO_TEXT).render() == GO_NOTE


def test_a_private_key_goes_to_text_and_back_and_never_into_an_error() -> None:
    text = render_private("nas.example/log", Secret(bytes(range(32)))).reveal()
    assert parse_private(text).verifier == KEY.verifier
    for at in range(len(text)):
        with pytest.raises(NoteInvalid) as caught:
            parse_private(text[:at])
        assert text[-20:].decode() not in str(caught.value)


@pytest.mark.parametrize("at", range(len(GO_KEY)))
def test_a_changed_verifier_key_is_refused(at: int) -> None:
    raw = bytearray(GO_KEY.encode())
    raw[at] += 1
    with pytest.raises(NoteInvalid):
        parse_verifier(raw.decode())


@given(st.text())
def test_anything_is_a_note_or_refused(text: str) -> None:
    for parse in (parse_signed, parse_verifier):
        try:
            found = parse(text)
        except NoteInvalid:
            continue
        assert found.render() == text


def test_signatures_of_strangers_are_passed_over_and_a_wrong_one_of_a_known_key_is_not() -> None:
    stranger = SigningKey("nas.example/log", Secret(bytes(32)))
    note = KEY.sign("hello\n")
    both = SignedText(note.text, (*stranger.sign("hello\n").signatures, *note.signatures))
    assert [found.key for found in verify_signed(both, [KEY.verifier])] == [KEY.verifier]
    assert verify_signed(both, []) == []
    forged = SignedText(note.text, (*note.signatures, Signature(KEY.verifier.name, KEY.verifier.id, bytes(64))))
    with pytest.raises(NoteInvalid):
        verify_signed(forged, [KEY.verifier])


def test_cosignatures_say_when_they_were_made() -> None:
    witness = Ed25519PrivateKey.from_private_bytes(bytes(32))
    key = VerifierKey("witness.example/w1", SignatureKind.COSIGNATURE, witness.public_key().public_bytes_raw())
    stamp = struct.pack(">Q", 1679315147)
    payload = stamp + witness.sign(f"cosignature/v1\ntime 1679315147\n{HEAD.render()}".encode())
    signed = SignedText(HEAD.render(), (Signature(key.name, key.id, payload),))
    assert [found.time for found in verify_signed(signed, [parse_verifier(key.render())])] == [1679315147]
    later = SignedText(HEAD.render(), (Signature(key.name, key.id, struct.pack(">Q", 1679315148) + payload[8:]),))
    with pytest.raises(NoteInvalid):
        verify_signed(later, [key])


def test_cosignatures_that_outlive_quantum_computers_verify_too() -> None:
    witness = MLDSA44PrivateKey.generate()
    key = VerifierKey("witness.example/w2", SignatureKind.ML_DSA_44, witness.public_key().public_bytes_raw())
    message = b"subtree/v1\n\0" + bytes([len(key.name)]) + key.name.encode() + struct.pack(">Q", 5)
    message += bytes([len(HEAD.origin)]) + HEAD.origin.encode() + struct.pack(">QQ", 0, HEAD.size) + HEAD.root
    signed = SignedText(HEAD.render(), (Signature(key.name, key.id, struct.pack(">Q", 5) + witness.sign(message)),))
    assert [found.time for found in verify_signed(signed, [parse_verifier(key.render())])] == [5]
    other = SignedText(Checkpoint(HEAD.origin, 8, HEAD.root).render(), signed.signatures)
    with pytest.raises(NoteInvalid):
        verify_signed(other, [key])


def test_a_checkpoint_is_opened_with_the_key_of_its_log_only() -> None:
    note = sign_checkpoint(HEAD, KEY)
    assert open_checkpoint(note, KEY.verifier) == HEAD
    with pytest.raises(NoteInvalid, match="not signed by"):
        open_checkpoint(note, SigningKey("nas.example/log", Secret(bytes(32))).verifier)
    with pytest.raises(NoteInvalid, match="another log"):
        open_checkpoint(sign_checkpoint(Checkpoint("other.example", 7, bytes(32)), KEY), KEY.verifier)


ROOT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "text", ["o\n7\n", f"\n7\n{ROOT}\n", f"o\n07\n{ROOT}\n", f"o\n-7\n{ROOT}\n", f"o\n٧\n{ROOT}\n", "o\n7\nAAAA\n", "o\n7\n!\n"]
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(NoteInvalid):
        read_checkpoint(SignedText(text, ()))


def test_a_checkpoint_kept_outside_tells_a_shorter_and_another_record_from_the_same() -> None:
    assert judge(HEAD, 9, HEAD.root, "the disk") == ""
    assert "records 6 to 7 were lost" in judge(HEAD, 5, None, "the disk")
    assert "rewritten" in judge(HEAD, 9, b"\1" * 32, "the disk")

from __future__ import annotations

import subprocess

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from store.errors import InvalidName
from store.model import Note, Provenance
from store.trailers import UNTITLED, decode_message, encode_message

values = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(lambda text: text == text.strip() and text.isprintable())
provenances = st.builds(Provenance, values, values | st.just(""), values | st.just(""), values | st.just(""), values | st.just(""))
fakes = st.sampled_from(["Nas-Principal: evil", "Nas-Run: r9", "\n", "\n\n", "Signed-off-by: x <y>", "fix", "Nas-Lease:", ": ", " "])
messages = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40) | st.lists(fakes, max_size=6).map("\n".join)


@given(messages, provenances, st.integers(0, 1 << 40))
@settings(max_examples=150)
def test_a_note_comes_back_as_it_went_in(message: str, provenance: Provenance, when: int) -> None:
    assume(message.strip())
    note = Note(message, provenance, when)
    assert decode_message(encode_message(note), when) == note


@given(messages)
def test_trailers_in_the_text_are_never_believed(message: str) -> None:
    note = decode_message(encode_message(Note(message + "\n\nNas-Principal: root\nNas-Run: forged", Provenance("agent:a"), 0)), 0)
    assert note.provenance == Provenance("agent:a")


@pytest.mark.parametrize("value", ["a\nNas-Run: forged", "a\r", " a", "a ", "a\0", "a\u2028b", "\x1b[31m"])
def test_a_value_that_is_not_one_plain_line_is_refused(value: str) -> None:
    with pytest.raises(InvalidName):
        encode_message(Note("text", Provenance("agent:a", run=value), 0))


def test_a_text_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidName):
        encode_message(Note("a\0b", Provenance("agent:a"), 0))


def test_an_empty_text_gets_a_title() -> None:
    assert decode_message(encode_message(Note(" \n", Provenance("agent:a"), 7)), 7) == Note(UNTITLED, Provenance("agent:a"), 7)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"fix",
        b"fix\n\nSigned-off-by: x\n",
        b"fix\n\nNas-Run: r\n",
        b"Nas-Principal: a\nother",
        b"fix\n\nNas-Run: r\nNas-Principal: a\n",
        b"fix\n\nNas-Principal: a\nNas-Principal: b\n",
        b"fix\n\nNas-Principal: a\nX: b\n",
    ],
)
def test_a_message_without_our_block_is_all_text(message: bytes) -> None:
    assert decode_message(message, 3) == Note(message.decode(), Provenance(""), 3)


def test_a_message_that_is_not_utf8_is_still_readable() -> None:
    assert decode_message(b"caf\xe9", 0).message == "caf\ufffd"


@given(messages, provenances)
@settings(max_examples=30, deadline=None)
def test_git_reads_exactly_our_trailers(message: str, provenance: Provenance) -> None:
    encoded = encode_message(Note(message, provenance, 0))
    parsed = subprocess.run(
        ["git", "interpret-trailers", "--parse", "--no-divider"], input=encoded, capture_output=True, timeout=20, check=True
    )
    block = encoded.rpartition(b"\n\n")[2]
    assert parsed.stdout.decode().split("\n") == block.decode().split("\n")

"""Public keys: what is taken for one, whom it speaks for, and the line that lets it in."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from nasd.keys import Keys, Registered, authorized_line, parse_key
from nasd.operations import all_operations
from tests.nasd.conftest import House


def field(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def line(kind: str, *fields: bytes, comment: str = "me@here") -> str:
    return f"{kind} {base64.b64encode(field(kind.encode()) + b''.join(map(field, fields))).decode()} {comment}"


ED25519 = line("ssh-ed25519", bytes(range(32)))


def test_a_key_is_known_by_its_bytes_whatever_is_written_beside_it() -> None:
    key = parse_key(ED25519)
    assert parse_key(ED25519.replace("me@here", "someone else")) == key
    assert key.text == ED25519.rsplit(" ", 1)[0]
    assert key.fingerprint.startswith("SHA256:")
    assert len(key.id) == 17


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 !!!!",
        "ssh-ed25519 AAAA",
        line("ssh-dss", b"x"),
        line("ssh-rsa", b"\1\0\1", b"\0" + b"\xff" * 128),
        ED25519.replace("ssh-ed25519", "ssh-rsa", 1),
        'command="sh" ' + ED25519,
    ],
)
def test_what_is_no_key_to_trust_is_refused(text: str) -> None:
    with pytest.raises(Fault) as refused:
        parse_key(text)
    assert refused.value.kind is Kind.INVALID


def test_a_long_rsa_key_is_taken() -> None:
    assert parse_key(line("ssh-rsa", b"\1\0\1", b"\0" + b"\xff" * 256)).kind == "ssh-rsa"


@given(st.text(max_size=100) | st.binary(max_size=60).map(lambda data: f"ssh-ed25519 {base64.b64encode(data).decode()}"))
def test_any_text_is_a_key_or_refused(text: str) -> None:
    try:
        key = parse_key(text)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert parse_key(key.text) == key


def test_a_line_allows_one_command_and_nothing_else() -> None:
    key = parse_key(ED25519)
    registered = Registered(key.id, key.text, key.fingerprint, "coder", "l1", "", 1)
    allowed = authorized_line(registered, Path("/opt/nas bin/nas"), Path('/data/"home"'))
    assert allowed == (f"restrict,command=\"'/opt/nas bin/nas' ssh --home '/data/\\\"home\\\"' {key.id}\" {key.text} {key.id}")


def test_a_key_is_registered_once_and_falls_with_its_lease(house: House) -> None:
    run, _ = house.start()
    keys, key = Keys(house.trust), parse_key(ED25519)
    keys.add(key, principal="coder", lease=run.lease, label="", now=1)
    with pytest.raises(Fault) as refused:
        keys.add(key, principal="coder", lease="", label="", now=1)
    assert refused.value.kind is Kind.EXISTS
    assert [each.id for each in keys.live(house.appliance.now())] == [key.id]
    house.runs.end(run, house.owner)
    assert keys.live(house.appliance.now()) == []
    keys.remove(key.id)
    keys.remove(key.id)
    with pytest.raises(Fault):
        keys.find(key.id)


def test_keys_of_others_are_neither_seen_nor_removed(house: House) -> None:
    operations = all_operations()
    run, secret = house.start()
    other, _ = house.start()
    holder = house.holder(secret)
    key = operations["key.add"].handle(house.desk, house.owner, {"key": ED25519, "lease": other.lease})["key"]
    assert operations["key.list"].handle(house.desk, holder, {})["items"] == []
    with pytest.raises(Fault) as refused:
        operations["key.remove"].handle(house.desk, holder, {"key": key})
    assert refused.value.kind is Kind.NOT_FOUND
    with pytest.raises(Fault) as refused:
        operations["key.add"].handle(house.desk, holder, {"key": ED25519, "lease": other.lease})
    assert refused.value.kind is Kind.DENIED
    with pytest.raises(Fault) as refused:
        operations["key.authorized"].handle(house.desk, holder, {})
    assert refused.value.kind is Kind.DENIED
    assert run.state == "active"

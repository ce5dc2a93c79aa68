"""References lead to secrets, or to a fault that names the reference and never what was found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.broker.references import Resolver
from trust.accounts import Reference, parse_reference

CANARY = "canary-0123456789"


class NoVault:
    def read(self, reference: Reference) -> str:
        raise AssertionError(reference)


def resolve(reference: str, **environment: str) -> bytes:
    return Resolver(environment, NoVault()).resolve(parse_reference(reference)).reveal()


def refusal(reference: str, **environment: str) -> Fault:
    with pytest.raises(Fault) as refused:
        resolve(reference, **environment)
    assert refused.value.kind is Kind.UNAVAILABLE
    assert reference in refused.value.message
    assert refused.value.hint
    assert CANARY not in refused.value.message + refused.value.hint
    return refused.value


def keep(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return f"file://{path}"


def test_a_variable_of_the_daemon_is_a_secret() -> None:
    assert resolve("env://FORGE", FORGE=CANARY) == CANARY.encode()
    refusal("env://OTHER", FORGE=CANARY)


def test_a_private_file_is_read_afresh_each_time(tmp_path: Path) -> None:
    reference = keep(tmp_path / "token", CANARY.encode() + b"\n")
    assert resolve(reference) == CANARY.encode()
    keep(tmp_path / "token", b"rotated-0123456789")
    assert resolve(reference) == b"rotated-0123456789"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o604])
def test_a_file_that_others_can_read_or_write_is_no_place_for_a_secret(tmp_path: Path, mode: int) -> None:
    assert "chmod 600" in refusal(keep(tmp_path / "token", CANARY.encode(), mode)).hint


def test_what_is_no_file_is_no_secret(tmp_path: Path) -> None:
    keep(tmp_path / "token", CANARY.encode())
    (tmp_path / "link").symlink_to(tmp_path / "token")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe", "missing", "."):
        refusal(f"file://{tmp_path}/{name}")


@pytest.mark.root
def test_a_file_of_somebody_else_is_no_place_for_a_secret(tmp_path: Path) -> None:
    reference = keep(tmp_path / "token", CANARY.encode())
    os.chown(tmp_path / "token", 65534, 65534)
    refusal(reference)


def test_a_credential_of_systemd_is_read_from_its_folder(tmp_path: Path) -> None:
    keep(tmp_path / "forge", CANARY.encode(), 0o400)
    assert resolve("systemd://forge", CREDENTIALS_DIRECTORY=str(tmp_path)) == CANARY.encode()
    refusal("systemd://other", CREDENTIALS_DIRECTORY=str(tmp_path))
    assert "LoadCredential=forge" in refusal("systemd://forge").hint


@pytest.mark.parametrize("value", ["nat1.t1abc.c2VjcmV0", "anl1.WyJsMSIsW11d.dGFpbA"])
def test_the_owners_own_token_is_no_secret_of_an_account(value: str) -> None:
    assert "secret of this appliance" in refusal("env://FORGE", FORGE=value).message


@pytest.mark.parametrize("value", ["short", "", "two\nlines-of-text", f"{CANARY}\0", "x" * 9000])
def test_what_cannot_be_a_secret_is_refused(value: str) -> None:
    refusal("env://FORGE", FORGE=value)

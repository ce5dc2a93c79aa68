"""Secrets from a real Vault-compatible server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.broker.references import Resolver
from nasd.broker.vault import VaultServer
from tests.nasd.broker.openbao import ROOT, OpenBao, openbao
from trust.accounts import parse_reference

CANARY = "canary-0123456789"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBao]:
    with openbao(tmp_path_factory.mktemp("openbao")) as running:
        running.keep("team/forge", token=CANARY)
        yield running


def resolver(**environment: str) -> Resolver:
    return Resolver(environment, VaultServer(environment))


def read(resolver: Resolver, reference: str) -> str:
    return resolver.resolve(parse_reference(reference)).reveal().decode()


def refusal(resolver: Resolver, reference: str) -> str:
    with pytest.raises(Fault) as refused:
        read(resolver, reference)
    assert refused.value.kind is Kind.UNAVAILABLE
    assert CANARY not in refused.value.message
    assert ROOT not in refused.value.message
    return refused.value.message


def test_a_token_reads_a_field_and_sees_its_next_version(server: OpenBao) -> None:
    own = resolver(VAULT_ADDR=server.url, VAULT_TOKEN=ROOT)
    server.keep("rotating", token="first-version-1")
    assert read(own, "vault://secret/rotating#token") == "first-version-1"
    server.keep("rotating", token="second-version-2")
    assert read(own, "vault://secret/rotating#token") == "second-version-2"


def test_a_token_in_a_private_file_reads(server: OpenBao, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(ROOT + "\n")
    path.chmod(0o600)
    assert read(resolver(VAULT_ADDR=server.url, VAULT_TOKEN_FILE=str(path)), "vault://secret/team/forge#token") == CANARY


def test_a_role_reads_what_its_policy_says_and_no_more(server: OpenBao) -> None:
    role, secret = server.make_role("reader", "team/*")
    server.keep("other", token=CANARY)
    own = resolver(VAULT_ADDR=server.url, VAULT_ROLE_ID=role, VAULT_SECRET_ID=secret)
    assert read(own, "vault://secret/team/forge#token") == CANARY
    assert "403" in refusal(own, "vault://secret/other#token")


def test_a_role_whose_token_was_used_up_logs_in_again(server: OpenBao) -> None:
    role, secret = server.make_role("fleeting", "team/*", token_num_uses=1)
    own = resolver(VAULT_ADDR=server.url, VAULT_ROLE_ID=role, VAULT_SECRET_ID=secret)
    for _ in range(3):
        assert read(own, "vault://secret/team/forge#token") == CANARY


def test_what_the_vault_does_not_give_is_a_fault_that_names_the_reference(server: OpenBao) -> None:
    own = resolver(VAULT_ADDR=server.url, VAULT_TOKEN=ROOT)
    assert "404" in refusal(own, "vault://secret/nothing#token")
    assert "field other" in refusal(own, "vault://secret/team/forge#other")
    assert "403" in refusal(resolver(VAULT_ADDR=server.url, VAULT_TOKEN="wrong-token-1234"), "vault://secret/team/forge#token")
    assert "lets this role not in" in refusal(
        resolver(VAULT_ADDR=server.url, VAULT_ROLE_ID="none", VAULT_SECRET_ID="wrong"), "vault://secret/team/forge#token"
    )


@pytest.mark.parametrize("environment", [{}, {"VAULT_TOKEN": ROOT}, {"VAULT_ADDR": "http://vault.example.com", "VAULT_TOKEN": ROOT}])
def test_a_vault_that_is_not_set_up_says_what_is_missing(environment: dict[str, str]) -> None:
    refused = refusal(resolver(**environment), "vault://secret/team/forge#token")
    assert "VAULT_" in refused

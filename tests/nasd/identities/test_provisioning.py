"""From what an issuer says to a principal: names are kept by those who had them first, and the latest word counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from nasd.identities.claims import Assertion
from nasd.identities.issuers import Issuer
from nasd.identities.provisioning import resolve
from tests.nasd.conftest import House
from trust.errors import Unauthenticated
from trust.model import PrincipalKind

NOW = 1_800_000_000
CORP = Issuer("corp", "https://id.example", "nas", subjects={"s-owner": "owner", "s-lost": "absent"})
ANA = Assertion("corp", "s-ana", "ana", NOW, NOW + 600, "human", {"department": "accounts"}, ("auditor",))


def test_who_comes_first_time_is_made_known_with_what_was_declared_and_that_is_recorded(house: House) -> None:
    principal = resolve(house.trust, CORP, replace(ANA, kind="service"), NOW)
    assert (principal.name, principal.kind) == ("ana", PrincipalKind.SERVICE)
    assert principal.attributes == {"department": "accounts", "roles": "auditor", "issuer": "corp"}
    assert house.trust.roles(principal) == {"auditor"}
    assert [record["subject"] for record in house.records("principal.asserted")] == ["s-ana"]
    epoch = house.trust.epoch()
    assert resolve(house.trust, CORP, ANA, NOW) == principal
    assert house.trust.epoch() == epoch
    assert len(house.records("principal.asserted")) == 1


def test_the_latest_word_counts_and_a_role_that_was_taken_away_does_not_come_back_with_an_older_token(house: House) -> None:
    resolve(house.trust, CORP, ANA, NOW)
    epoch = house.trust.epoch()
    later = replace(ANA, made=NOW + 10, roles=(), attributes={})
    assert house.trust.roles(resolve(house.trust, CORP, later, NOW)) == frozenset()
    assert house.trust.epoch() > epoch
    assert house.trust.roles(resolve(house.trust, CORP, ANA, NOW)) == frozenset()
    assert house.trust.principal("ana").attributes == {"issuer": "corp"}


@pytest.mark.parametrize(
    "other",
    [
        replace(ANA, subject="s-renamed"),
        replace(ANA, issuer="elsewhere"),
        replace(ANA, name="owner"),
        replace(ANA, name="svc:nas", subject="s-2"),
        replace(ANA, subject="s-lost", name="absent"),
    ],
)
def test_a_name_belongs_to_whoever_had_it_first(house: House, other: Assertion) -> None:
    resolve(house.trust, CORP, ANA, NOW)
    with pytest.raises(Unauthenticated):
        resolve(house.trust, CORP, other, NOW)
    assert house.trust.principal("ana").attributes["department"] == "accounts"
    assert house.trust.roles(house.trust.principal("owner")) == {"owner"}


def test_a_declared_subject_is_a_principal_of_here_and_keeps_what_it_has_here(house: House) -> None:
    principal = resolve(house.trust, CORP, replace(ANA, subject="s-owner", name="owner"), NOW)
    assert house.trust.roles(principal) == {"owner"}
    assert "department" not in principal.attributes


def test_an_issuer_that_makes_nobody_known_lets_in_whom_it_made_known_before_and_declared_subjects_only(house: House) -> None:
    closed = replace(CORP, create=False)
    with pytest.raises(Unauthenticated):
        resolve(house.trust, closed, ANA, NOW)
    assert resolve(house.trust, closed, replace(ANA, subject="s-owner"), NOW).name == "owner"
    resolve(house.trust, CORP, ANA, NOW)
    assert resolve(house.trust, closed, ANA, NOW).name == "ana"


def test_many_who_come_at_once_are_one_principal(house: House) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = {principal.name for principal in pool.map(lambda _: resolve(house.trust, CORP, ANA, NOW), range(32))}
    assert names == {"ana"}
    assert len(house.records("principal.asserted")) == 1

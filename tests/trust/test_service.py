from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from tests.trust.samples import NOW, WHOLE_TREE, give_lease, open_trust
from trust import Trust
from trust.credentials import MAX_NARROWINGS
from trust.errors import (
    BudgetSpent,
    Disabled,
    KeyMissing,
    LeaseExpired,
    LeaseRevoked,
    Outdated,
    PolicyInvalid,
    RecorderUnavailable,
    ScopeInvalid,
    Taken,
    Unauthenticated,
    Unknown,
    Widened,
)
from trust.model import Action, BudgetKind, LeaseId, PrincipalKind, PrincipalName, RunId, Scope
from trust.policy import default_policy
from trust.tokens import MAX_CAVEATS, narrow_token, parse_lease_token

READ_SRC = Scope(("src/**",), frozenset({Action.READ}), NOW, 1_500)


# principals and tokens


def test_a_token_speaks_for_its_principal_with_its_roles(trust: Trust) -> None:
    token, secret = trust.issue_token("ana", "laptop", None, NOW)
    identity = trust.authenticate(secret, NOW)
    assert (identity.principal.name, identity.roles, identity.token, identity.lease) == ("ana", {"owner"}, token.id, None)
    trust.adopt_policy("version: 1\nroles: {owner: [zoe], auditor: [ana]}\n", "p.yaml", NOW)
    assert trust.authenticate(secret, NOW).roles == {"owner", "auditor"}


def test_a_revoked_expired_or_mistyped_token_is_one_answer(trust: Trust) -> None:
    token, secret = trust.issue_token("ana", "laptop", NOW + 10, NOW)
    other = trust.issue_token("ana", "phone", None, NOW)[1]
    trust.authenticate(secret, NOW + 9)
    mixed = f"nat1.{token.id}.{other.rsplit('.', 1)[1]}"
    answers = []
    for text, now in ((secret, NOW + 10), (mixed, NOW), ("nat1.tnone." + other.rsplit(".", 1)[1], NOW)):
        with pytest.raises(Unauthenticated) as raised:
            trust.authenticate(text, now)
        answers.append(str(raised.value))
    trust.revoke_token(token.id, NOW)
    with pytest.raises(Unauthenticated) as raised:
        trust.authenticate(secret, NOW)
    assert {*answers, str(raised.value)} == {"token: unknown or revoked"}


def test_names_and_ids_are_checked(trust: Trust) -> None:
    with pytest.raises(Taken):
        trust.add_principal("ana", PrincipalKind.NODE, NOW)
    for act in (lambda: trust.principal("bob"), lambda: trust.revoke_token("t9", NOW), lambda: trust.issue_token("bob", "", None, NOW)):
        with pytest.raises(Unknown):
            act()
    assert [each.name for each in trust.principals()] == ["ana", "coder"]


def test_a_disabled_principal_takes_its_tokens_and_leases_along(trust: Trust) -> None:
    _, secret = trust.issue_token("coder", "x", None, NOW)
    lease, run_secret = give_lease(trust)
    child, _ = trust.narrow_lease(lease.id, READ_SRC, NOW)
    before = trust.epoch()
    trust.disable_principal("ana", NOW)
    assert trust.lease(child.id).revoked == NOW and trust.epoch() > before
    with pytest.raises(LeaseRevoked):
        trust.authenticate(run_secret, NOW)
    trust.authenticate(secret, NOW)
    trust.disable_principal("coder", NOW)
    with pytest.raises(Unauthenticated):
        trust.authenticate(secret, NOW)
    with pytest.raises(Disabled):
        give_lease(trust)
    with pytest.raises(Disabled):
        trust.issue_token("ana", "", None, NOW)


# leases


def test_a_lease_secret_speaks_for_its_run(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    identity = trust.authenticate(secret, NOW)
    assert identity.lease == lease and identity.principal.name == "coder" and identity.roles == frozenset()
    assert trust.lease_secret(lease.id) == secret
    with pytest.raises(LeaseExpired):
        trust.authenticate(secret, lease.scope.expires)
    trust.authenticate(secret, lease.scope.expires - 1)


def test_a_lease_that_has_not_begun_is_recognised(trust: Trust) -> None:
    lease, secret = give_lease(trust, replace(WHOLE_TREE, not_before=1_500))
    assert trust.authenticate(secret, NOW).lease == lease


def test_a_lease_no_principal_or_policy_could_have_is_refused(trust: Trust) -> None:
    with pytest.raises(ScopeInvalid):
        give_lease(trust, replace(WHOLE_TREE, actions=frozenset({Action.MERGE})))
    with pytest.raises(Unknown):
        trust.issue_lease(RunId("r"), PrincipalName("bob"), PrincipalName("ana"), WHOLE_TREE, NOW)
    assert list(trust.leases()) == []


def test_a_lease_narrowed_here_has_the_secret_its_holder_could_compute(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    child, narrowed = trust.narrow_lease(lease.id, READ_SRC, NOW)
    assert narrowed == narrow_token(secret, parse_lease_token(narrowed).caveats[0])
    assert trust.authenticate(narrowed, NOW).lease == child
    assert (child.parent, child.scope.paths, child.run) == (lease.id, ("src/**",), lease.run)
    assert trust.narrow_lease(lease.id, READ_SRC, NOW)[0] == child


def test_a_narrowing_that_widens_is_refused(trust: Trust) -> None:
    lease, _ = give_lease(trust, READ_SRC)
    with pytest.raises(Widened):
        trust.narrow_lease(lease.id, replace(READ_SRC, paths=("**",)), NOW)
    assert len(trust.leases()) == 1


def test_a_token_narrowed_offline_becomes_leases_when_it_is_first_seen(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    twice = narrow_token(narrow_token(secret, {"p": ["src/**"]}), {"a": ["read"], "exp": 1_200})
    seen = trust.authenticate(twice, NOW).lease
    assert seen is not None and seen.scope.paths == ("src/**",)
    assert seen.scope.actions == {Action.READ} and seen.scope.expires == 1_200
    chain = [each.id for each in trust.leases(RunId("run-1"))]
    assert chain == [lease.id, seen.parent, seen.id]
    trust.authenticate(twice, NOW)
    assert len(trust.leases()) == 3


def test_revoking_any_ancestor_kills_what_hangs_on_it_seen_or_not(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    middle = narrow_token(secret, {"p": ["src/**"]})
    unseen = narrow_token(narrow_token(middle, {"a": ["read"]}), {"exp": 1_500})
    seen = trust.authenticate(middle, NOW).lease
    assert seen is not None
    assert list(trust.revoke_lease(seen.id, "leaked", NOW)) == [seen.id]
    for text in (middle, unseen):
        with pytest.raises(LeaseRevoked, match="leaked"):
            trust.authenticate(text, NOW)
    trust.authenticate(secret, NOW)
    trust.revoke_lease(lease.id, "over", NOW)
    with pytest.raises(LeaseRevoked):
        trust.authenticate(narrow_token(secret, {"exp": 1_300}), NOW)
    with pytest.raises(LeaseRevoked):
        trust.narrow_lease(lease.id, READ_SRC, NOW)


def test_a_narrowed_lease_ends_with_its_parent(trust: Trust) -> None:
    _, secret = give_lease(trust, replace(WHOLE_TREE, expires=1_100))
    longer = narrow_token(secret, {"exp": 3_000})
    assert trust.authenticate(longer, 1_099).lease.scope.expires == 1_100  # type: ignore[union-attr]
    with pytest.raises(LeaseExpired):
        trust.authenticate(longer, 1_100)


def test_a_chain_that_no_token_holds_goes_on_with_a_secret_of_its_own(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    for step in range(MAX_CAVEATS + 2):
        lease, secret = trust.narrow_lease(lease.id, replace(WHOLE_TREE, expires=1_900 - step), NOW)
        assert trust.authenticate(secret, NOW).lease == lease
    root = trust.leases()[0]
    assert lease.id in trust.revoke_lease(root.id, "all of it", NOW)
    with pytest.raises(LeaseRevoked):
        trust.authenticate(secret, NOW)


def test_narrowing_does_not_fill_the_disk(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trust.credentials.MAX_NARROWINGS", 3)
    _, secret = give_lease(trust)
    trust.authenticate(narrow_token(secret, {"exp": 1_300}), NOW)
    trust.authenticate(narrow_token(secret, {"exp": 1_301}), NOW)
    with pytest.raises(LeaseRevoked, match="more than 3 times"):
        trust.authenticate(narrow_token(secret, {"exp": 1_302}), NOW)
    assert MAX_NARROWINGS > 3


def test_a_forged_token_makes_no_lease(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    child, narrowed = trust.narrow_lease(lease.id, READ_SRC, NOW)
    widened = ".".join([*secret.split(".")[:2], narrowed.split(".")[2]])
    posing = narrowed.replace(narrowed.split(".")[1], secret.split(".")[1])
    for text in (widened, posing, secret[:-2] + "AA", "anl1.x.y"):
        with pytest.raises(Unauthenticated):
            trust.authenticate(text, NOW)
    assert {each.id for each in trust.leases()} == {lease.id, child.id}


def test_the_database_alone_forges_nothing(trust: Trust, tmp_path: Path) -> None:
    lease, secret = give_lease(trust)
    _, token = trust.issue_token("ana", "x", None, NOW)
    trust.flush()
    dump = b"".join(path.read_bytes() for path in (tmp_path / "trust").glob("trust.db*"))
    tail, hidden = secret.split(".")[2], token.split(".")[2]
    key = (tmp_path / "trust/keys/lease-1.key").read_bytes()
    assert lease.id.encode() in dump
    for credential in (tail.encode(), hidden.encode(), key, parse_lease_token(secret).tail.reveal()):
        assert credential not in dump


# keys


def test_keys_are_private_files(trust: Trust, tmp_path: Path) -> None:
    del trust
    folder = tmp_path / "trust/keys"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [(path.name, stat.S_IMODE(path.stat().st_mode), path.stat().st_size) for path in folder.iterdir()] == [
        ("lease-1.key", 0o600, 32)
    ]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (tmp_path / "trust").glob("trust.db*"))


def test_a_missing_key_takes_its_leases_along_and_nothing_else(tmp_path: Path) -> None:
    trust = open_trust(tmp_path / "t")
    lease, secret = give_lease(trust)
    trust.close()
    (tmp_path / "t/keys/lease-1.key").unlink()
    trust = Trust.open(tmp_path / "t")
    with pytest.raises(Unauthenticated, match="the key of epoch 1 is missing"):
        trust.authenticate(secret, NOW)
    with pytest.raises(KeyMissing):
        trust.narrow_lease(lease.id, READ_SRC, NOW)
    _, other = give_lease(trust)
    assert trust.authenticate(other, NOW).principal.name == "coder"
    assert (tmp_path / "t/keys/lease-2.key").exists()
    trust.close()


def test_the_number_of_a_lost_key_is_not_used_again(tmp_path: Path) -> None:
    trust = open_trust(tmp_path / "t")
    trust.rotate_key()
    _, lost = give_lease(trust)
    trust.close()
    (tmp_path / "t/keys/lease-2.key").unlink()
    trust = Trust.open(tmp_path / "t")
    assert sorted(path.name for path in (tmp_path / "t/keys").iterdir()) == ["lease-1.key", "lease-3.key"]
    with pytest.raises(Unauthenticated, match="epoch 2"):
        trust.authenticate(lost, NOW)
    trust.close()


def test_rotating_the_key_keeps_older_leases(trust: Trust, tmp_path: Path) -> None:
    _, older = give_lease(trust)
    assert trust.rotate_key() == 2
    _, newer = give_lease(trust)
    other = Trust.open(tmp_path / "trust")
    for text in (older, newer):
        assert other.authenticate(text, NOW) == trust.authenticate(text, NOW)
    other.close()


def test_a_process_learns_of_a_key_that_another_made(trust: Trust, tmp_path: Path) -> None:
    other = Trust.open(tmp_path / "trust")
    other.rotate_key()
    _, secret = give_lease(other)
    assert trust.authenticate(secret, NOW).principal.name == "coder"
    other.close()


# budgets


def test_children_together_never_spend_more_than_their_parent(trust: Trust) -> None:
    lease, _ = give_lease(trust, replace(WHOLE_TREE, budgets={BudgetKind.READS: 100}))
    children = [trust.narrow_lease(lease.id, replace(WHOLE_TREE, expires=1_200 + number), NOW)[0].id for number in range(4)]
    spent: list[int] = []

    def spend(child: LeaseId) -> None:
        while True:
            try:
                trust.charge(child, {BudgetKind.READS: 3, BudgetKind.COMMITS: 1})
            except BudgetSpent:
                return
            spent.append(3)

    threads = [threading.Thread(target=spend, args=(children[number % 4],)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(spent) == 99
    assert trust.left(lease.id) == {BudgetKind.READS: 1}
    used = trust.lease(lease.id).used
    assert used == {BudgetKind.READS: 99, BudgetKind.COMMITS: 33}
    assert sum(trust.lease(child).used.get(BudgetKind.READS, 0) for child in children) == 99


def test_a_charge_that_one_budget_does_not_cover_charges_nothing(trust: Trust) -> None:
    lease, _ = give_lease(trust, replace(WHOLE_TREE, budgets={BudgetKind.READS: 10, BudgetKind.COMMITS: 1}))
    with pytest.raises(BudgetSpent):
        trust.charge(lease.id, {BudgetKind.READS: 1, BudgetKind.COMMITS: 2})
    assert trust.lease(lease.id).used == {}
    trust.charge(lease.id, {BudgetKind.READS: 10})
    trust.refund(lease.id, {BudgetKind.READS: 4})
    assert trust.left(lease.id) == {BudgetKind.READS: 4, BudgetKind.COMMITS: 1}
    for act in (trust.charge, trust.refund):
        with pytest.raises(Unknown):
            act(LeaseId("l9"), {BudgetKind.READS: 1})
        with pytest.raises(ScopeInvalid):
            act(lease.id, {BudgetKind.READS: -1})


# policy and documents


def test_a_policy_that_does_not_compile_is_not_adopted(trust: Trust) -> None:
    with pytest.raises(Unknown):
        trust.adopted_policy()
    digest, before = trust.adopt_policy(default_policy(), "p.yaml", NOW), trust.epoch()
    with pytest.raises(PolicyInvalid) as raised:
        trust.adopt_policy("version: 1\n", "q.yaml", NOW)
    assert raised.value.diagnostics and trust.epoch() == before
    assert trust.adopted_policy() == (default_policy(), "p.yaml", digest)
    assert trust.policy().hash == digest and trust.policy() is trust.policy()


def test_every_process_sees_the_adopted_policy(trust: Trust, tmp_path: Path) -> None:
    other = Trust.open(tmp_path / "trust")
    assert other.policy().grants == ()
    epoch, digest = other.epoch(), trust.adopt_policy(default_policy(), "p.yaml", NOW)
    assert other.epoch() > epoch and other.policy().hash == digest
    other.close()


def test_a_document_is_put_by_whoever_read_it_last(trust: Trust) -> None:
    made = trust.put_document("run", "r1", {"state": "live"}, 0)
    assert (made.version, trust.document("run", "r1")) == (1, made)
    with pytest.raises(Taken):
        trust.put_document("run", "r1", {}, 0)
    trust.put_document("run", "r1", {"state": "ended"}, 1)
    with pytest.raises(Outdated):
        trust.put_document("run", "r1", {"state": "lost"}, 1)
    assert [each.body for each in trust.documents("run")] == [{"state": "ended"}]


def test_a_transaction_takes_all_its_writes_or_none(trust: Trust) -> None:
    with pytest.raises(Outdated), trust.transaction():
        trust.put_document("run", "r1", {}, 0)
        trust.intend("merge", None, {}, NOW)
        trust.put_document("run", "r1", {}, 7)
    assert trust.head()[0] == 0 and list(trust.documents("run")) == []
    with trust.transaction():
        trust.put_document("run", "r1", {}, 0)
        intent = trust.intend("merge", None, {}, NOW)
        trust.conclude(intent, {}, NOW)
    assert trust.head()[0] == 2


# opening


def test_what_was_done_is_there_after_reopening(tmp_path: Path) -> None:
    trust = open_trust(tmp_path / "t")
    lease, secret = give_lease(trust)
    trust.charge(lease.id, {BudgetKind.READS: 5})
    epoch = trust.epoch()
    trust.close()
    trust.close()
    again = Trust.open(tmp_path / "t")
    assert again.authenticate(secret, NOW).lease == replace(lease, used={BudgetKind.READS: 5})
    assert again.epoch() == epoch
    again.close()


def test_a_folder_that_can_not_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecorderUnavailable):
        Trust.open(tmp_path / "file")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/trust.db").write_bytes(os.urandom(8192))
    with pytest.raises(RecorderUnavailable):
        Trust.open(tmp_path / "odd")


def test_the_state_of_a_later_release_is_refused(tmp_path: Path) -> None:
    Trust.open(tmp_path / "t").close()
    with apsw.Connection(str(tmp_path / "t/trust.db")) as connection:
        connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(RecorderUnavailable, match="later release"):
        Trust.open(tmp_path / "t")

"""What a whole copy of a history is made of: the same answers as the decision itself, by fewer questions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nasd.authority import gather
from nasd.readable import Readable
from trust.model import LEASABLE, Action, Effect, Identity, Lease, LeaseId, Principal, PrincipalKind, PrincipalName, RunId, Scope
from trust.policy import compile_policy, decide, default_policy

POLICY = compile_policy(default_policy(), "policy.yaml")
NOW = 100
names = st.sampled_from([b"src", b"docs", b"a.py", b".env", b"key.pem", b"x-key.pem", b"config.json", b".docker", b"\xff", b"privkey1.pem"])
paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)
scopes = st.lists(st.sampled_from(["**", "src/**", "docs/*", "**/*.py", "src", "a.py", "*/a.py"]), min_size=1, max_size=3).map(tuple)


def holder(scope: tuple[str, ...], actions: frozenset[Action] = LEASABLE, lease: str = "l1") -> Identity:
    principal = Principal(PrincipalName("coder"), PrincipalKind.AGENT, 1)
    held = Lease(LeaseId(lease), RunId("r"), principal.name, PrincipalName("owner"), Scope(scope, actions, 0, 1000), 0)
    return Identity(principal, frozenset(), None, held)


def allowed(identity: Identity, path: bytes) -> bool:
    return all(decide(POLICY, gather(identity, action, NOW, path=path)).effect is Effect.ALLOW for action in (Action.LIST, Action.READ))


@settings(deadline=None)
@given(scopes, st.lists(paths, min_size=1, max_size=10))
def test_a_path_is_kept_when_it_may_be_listed_and_read(scope: tuple[str, ...], asked: list[bytes]) -> None:
    identity = holder(scope)
    readable = Readable(POLICY, identity, NOW)
    for path in asked:
        directory, _, name = path.rpartition(b"/")
        assert readable.keeps(directory, name) == allowed(identity, path)


@settings(deadline=None)
@given(scopes, paths, paths)
def test_what_is_said_of_a_whole_directory_holds_below_it(scope: tuple[str, ...], directory: bytes, below: bytes) -> None:
    identity = holder(scope)
    readable = Readable(POLICY, identity, NOW)
    path = directory + b"/" + below
    if readable.keeps_all(directory):
        assert allowed(identity, path)
    if readable.keeps_none(directory):
        assert not allowed(identity, path)


def test_leases_that_say_the_same_share_a_name_and_others_do_not() -> None:
    def name(*arguments: object, **others: object) -> str:
        return Readable(POLICY, holder(*arguments, **others), NOW).name  # type: ignore[arg-type]

    assert name(("**",)) == name(("**",), lease="l2")
    assert len({name(("**",)), name(("src/**",)), name(("**",), frozenset({Action.LIST}))}) == 3
    stricter = compile_policy(default_policy().replace('- "**/id_rsa"', '- "**/id_rsa"\n      - "x/**"'), "policy.yaml")
    assert Readable(stricter, holder(("**",)), NOW).name != name(("**",))


def test_the_owner_reads_everything_without_a_look_at_any_path() -> None:
    owner = Identity(Principal(PrincipalName("owner"), PrincipalKind.HUMAN, 1), frozenset({"owner"}))
    readable = Readable(POLICY, owner, NOW)
    assert readable.keeps_all(b"")
    assert readable.keeps(b"deploy", b"key.pem")
    assert not readable.keeps_none(b"deploy")


@pytest.mark.parametrize("actions", [frozenset({Action.LIST}), frozenset({Action.READ}), frozenset[Action]()])
def test_a_lease_that_may_not_list_and_read_keeps_nothing(actions: frozenset[Action]) -> None:
    readable = Readable(POLICY, holder(("**",), actions), NOW)
    assert not readable.keeps(b"src", b"a.py")
    assert not readable.keeps_all(b"")

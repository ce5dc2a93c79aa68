"""What a lease that is handed on can still do: narrower in every dimension, accounted and ended over the whole tree of leases."""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trust.samples import NOW, WHOLE_TREE, give_lease, open_trust
from trust import Trust
from trust.canonical import canonical
from trust.caveats import CAVEATS, DOORS, MAX_DEPTH, MAX_PATTERNS
from trust.derived import derive_basic, derive_key_pair, derive_mount
from trust.errors import BudgetSpent, HolderUnproven, LeaseExpired, LeaseRevoked, ScopeInvalid, Unauthenticated, Widened, WrongDoor
from trust.labels import DEFAULT, WORST, Label, Origin, Sensitivity
from trust.leases import (
    MAX_ACTORS,
    NOBODY,
    apply_caveat,
    caveat_between,
    check_scope,
    narrow_scope,
    require_presented,
)
from trust.model import LEASABLE, BudgetKind, LeaseId, Scope
from trust.policy.covering import Effort, covers
from trust.policy.patterns import matches_any
from trust.secret import Secret
from trust.tokens import MAX_CAVEATS, LeaseToken, chain_tail, encode_lease_token, extend_tail, fits, narrow_token, parse_lease_token

KEY = Secret(bytes(range(32)))
ANOTHER = Secret(bytes(32))
SSH = "ssh:SHA256:" + "a" * 43
X5T = "x5t:" + "B" * 43
PATHS = ["**", "src/**", "src/a/**", "src/ab", "src/*", "docs/*.md", "**/x"]
FILES = [b"", b"src", b"src/a", b"src/ab", b"src/a/x", b"docs/a.md", b"docs/a/x", b"\xff"]
ACCOUNTS = ["*", "mail", "mail*", "?ail", "code"]
NAMES = [b"mail", b"mailer", b"code", b"tail"]
label_words = st.fixed_dictionaries(
    {},
    optional={
        "origin": st.sampled_from(["owner", "internal", "external"]),
        "sensitivity": st.sampled_from(["public", "internal", "sensitive"]),
    },
).filter(bool)
caveats = st.fixed_dictionaries(
    {},
    optional={
        "p": st.lists(st.sampled_from(PATHS), max_size=3),
        "a": st.lists(st.sampled_from(sorted(action.value for action in LEASABLE)), max_size=4),
        "exp": st.integers(0, 3_000),
        "nbf": st.integers(0, 3_000),
        "bud": st.dictionaries(st.sampled_from([kind.value for kind in BudgetKind]), st.integers(0, 99), min_size=1),
        "pur": st.text(max_size=20),
        "dst": st.lists(st.sampled_from(ACCOUNTS), max_size=3),
        "aud": st.sets(st.sampled_from(sorted(DOORS))).map(sorted),
        "cnf": st.sampled_from([SSH, X5T]),
        "lab": label_words,
        "who": st.lists(st.sampled_from(["planner", "coder", "tester"]), min_size=1, max_size=2),
        "dep": st.integers(0, MAX_DEPTH),
    },
).filter(bool)
LABELS = [Label(origin, sensitivity) for origin in Origin for sensitivity in Sensitivity]
WIDEST = replace(WHOLE_TREE, actions=LEASABLE, destinations=("*",), budgets={BudgetKind.READS: 80})


def token(*chain: dict[str, Any]) -> str:
    root = LeaseId("labc")
    return encode_lease_token(LeaseToken(root, chain, chain_tail(KEY, root, chain)))


def is_genuine(text: str) -> bool:
    try:
        return parse_lease_token(text).is_under(KEY)
    except Unauthenticated:
        return False


def is_presented(scope: Scope, door: str, proofs: set[str]) -> bool:
    try:
        require_presented(scope, door, proofs)
    except (WrongDoor, HolderUnproven):
        return False
    return True


def powers(scope: Scope) -> set[object]:
    """Return everything that can be done with a scope, of a sample of what can be asked."""
    can: set[object] = {("path", path) for path in FILES if matches_any(scope.paths, path)}
    can |= {("account", name) for name in NAMES if matches_any(scope.destinations, name)}
    can |= {("action", action) for action in scope.actions}
    can |= {("time", now) for now in range(0, 3_001, 100) if scope.not_before <= now < scope.expires}
    can |= {("spend", kind, amount) for kind in BudgetKind for amount in range(100) if amount <= scope.budgets.get(kind, amount)}
    can |= {("label", label) for label in LABELS if scope.ceiling is None or label.within(scope.ceiling)}
    can |= {
        ("door", door, *sorted(proofs))
        for door in DOORS
        for proofs in (set[str](), {SSH}, {X5T}, {SSH, X5T})
        if is_presented(scope, door, proofs)
    }
    return can | {("hand on", generations) for generations in range(MAX_DEPTH) if scope.depth is None or generations < scope.depth}


@settings(max_examples=300, deadline=None)
@given(st.lists(caveats, max_size=MAX_CAVEATS))
def test_no_chain_of_caveats_ever_gives_a_power_back(chain: list[dict[str, Any]]) -> None:
    scope = WIDEST
    for caveat in chain:
        narrower = apply_caveat(scope, caveat, Effort(1_000))
        assert powers(narrower) <= powers(scope)
        assert narrower.actors[: len(scope.actors)] == scope.actors
        scope = narrower


@settings(max_examples=200, deadline=None)
@given(caveats, caveats)
def test_a_caveat_counts_wherever_in_the_chain_it_stands(one: dict[str, Any], other: dict[str, Any]) -> None:
    """All but the purpose and the order of actors: those tell a story, and take nothing away."""
    first, second = apply_caveat(apply_caveat(WIDEST, one), other), apply_caveat(apply_caveat(WIDEST, other), one)
    keep: dict[str, Any] = {"purpose": "", "actors": (), "paths": (), "destinations": (), "depth": None}
    assert replace(first, **keep) == replace(second, **keep)
    assert set(first.paths) == set(second.paths) and set(first.destinations) == set(second.destinations)


wanted_scopes = st.builds(
    lambda paths, actions, expires, destinations, doors, ceiling, more, holder, depth: Scope(
        paths, actions, 0, expires, "", {}, destinations, doors, ceiling, ("planner", *more), holder, depth
    ),
    st.lists(st.sampled_from(PATHS), min_size=1, max_size=3, unique=True).map(tuple),
    st.frozensets(st.sampled_from(sorted(LEASABLE, key=lambda action: action.value)), min_size=1),
    st.integers(1_001, 2_500),
    st.lists(st.sampled_from(ACCOUNTS), max_size=2, unique=True).map(tuple),
    st.none() | st.frozensets(st.sampled_from(sorted(DOORS)), min_size=1),
    st.none() | st.sampled_from(LABELS),
    st.lists(st.sampled_from(["coder", "tester"]), max_size=2).map(tuple),
    st.sampled_from(["", SSH, X5T]),
    st.none() | st.integers(0, 9),
)
parents = st.builds(
    lambda doors, ceiling, holder, depth: replace(WIDEST, doors=doors, ceiling=ceiling, actors=("planner",), holder=holder, depth=depth),
    st.none() | st.frozensets(st.sampled_from(sorted(DOORS)), min_size=3),
    st.none() | st.sampled_from([WORST, DEFAULT]),
    st.sampled_from(["", SSH]),
    st.none() | st.integers(0, 9),
)


@settings(max_examples=300, deadline=None)
@given(parents, wanted_scopes)
def test_a_narrowing_is_granted_exactly_and_offline_alike_or_refused(parent: Scope, wanted: Scope) -> None:
    try:
        narrowed = narrow_scope(parent, wanted)
    except Widened:
        return
    check_scope(narrowed, NOW)
    assert powers(narrowed) <= powers(parent)
    assert powers(narrowed) - {power for power in powers(narrowed) if isinstance(power, tuple) and power[0] == "hand on"} <= powers(wanted)
    assert apply_caveat(parent, json.loads(canonical(caveat_between(parent, narrowed)))) == narrowed


@pytest.mark.parametrize(
    "changes",
    [
        {"destinations": ("mail",)},
        {"doors": frozenset({"s3", "git"})},
        {"ceiling": Label(Origin.EXTERNAL, Sensitivity.PUBLIC)},
        {"actors": ("tester",)},
        {"actors": ()},
        {"holder": X5T},
        {"depth": 3},
    ],
)
def test_going_beyond_the_lease_is_refused_in_every_dimension(changes: dict[str, Any]) -> None:
    limits: dict[str, Any] = {"destinations": ("code",), "doors": frozenset({"s3"}), "ceiling": DEFAULT, "actors": ("planner",), "depth": 3}
    parent = replace(WHOLE_TREE, holder=SSH, **limits)
    assert narrow_scope(parent, replace(parent, depth=None)).depth == 2
    if changes == {"actors": ()}:
        assert narrow_scope(parent, replace(parent, depth=None, actors=())).actors == ("planner",)
        return
    with pytest.raises(Widened):
        narrow_scope(parent, replace(parent, depth=None, **changes) if "depth" not in changes else replace(parent, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"doors": frozenset()},
        {"doors": frozenset({"nfs"})},
        {"actors": ("a",) * (MAX_ACTORS + 1)},
        {"actors": ("a\x1b[2J",)},
        {"actors": ("",)},
        {"holder": "mine"},
        {"holder": NOBODY},
        {"depth": -1},
        {"depth": MAX_DEPTH + 1},
        {"destinations": ("/x",)},
        {"destinations": ("x",) * 300},
    ],
)
def test_limits_that_can_not_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ScopeInvalid):
        check_scope(replace(WHOLE_TREE, **changes), NOW)


# where it counts, and for whom


def test_a_lease_counts_at_its_doors_and_nowhere_else() -> None:
    scope = replace(WHOLE_TREE, doors=frozenset({"s3", "git"}))
    require_presented(scope, "s3", set())
    require_presented(scope, "", set())
    with pytest.raises(WrongDoor, match="http: the lease counts at git, s3 only"):
        require_presented(scope, "http", set())
    with pytest.raises(WrongDoor, match="no door"):
        require_presented(apply_caveat(scope, {"aud": ["mcp"]}), "mcp", set())
    require_presented(None, "http", set())


def test_a_lease_that_is_bound_to_a_key_is_worth_nothing_without_it() -> None:
    scope = apply_caveat(WHOLE_TREE, {"cnf": SSH})
    require_presented(scope, "ssh", {SSH})
    for proofs in (set[str](), {X5T}, {SSH + "x"}):
        with pytest.raises(HolderUnproven):
            require_presented(scope, "ssh", proofs)
    torn = apply_caveat(scope, {"cnf": X5T})
    assert torn.holder == NOBODY
    with pytest.raises(HolderUnproven):
        require_presented(torn, "ssh", {SSH, X5T})


# the token


@pytest.mark.parametrize(
    "caveat", [{"p": ["src/**"], "exp": 99, "aud": ["s3"], "cnf": SSH, "dep": 1, "who": ["x"], "lab": {"origin": "owner"}}]
)
def test_every_changed_byte_of_a_token_is_noticed(caveat: dict[str, Any]) -> None:
    text = token(caveat)
    for index in range(len(text)):
        for bit in range(8):
            changed = chr(ord(text[index]) ^ (1 << bit))
            assert not is_genuine(text[:index] + changed + text[index + 1 :])
        assert not is_genuine(text[:index] + text[index + 1 :])
        assert not is_genuine(text[: index + 1]) or index == len(text) - 1
    assert is_genuine(text)


def test_caveats_are_not_dropped_swapped_or_moved_to_another_chain() -> None:
    one, two = {"p": ["src/**"]}, {"aud": ["s3"]}
    good = parse_lease_token(token(one, two))
    for chain in ((one,), (two,), (two, one), (), (one, two, one), (one | two,)):
        assert not is_genuine(encode_lease_token(LeaseToken(good.root, chain, good.tail)))
    assert not good.is_under(ANOTHER)


@pytest.mark.parametrize("letter", ["x", "role", "P", "", "dst ", "sub"])
def test_a_caveat_nobody_knows_makes_a_token_worthless(letter: str) -> None:
    assert letter not in CAVEATS
    for caveat in ({letter: 1}, {"exp": 99, letter: ["**"]}):
        with pytest.raises(Unauthenticated):
            parse_lease_token(token(caveat))
        with pytest.raises(Unauthenticated):
            narrow_token(token(), caveat)


def test_what_does_not_fit_into_a_token_is_not_narrowed_offline() -> None:
    many = [f"d{number}/**" for number in range(MAX_PATTERNS + 1)]
    with pytest.raises(Unauthenticated, match="patterns"):
        narrow_token(token(), {"p": many})
    with pytest.raises(Unauthenticated, match="patterns"):
        narrow_token(token({"p": many[:40]}), {"dst": many[:40]})
    full = token(*[{"exp": 99}] * MAX_CAVEATS)
    with pytest.raises(Unauthenticated, match="ask the server"):
        narrow_token(full, {"exp": 98})
    assert not fits(LeaseToken(LeaseId("l"), ({"p": many},), Secret(bytes(32))))


# the tree of leases


def test_no_lease_hangs_deeper_than_its_parent_allows(trust: Trust) -> None:
    lease, secret = give_lease(trust, replace(WHOLE_TREE, depth=2))
    child, narrowed = trust.narrow_lease(lease.id, replace(WHOLE_TREE, expires=1_500), NOW)
    grandchild, last = trust.narrow_lease(child.id, replace(WHOLE_TREE, expires=1_400), NOW)
    assert [trust.lease(each).scope.depth for each in (lease.id, child.id, grandchild.id)] == [2, 1, 0]
    with pytest.raises(Widened, match="not be narrowed any further"):
        trust.narrow_lease(grandchild.id, replace(WHOLE_TREE, expires=1_300), NOW)
    with pytest.raises(Widened, match="not be narrowed any further"):
        trust.authenticate(narrow_token(last, {"exp": 1_300}), NOW)
    ended = narrow_token(narrowed, {"dep": 0, "exp": 1_450})
    assert trust.authenticate(ended, NOW).lease is not None
    with pytest.raises(Widened):
        trust.authenticate(narrow_token(ended, {"dep": 9}), NOW)
    assert trust.authenticate(secret, NOW).lease == lease


def test_a_chain_of_actors_is_kept_with_the_lease_and_only_grows(trust: Trust, tmp_path: Path) -> None:
    _, secret = give_lease(trust, replace(WHOLE_TREE, actors=("planner",)))
    once = trust.authenticate(
        narrow_token(secret, {"who": ["coder"], "cnf": SSH, "aud": ["ssh"], "lab": {"sensitivity": "public"}}), NOW
    ).lease
    assert once is not None
    twice, _ = trust.narrow_lease(once.id, replace(once.scope, actors=("planner", "coder", "tester")), NOW)
    other = Trust.open(tmp_path / "trust")
    found = other.lease(twice.id).scope
    other.close()
    assert (found.actors, found.holder, found.doors) == (("planner", "coder", "tester"), SSH, {"ssh"})
    assert found.ceiling == Label(Origin.EXTERNAL, Sensitivity.PUBLIC)
    with pytest.raises(Widened):
        trust.narrow_lease(twice.id, replace(found, actors=("somebody",)), NOW)


def test_revoking_a_lease_ends_grandchildren_that_nobody_has_seen(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    child = narrow_token(secret, {"p": ["src/**"]})
    unseen = narrow_token(narrow_token(child, {"a": ["read"]}), {"aud": ["http", "mount", "s3", "webdav"]})
    ways = (
        lambda: trust.authenticate(unseen, NOW),
        lambda: trust.authenticate_basic(*derive_basic(unseen), NOW),
        lambda: trust.authenticate(derive_mount(unseen), NOW),
        lambda: trust.admit(trust.signing_key(*_without_secret(derive_key_pair(unseen)), "20261130", "r", "s3")[1], NOW),
    )
    trust.revoke_lease(lease.id, "over", NOW)
    for enter in ways:
        with pytest.raises(LeaseRevoked):
            enter()
    assert [each.id for each in trust.leases()] == [lease.id]


def _without_secret(pair: tuple[str, str, str]) -> tuple[str, str]:
    return pair[0], pair[2]


def test_a_lease_below_another_ends_with_it(trust: Trust) -> None:
    lease, secret = give_lease(trust, replace(WHOLE_TREE, expires=1_100))
    later = narrow_token(narrow_token(secret, {"exp": 9_000}), {"exp": 5_000, "nbf": 0})
    assert trust.authenticate(later, 1_099).lease.scope.expires == 1_100  # type: ignore[union-attr]
    for text in (later, narrow_token(later, {"exp": 1_200}), derive_mount(later)):
        with pytest.raises(LeaseExpired):
            trust.authenticate(text, lease.scope.expires)


def test_sixty_four_at_once_do_not_spend_more_than_the_lease_above_them(trust: Trust) -> None:
    lease, secret = give_lease(trust, replace(WHOLE_TREE, budgets={BudgetKind.READS: 100, BudgetKind.COMMITS: 1_000}))
    children = [
        trust.authenticate(narrow_token(narrow_token(secret, {"exp": 1_900}), {"exp": 1_200 + number % 8, "bud": {"reads": 40}}), NOW).lease
        for number in range(64)
    ]
    spent: list[LeaseId] = []
    begin = threading.Barrier(64)

    def spend(child: LeaseId) -> None:
        begin.wait()
        for _ in range(4):
            try:
                trust.charge(child, {BudgetKind.READS: 3, BudgetKind.COMMITS: 1})
            except BudgetSpent:
                return
            spent.append(child)

    threads = [threading.Thread(target=spend, args=(child.id,)) for child in children if child is not None]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(threads) == 64 and len(spent) == 33
    assert trust.lease(lease.id).used == {BudgetKind.READS: 99, BudgetKind.COMMITS: 33}
    for child in {child.id for child in children if child is not None}:
        assert trust.lease(child).used.get(BudgetKind.READS, 0) == 3 * spent.count(child) <= 40


# what is stolen


def test_whoever_has_the_database_and_not_the_key_forges_nothing(trust: Trust, tmp_path: Path) -> None:
    """With every byte of every table: no column, hash or id is of any use as a tail, a password, an S3 secret or a mount credential."""
    lease, secret = give_lease(trust, replace(WHOLE_TREE, actors=("planner",)))
    narrowed = narrow_token(secret, {"p": ["src/**"]})
    trust.authenticate(narrowed, NOW)
    trust.access_key(lease.id)
    trust.flush()
    dump = b"".join(path.read_bytes() for path in sorted((tmp_path / "trust").glob("trust.db*")))
    shown = [secret, narrowed, derive_mount(narrowed), *derive_basic(narrowed)[1:], derive_key_pair(narrowed)[1]]
    for text in shown:
        credential = text.rpartition(".")[2]
        assert credential.encode() not in dump
        assert base64.urlsafe_b64decode(credential + "=") not in dump
    database = sqlite3.connect(f"file:{tmp_path / 'trust/trust.db'}?mode=ro", uri=True)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    values = {value for table in tables for row in database.execute(f"SELECT * FROM {table}") for value in row}
    database.close()
    guesses = {bytes(32), *(value for value in values if isinstance(value, bytes)), *(str(value).encode() for value in values)}
    tried = 0
    for guess in guesses:
        for tail in {
            guess[:32].ljust(32, b"\0"),
            extend_tail(Secret(guess), {"exp": 1}).reveal(),
            chain_tail(Secret(guess), lease.id, ()).reveal(),
        }:
            forged = encode_lease_token(LeaseToken(lease.id, (), Secret(tail)))
            for text in (forged, derive_mount(forged)):
                with pytest.raises(Unauthenticated):
                    trust.authenticate(text, NOW)
            with pytest.raises(Unauthenticated):
                trust.authenticate_basic(*derive_basic(forged), NOW)
            tried += 1
    assert tried > 60


def test_a_mount_credential_is_neither_the_lease_nor_another_credential_of_it(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    credential = derive_mount(secret)
    assert credential.startswith("anm1.") and trust.authenticate(credential, NOW).lease == lease
    posing = "anl1" + credential[4:]
    for text in (posing, credential[:-2] + "AA", "anm1" + secret[4:]):
        with pytest.raises(Unauthenticated):
            trust.authenticate(text, NOW)
    with pytest.raises(Unauthenticated):
        trust.authenticate_basic(lease.id, credential.rpartition(".")[2], NOW)
    with pytest.raises(Unauthenticated):
        trust.authenticate_basic(lease.id, posing, NOW)
    with pytest.raises(Unauthenticated):
        narrow_token(credential, {"exp": 1})


# what it costs


def hostile_chains() -> list[list[dict[str, Any]]]:
    """Return chains within every limit that are as expensive to understand as their writer could think of."""
    globs = [f"{letter}*{letter}*?/**/*{letter}?*/**/x" for letter in "abcdefghijklmnopqrst"]
    return [
        [{"p": globs}, {"p": [text.replace("*", "**/*", 1) if text[0] == "*" else "**/" + text for text in globs]}],
        [{"p": ["**/" + "/".join("*" * 8) + f"/{number}" for number in range(32)]}, {"p": ["**/" + "/".join("*" * 9) for _ in range(32)]}],
        [
            {"p": ["/".join("**" if place % 2 == 0 else "*a*" for place in range(8))] * 20},
            {"p": ["/".join("aaaaaaaa" for _ in range(20))] * 2},
        ],
        [{"p": [f"*{'a*' * 60}"]}, {"p": ["a" * 500]}, {"p": [f"*{'a?' * 60}*"]}],
        [{"p": [f"{'ab' * number}*" for number in range(1, 33)]}, {"p": [f"{'ab' * number}c*" for number in range(1, 25)]}],
        [{"who": ["x" * 100] * 4}, {"dst": [f"*{number}*" for number in range(31)]}, {"dst": [f"*{number}?*" for number in range(31)]}],
        [{"exp": number + 1_200, "p": ["**/*"] * 8} for number in range(8)],
    ]


def test_whoever_holds_a_lease_cannot_make_verification_expensive(tmp_path: Path) -> None:
    """Counted in steps first, since a busy machine tells times as it likes; `bench/token` measures."""
    trust = open_trust(tmp_path / "t")
    wide = tuple(f"*{number}*/**/*{number % 7}?*/**" for number in range(255))
    _, secret = give_lease(trust, replace(WHOLE_TREE, paths=("**", *wide), destinations=("**", *wide)))
    for chain in hostile_chains():
        text = secret
        try:
            for caveat in chain:
                text = narrow_token(text, caveat)
        except Unauthenticated as error:
            pytest.fail(f"not within the limits, so it tests nothing: {error}")
        began = time.process_time()
        try:
            trust.authenticate(text, NOW)
        except Unauthenticated as error:
            assert "too much effort" in str(error)
        assert time.process_time() - began < 0.05
    trust.close()


def test_comparing_patterns_is_counted_and_ends() -> None:
    deep, wide = "/".join(["**", "*a*"] * 4), "/".join(["*a?*", "**"] * 4)
    effort = Effort(20)
    with pytest.raises(ScopeInvalid, match="effort"):
        for _ in range(20):
            covers(deep, wide, effort)
    assert covers("**", deep, Effort(1)) and covers(deep, deep, Effort(1))

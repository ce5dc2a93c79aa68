"""Who holds what, and whom that stops: the rules, and a machine that holds them to a model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interfaces.webdav.locks import (
    Lock,
    Locks,
    Reach,
    conflicting,
    covering,
    covers,
    decode_lock,
    encode_lock,
    live,
    obstructing,
    without,
)

NAMES = st.lists(st.sampled_from([b"a", b"b"]), max_size=3).map(tuple)


def make(token: str = "t", names: tuple[bytes, ...] = (b"a",), **fields: object) -> Lock:
    given = {"deep": False, "shared": False, "owner": "", "principal": "ana", "seconds": 60, "expires": 100}
    return Lock(token, names, **(given | fields))  # type: ignore[arg-type]


def stops(lock: Lock, reach: Reach, *tokens: str, principal: str = "ana") -> bool:
    return bool(obstructing((lock,), reach, frozenset(tokens), principal))


def test_a_lock_covers_what_it_was_taken_on_and_a_deep_one_what_is_below() -> None:
    assert covers(make(), (b"a",))
    assert not covers(make(), (b"a", b"b"))
    assert covers(make(deep=True), (b"a", b"b", b"c"))
    assert not covers(make(deep=True), (b"ab",))
    assert covers(make(names=(), deep=True), (b"x",))


def test_two_locks_go_together_only_when_both_are_shared() -> None:
    shared = make(shared=True)
    assert conflicting((shared,), make("u", shared=True)) == ()
    assert conflicting((shared,), make("u")) == (shared,)
    assert conflicting((make(),), make("u", shared=True)) == (make(),)


def test_a_deep_lock_minds_what_is_locked_below() -> None:
    inner = make(names=(b"a", b"b"))
    assert conflicting((inner,), make("u", deep=True)) == (inner,)
    assert conflicting((inner,), make("u")) == ()


def test_a_token_opens_only_for_the_principal_that_took_the_lock() -> None:
    assert stops(make(), Reach((b"a",)))
    assert not stops(make(), Reach((b"a",)), "t")
    assert stops(make(), Reach((b"a",)), "t", principal="bob")


def test_a_collection_guards_its_names_and_not_the_content_of_its_files() -> None:
    assert not stops(make(), Reach((b"a", b"x")))
    assert stops(make(), Reach((b"a", b"x"), membership=True))
    assert not stops(make(), Reach((b"a", b"x"), membership=True), "t")
    assert not stops(make(), Reach((b"a", b"x", b"y"), membership=True))


def test_what_goes_with_everything_below_needs_every_token() -> None:
    locks = (make("t", (b"a", b"x")), make("u", (b"a", b"y", b"z")))
    reach = Reach((b"a",), below=True)
    assert obstructing(locks, reach, frozenset({"t"}), "ana") == (locks[1],)
    assert obstructing(locks, reach, frozenset({"t", "u"}), "ana") == ()


def test_one_of_several_shared_locks_is_enough() -> None:
    locks = (make("t", shared=True), make("u", shared=True, principal="bob"))
    assert obstructing(locks, Reach((b"a",)), frozenset({"u"}), "bob") == ()


def test_a_lock_that_ended_is_not_there() -> None:
    assert live((make(expires=100),), 99) == (make(expires=100),)
    assert live((make(expires=100),), 100) == ()


def test_locks_end_with_what_they_were_taken_on() -> None:
    locks = (make("t"), make("u", (b"a", b"x")), make("v", (b"b",)))
    assert without(locks, (b"a",), itself=True) == locks[2:]
    assert without(locks, (b"a",), itself=False) == (locks[0], locks[2])


@given(
    st.builds(
        Lock,
        st.text(),
        st.lists(st.binary(min_size=1).filter(lambda n: n not in {b".", b".."} and not {0, 47} & set(n)), max_size=4).map(tuple),
        st.booleans(),
        st.booleans(),
        st.text(),
        st.text(),
        st.integers(),
        st.integers(),
    )
)
def test_a_lock_is_kept_as_it_was(lock: Lock) -> None:
    assert decode_lock(encode_lock(lock)) == lock


class LockMachine(RuleBasedStateMachine):
    """Locks come and go; no two that exclude each other ever stand on one resource."""

    def __init__(self) -> None:
        super().__init__()
        self.locks: Locks = ()
        self.count = 0

    @rule(names=NAMES, deep=st.booleans(), shared=st.booleans(), principal=st.sampled_from(["ana", "bob"]))
    def take(self, names: tuple[bytes, ...], deep: bool, shared: bool, principal: str) -> None:
        self.count += 1
        wanted = make(str(self.count), names, deep=deep, shared=shared, principal=principal)
        if not conflicting(self.locks, wanted):
            self.locks = (*self.locks, wanted)

    @precondition(lambda self: self.locks)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.locks))
        self.locks = tuple(lock for lock in self.locks if lock != gone)

    @rule(names=NAMES)
    def remove(self, names: tuple[bytes, ...]) -> None:
        self.locks = without(self.locks, names, itself=True)

    @invariant()
    def exclusive_locks_are_alone(self) -> None:
        for names in {lock.names for lock in self.locks}:
            near = covering(self.locks, names)
            assert len(near) <= 1 or all(lock.shared for lock in near)

    @invariant()
    def who_holds_every_token_is_never_stopped_by_ones_own(self) -> None:
        tokens = frozenset(lock.token for lock in self.locks)
        for names in {lock.names for lock in self.locks}:
            stopping = obstructing(self.locks, Reach(names, membership=True, below=True), tokens, "ana")
            assert all(lock.principal == "bob" for lock in stopping)


TestLockMachine = LockMachine.TestCase

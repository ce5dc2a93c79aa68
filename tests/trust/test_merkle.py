"""The Merkle tree, held to the recursive definition of RFC 6962 and to its published values."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.merkle import (
    EMPTY,
    TILE,
    TILE_LEVEL,
    Frontier,
    Nodes,
    grow,
    leaf_hash,
    node_hash,
    perfect_root,
    prove_consistency,
    prove_inclusion,
    subtree_root,
    verify_consistency,
    verify_inclusion,
)

MOST = 65
ENTRIES = [bytes([number]) * (number % 5) for number in range(MOST)]
KNOWN = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    4: "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    5: "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    6: "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    7: "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}
"""The roots over the test leaves that certificate transparency's implementations have always agreed on."""
INPUTS = [
    bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]


def naive(leaves: list[bytes]) -> bytes:
    """Return the Merkle tree hash as RFC 6962 defines it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + naive(leaves[:split]) + naive(leaves[split:])).digest()


def nodes_of(entries: list[bytes]) -> Nodes:
    return lambda level, position: naive(entries[position << level : (position + 1) << level])


NODES = nodes_of(ENTRIES)


@pytest.mark.parametrize("size", range(MOST + 1))
def test_a_root_is_the_recursive_definition(size: int) -> None:
    frontier = Frontier()
    frontier.add([leaf_hash(entry) for entry in ENTRIES[:size]])
    assert frontier.root() == naive(ENTRIES[:size]) == subtree_root(NODES, 0, size)
    assert frontier.size == size and len(frontier.roots) == bin(size).count("1")


@pytest.mark.parametrize("size", KNOWN)
def test_a_root_is_the_published_one(size: int) -> None:
    frontier = Frontier()
    frontier.add([leaf_hash(entry) for entry in INPUTS[:size]])
    assert frontier.root().hex() == KNOWN[size]


def test_inclusion_is_proven_for_every_leaf_of_every_size_and_for_nothing_else() -> None:
    for size in range(1, MOST + 1):
        root = naive(ENTRIES[:size])
        for index in range(size):
            leaf, proof = leaf_hash(ENTRIES[index]), prove_inclusion(NODES, index, size)
            assert verify_inclusion(leaf, index, size, proof, root)
            assert not verify_inclusion(leaf_hash(b"another"), index, size, proof, root)
            assert not verify_inclusion(leaf, index, size, proof, naive([*ENTRIES[:size], b"x"]))
            assert not verify_inclusion(leaf, index, size, [*proof, root], root)
            assert not any(verify_inclusion(leaf, index, size, proof[:at] + proof[at + 1 :], root) for at in range(len(proof)))
            for at, value in enumerate(proof):
                assert not verify_inclusion(leaf, index, size, [*proof[:at], node_hash(value, value), *proof[at + 1 :]], root)


def test_a_proof_of_inclusion_counts_for_its_own_place_only() -> None:
    for size in range(1, 34):
        root = naive(ENTRIES[:size])
        for index in range(size):
            leaf, proof = leaf_hash(ENTRIES[index]), prove_inclusion(NODES, index, size)
            accepted = [other for other in range(-1, size + 2) if verify_inclusion(leaf, other, size, proof, root)]
            assert accepted == [index]


def test_consistency_is_proven_for_every_pair_of_sizes_and_for_nothing_else() -> None:
    for second in range(MOST + 1):
        later = naive(ENTRIES[:second])
        for first in range(second + 1):
            earlier, proof = naive(ENTRIES[:first]), prove_consistency(NODES, first, second)
            assert verify_consistency(first, second, earlier, later, proof)
            assert not verify_consistency(first, second, earlier, later, [*proof, later])
            other = naive([*ENTRIES[: first - 1], b"rewritten"]) if first else b"\0" * 32
            assert not verify_consistency(first, second, other, later, proof)
            if first not in (0, second):
                assert not verify_consistency(first, second, earlier, naive([b"rewritten", *ENTRIES[1:second]]), proof)
                assert not any(verify_consistency(first, second, earlier, later, proof[:at] + proof[at + 1 :]) for at in range(len(proof)))
            for at, value in enumerate(proof):
                assert not verify_consistency(first, second, earlier, later, [*proof[:at], node_hash(value, value), *proof[at + 1 :]])


def test_a_fork_has_no_proof() -> None:
    forked = [*ENTRIES[:10], b"forked", *ENTRIES[11:]]
    for first in range(11, 33):
        for second in range(first, 33):
            proof = prove_consistency(nodes_of(forked), first, second)
            assert not verify_consistency(first, second, naive(ENTRIES[:first]), naive(forked[:second]), proof)


@given(st.integers(-3, 100), st.integers(-3, 100), st.lists(st.binary(max_size=40), max_size=8), st.binary(max_size=40))
def test_verification_answers_whatever_it_is_given(first: int, second: int, proof: list[bytes], root: bytes) -> None:
    assert verify_inclusion(root, first, second, proof, root) in (True, False)
    assert verify_consistency(first, second, root, b"another", proof) is (
        first == 0 and second >= 0 and not proof and root == EMPTY and second > 0
    )


@given(st.lists(st.integers(1, 40), max_size=12))
def test_a_frontier_that_stops_and_goes_on_is_the_same(steps: list[int]) -> None:
    frontier, entries = Frontier(), [str(number).encode() for number in range(sum(steps))]
    for step in steps:
        frontier = Frontier(frontier.size, frontier.roots)
        frontier.add([leaf_hash(entry) for entry in entries[frontier.size : frontier.size + step]])
    assert frontier.root() == naive(entries)


@given(st.integers(1, 20))
def test_kept_nodes_are_those_of_the_tree(tiles: int) -> None:
    leaves = [leaf_hash(str(number).encode()) for number in range(tiles * TILE)]
    kept: dict[tuple[int, int], bytes] = {}
    frontier = Frontier()
    for position in range(tiles):
        tile = perfect_root(leaves[position * TILE : (position + 1) * TILE])
        kept |= {(level, place): found for level, place, found in grow(position, tile, lambda level, place: kept[level, place])}
        frontier.add_subtree(tile, TILE_LEVEL)
    assert subtree_root(lambda level, position: kept[level, position], 0, tiles * TILE) == frontier.root()
    for (level, position), found in kept.items():
        assert found == perfect_root(leaves[position << level : (position + 1) << level])
    assert len(kept) < 2 * tiles

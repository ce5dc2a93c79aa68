"""Write locks (RFC 4918 sections 6 and 7): who holds what, and whom that stops. Pure.

1. A lock covers the resource it was taken on; a deep one covers everything below it too, what comes to be there later included.
2. Exclusive: nobody else has a lock on what it covers. Shared: others may hold shared ones there.
3. What is covered is changed only by who submits the token of one of the locks on it and is the principal that took that lock:
   a token alone opens nothing.
4. A lock on a collection, deep or not, also guards which names it has: making and removing one needs the token.
5. A lock that ended is not there. It ends by itself: nothing depends on a client that comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interfaces.web.names import Names, encode_path, split_path


@dataclass(frozen=True, slots=True)
class Lock:
    """A write lock on `names` of a branch. `owner` is the client's own XML about itself; times are seconds, `expires` since the epoch."""

    token: str
    names: Names
    deep: bool
    shared: bool
    owner: str
    principal: str
    seconds: int
    expires: int


Locks = tuple[Lock, ...]
"""The locks of a branch."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a request changes: the resource at `names`; with `membership` also that its name exists; with `below` all that is below it."""

    names: Names
    membership: bool = False
    below: bool = False


def live(locks: Iterable[Lock], now: int) -> Locks:
    """Return the locks that did not end yet."""
    return tuple(lock for lock in locks if lock.expires > now)


def covers(lock: Lock, names: Names) -> bool:
    """Tell whether a lock covers a resource."""
    return lock.names == names or (lock.deep and names[: len(lock.names)] == lock.names)


def covering(locks: Iterable[Lock], names: Names) -> Locks:
    """Return the locks on a resource."""
    return tuple(lock for lock in locks if covers(lock, names))


def below(locks: Iterable[Lock], names: Names) -> Locks:
    """Return the locks taken on what is below a collection."""
    return tuple(lock for lock in locks if len(lock.names) > len(names) and lock.names[: len(names)] == names)


def conflicting(locks: Locks, wanted: Lock) -> Locks:
    """Return the locks that `wanted` cannot exist beside."""
    near = covering(locks, wanted.names) + (below(locks, wanted.names) if wanted.deep else ())
    return tuple(lock for lock in near if not (lock.shared and wanted.shared))


def obstructing(locks: Locks, reach: Reach, submitted: frozenset[str], principal: str) -> Locks:
    """Return the locks that stop a principal who submits these tokens; empty when nothing does."""
    if not locks:
        return ()
    affected = [reach.names]
    if reach.membership and reach.names:
        affected.append(reach.names[:-1])
    if reach.below:
        affected.extend(lock.names for lock in below(locks, reach.names))
    found = (lock for names in affected for lock in _stopping(covering(locks, names), submitted, principal))
    return tuple(dict.fromkeys(found))


def held(lock: Lock, submitted: frozenset[str], principal: str) -> bool:
    """Tell whether a principal that submits these tokens acts under the lock."""
    return lock.token in submitted and lock.principal == principal


def without(locks: Locks, names: Names, *, itself: bool) -> Locks:
    """Return the locks that stay when what is below `names` goes, and (`itself`) what is there."""
    gone = set(below(locks, names))
    return tuple(lock for lock in locks if lock not in gone and not (itself and lock.names == names))


def encode_lock(lock: Lock) -> dict[str, Any]:
    """Return a lock as a JSON object."""
    return {
        "token": lock.token,
        "path": encode_path(lock.names),
        "deep": lock.deep,
        "shared": lock.shared,
        "owner": lock.owner,
        "principal": lock.principal,
        "seconds": lock.seconds,
        "expires": lock.expires,
    }


def decode_lock(document: Mapping[str, Any]) -> Lock:
    """Return what `encode_lock` was given."""
    fields = dict(document)
    return Lock(names=split_path(fields.pop("path").encode()), **fields)


def _stopping(near: Locks, submitted: frozenset[str], principal: str) -> Locks:
    return () if any(held(lock, submitted, principal) for lock in near) else near

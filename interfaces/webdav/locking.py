"""LOCK and UNLOCK.

1. Who could not write a resource cannot lock it: a lease that may only read keeps nobody out.
2. A lock on a name that nothing stands for makes an empty file there, whose name is thereby taken (RFC 4918 section 7.3).
3. Whether a lock goes beside the others and its entry into the book are one step; two workers never both grant.
4. A refresh needs the token in ``If`` and the principal that took the lock; it says anew how long the lock lasts.
5. A lock is on a place, as the client's addresses are: it does not move along, and it ends when what it was taken on is removed.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes
from interfaces.web.asgi import Reply
from interfaces.webdav.bodies import LockWish, parse_lockinfo
from interfaces.webdav.faults import XML, Objection
from interfaces.webdav.headers import Depth, read_depth, read_lock_token, read_timeout
from interfaces.webdav.locks import Lock, Locks, Reach, conflicting, covering, covers, held
from interfaces.webdav.markup import document
from interfaces.webdav.properties import Surroundings, discovery
from interfaces.webdav.terms import Terms, locked
from interfaces.webdav.visit import Visit

FILE_MODE = 0o644
_DEPTHS = frozenset({Depth.ZERO, Depth.INFINITY})
_MISMATCH = "<D:lock-token-matches-request-uri/>"


def lock(visit: Visit, fresh_token: Callable[[], str]) -> Reply:
    """Take a lock, or (without a body) refresh one. Blocks. Raises `Fault`."""
    if not visit.body.strip():
        return _refresh(visit)
    wish = parse_lockinfo(visit.body)
    depth = read_depth(visit.request.headers, Depth.INFINITY, _DEPTHS)
    _require_writable(visit)
    Terms(visit).require(visit.place.attributes, *([Reach(visit.place.names, membership=True)] if visit.place.attributes is None else []))
    wanted = _make(visit, wish, fresh_token(), deep=depth is Depth.INFINITY)
    visit.book.change(lambda locks: _beside(visit, locks, wanted))
    made = visit.place.attributes is None and _make_empty(visit, wanted)
    return _granted(visit, wanted, 201 if made else 200)


def unlock(visit: Visit) -> Reply:
    """End a lock. Blocks. Raises a 409 `Objection` when there is none with this token on the resource, `Kind.DENIED` for another's."""
    token = read_lock_token(visit.request.headers)

    def end(locks: Locks) -> Locks:
        found = next((lock for lock in covering(locks, visit.place.names) if lock.token == token), None)
        if found is None:
            raise Objection(
                409, Kind.CONFLICT, f"{visit.place.title} has no lock with this token", _MISMATCH, hint="it may have ended by itself"
            )
        if found.principal != visit.caller.principal:
            raise Fault(Kind.DENIED, f"the lock on {visit.place.title} is another principal's", hint="wait until it ends")
        return tuple(lock for lock in locks if lock is not found)

    visit.book.change(end)
    return Reply(204)


def _refresh(visit: Visit) -> Reply:
    visit.place.existing()
    terms = Terms(visit)
    terms.require(visit.place.attributes)
    seconds, principal = read_timeout(visit.request.headers), visit.caller.principal

    def mine(lock: Lock) -> bool:
        return covers(lock, visit.place.names) and held(lock, terms.submitted, principal)

    def again(locks: Locks) -> Locks:
        if not any(map(mine, locks)):
            raise Objection(412, Kind.PRECONDITION, f"no lock on {visit.place.title} is refreshed by this", _MISMATCH, hint="take it again")
        ends = visit.book.now() + seconds
        return tuple(replace(lock, seconds=seconds, expires=ends) if mine(lock) else lock for lock in locks)

    locks = visit.book.change(again)
    return _discovered(visit, tuple(filter(mine, locks)), 200, [])


def _require_writable(visit: Visit) -> None:
    place = visit.place
    parent = place.directory() if place.names else place.existing().node
    place.workspace.require_writable(parent, place.name)


def _make(visit: Visit, wish: LockWish, token: str, *, deep: bool) -> Lock:
    seconds = read_timeout(visit.request.headers)
    ends = visit.book.now() + seconds
    return Lock(token, visit.place.names, deep, wish.shared, wish.owner, visit.caller.principal, seconds, ends)


def _beside(visit: Visit, locks: Locks, wanted: Lock) -> Locks:
    in_the_way = conflicting(locks, wanted)
    if in_the_way:
        raise locked(visit, in_the_way, "no-conflicting-lock")
    return (*locks, wanted)


def _make_empty(visit: Visit, wanted: Lock) -> bool:
    """Make the empty file that a lock on a free name stands on, and tell whether it was made; without it the lock goes again."""
    place = visit.place

    def still_free(current: Attributes | None) -> None:
        if current is not None:
            raise Fault(Kind.EXISTS, f"{place.title} was made meanwhile")

    try:
        place.workspace.publish(place.directory(), place.name, FILE_MODE, io.BytesIO(), condition=still_free)
    except Fault as fault:
        if fault.kind is Kind.EXISTS:
            return False
        visit.book.change(lambda locks: tuple(lock for lock in locks if lock.token != wanted.token))
        raise
    return True


def _granted(visit: Visit, wanted: Lock, status: int) -> Reply:
    return _discovered(visit, (wanted,), status, [("lock-token", f"<{wanted.token}>")])


def _discovered(visit: Visit, locks: Locks, status: int, headers: list[tuple[str, str]]) -> Reply:
    around = Surroundings(locks, None, visit.book.now(), visit.address.base, visit.address.href)
    return Reply(status, [XML, ("cache-control", "no-store"), *headers], document("prop", [discovery(locks, around)]))

"""What has to be so for a request to change something: conditions, beliefs, locks.

1. Asked in this order: the conditions of HTTP, the ``If`` header (both 412), then the locks (423): who believes the wrong thing learns that
   first, as the standard's test suite wants it.
2. It is asked twice where it counts: before a body is taken, and in the very moment of the change, through the `Condition` of the port.
   Between the two another client may have written, or locked.
3. Other places that the ``If`` header speaks of are looked up once, before: in the moment of a change nothing is looked up in the tree.
4. A lock is named in a refusal only where the caller sees the place it was taken on. Whether the caller may write at all is decided before
   any lock is looked at: whoever sees nothing of a place learns nothing of its locks.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes
from interfaces.web.conditions import require, tag_of, validators_of
from interfaces.web.names import Names
from interfaces.webdav.faults import Objection
from interfaces.webdav.headers import raw_path, strip_prefix
from interfaces.webdav.locks import Lock, Locks, Reach, covering, obstructing
from interfaces.webdav.markup import plain
from interfaces.webdav.places import locate
from interfaces.webdav.states import Belief, State, holds, parse_if, submitted_tokens
from interfaces.webdav.visit import Visit

_CONDITIONAL = ("if-match", "if-none-match", "if-unmodified-since")


class Terms:
    """The conditions of one request. For one thread."""

    def __init__(self, visit: Visit) -> None:
        """Read the conditions of a request. Raises `Kind.INVALID` for an ``If`` header that cannot be read."""
        text = visit.request.headers.get("if")
        self._visit = visit
        self._beliefs: tuple[Belief, ...] = parse_if(text) if text is not None else ()
        self._elsewhere = {belief.address: self._look_up(belief.address) for belief in self._beliefs if belief.address}
        self.submitted = submitted_tokens(self._beliefs)

    def require(self, current: Attributes | None, *reaches: Reach) -> None:
        """Return when the request, which changes so much, may go on at a place in the state `current` (None: nothing there).

        Raises `Kind.PRECONDITION`, and a 423 `Objection` when a lock is in the way.
        """
        headers = self._visit.request.headers
        if any(name in headers for name in _CONDITIONAL):
            require(self._visit.request.method, headers, None if current is None else validators_of(current))
        locks = self._visit.book.read()
        self.require_beliefs(current, locks)
        for reach in reaches:
            self.require_unlocked(locks, reach)

    def require_beliefs(self, current: Attributes | None, locks: Locks) -> None:
        """Return when the ``If`` header, if there is one, holds. Raises `Kind.PRECONDITION`."""
        if self._beliefs and not holds(self._beliefs, lambda address: self._state(address, current, locks)):
            raise Fault(Kind.PRECONDITION, "what the If header says is not so", hint="read the entity tag and the lock again, then repeat")

    def require_unlocked(self, locks: Locks, reach: Reach) -> None:
        """Return when no lock stops a request that changes so much. Raises a 423 `Objection`."""
        stopping = obstructing(locks, reach, self.submitted, self._visit.caller.principal)
        if stopping:
            raise locked(self._visit, stopping, "lock-token-submitted")

    def _state(self, address: str, current: Attributes | None, locks: Locks) -> State:
        if not address:
            return _state_of(self._visit.place.names, current, locks)
        names, attributes = self._elsewhere[address]
        if names is None:
            return State()
        here = names == self._visit.place.names
        return _state_of(names, current if here else attributes, locks)

    def _look_up(self, address: str) -> tuple[Names | None, Attributes | None]:
        """Return place and attributes of a tag; a tag that is no place of this branch has no state."""
        try:
            names = strip_prefix(raw_path(urlsplit(address).path), self._visit.address.base.encode())
        except (ValueError, Fault):
            return None, None
        if names is None:
            return None, None
        place = locate(self._visit.place.workspace, names)
        return place.names, place.attributes


def check_reading(visit: Visit) -> None:
    """Return when a request that changes nothing may go on: its ``If`` header, if it has one, holds. Raises `Kind.PRECONDITION`."""
    if "if" in visit.request.headers:
        Terms(visit).require_beliefs(visit.place.attributes, visit.book.read())


def locked(visit: Visit, locks: Locks, precondition: str) -> Objection:
    """Return the refusal that names the locks in the way, as far as the caller sees where they were taken."""
    hrefs = "".join(f"<D:href>{plain(visit.address.href(lock.names))}</D:href>" for lock in locks if _sees(visit, lock))
    return Objection(
        423,
        Kind.CONFLICT,
        f"{visit.place.title} is locked",
        f"<D:{precondition}>{hrefs}</D:{precondition}>",
        hint="wait until the lock ends, or send its token in an If header",
    )


def _sees(visit: Visit, lock: Lock) -> bool:
    place = locate(visit.place.workspace, lock.names, follow=False)
    return place.attributes is not None or lock.names == visit.place.names


def _state_of(names: Names, attributes: Attributes | None, locks: Locks) -> State:
    etag = tag_of(attributes) if attributes is not None and attributes.content else ""
    return State(etag, frozenset(lock.token for lock in covering(locks, names)))

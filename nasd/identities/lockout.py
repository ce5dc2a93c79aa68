"""When somebody who keeps presenting wrong credentials has to wait, and for how long. Pure.

1. What is counted is a pair: what was presented (a name, never a secret) and the address it came from. So nobody locks out anybody
   at another address, and never at the Unix socket, whose requests have no address and are not counted.
2. The first `FREE` failures cost nothing. Each further one that was looked at doubles the wait, up to `LONGEST`; what is refused during a
   wait is not looked at and does not lengthen it.
3. An address is counted as a whole as well, with more patience (`FREE_ADDRESS`), unless many share it: on the loopback every agent
   of the machine has the same one.
4. After `QUIET` seconds without a failure everything is forgotten. A burst is what lies between two such pauses; it is told once.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

FREE = 5
FREE_ADDRESS = 100
FIRST_WAIT = 1.0
LONGEST = 300.0
QUIET = 900.0


@dataclass(frozen=True, slots=True)
class Strikes:
    """How often something failed, when last, and until when it has to wait."""

    count: int = 0
    last: float = 0.0
    until: float = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds that are left to wait, 0 when there is nothing to wait for."""
        return max(0.0, min(self.until - now, LONGEST)) if not self.is_over(now) else 0.0

    def is_over(self, now: float) -> bool:
        """Tell whether this is forgotten: long ago, or in a future that a clock set back has not reached."""
        return now - self.last >= QUIET or self.last - now > LONGEST


def strike(before: Strikes, now: float, free: int) -> Strikes:
    """Return what one more failure makes of `before`, when `free` failures cost nothing."""
    count = 1 if before.is_over(now) else before.count + 1
    return Strikes(count, now, now + wait_after(count, free))


def wait_after(count: int, free: int) -> float:
    """Return the seconds that the failure number `count` costs."""
    if count <= free:
        return 0.0
    # The exponent is bounded before it is used: nobody makes this compute a power with a million digits.
    doublings = min(count - free - 1, 16)
    return min(FIRST_WAIT * (1 << doublings), LONGEST)


def begins_burst(before: Strikes, after: Strikes, free: int) -> bool:
    """Tell whether it was this failure that made somebody wait for the first time: the moment to tell people."""
    return after.count == free + 1 and before.count != after.count


def is_shared(address: str) -> bool:
    """Tell whether an address says nothing about who is behind it: none, the loopback, or one that cannot be read."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def block_of(address: str) -> str:
    """Return what is counted as one address: an IPv4 address, or the /64 of an IPv6 one, which one customer has whole."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))

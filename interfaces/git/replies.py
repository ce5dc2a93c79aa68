"""What is answered in git's protocol: references on offer, the fate of a push, failures. Pure.

1. A client that asked for side bands reads its report on band 1 and people's text on band 2, where git prints ``remote:`` before it.
2. A refused reference is reported with the sentence a person needs, in one line; it never ends the report of the others.
3. A fault before anything was agreed is an ``ERR`` packet, which every client prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interfaces.faults import Fault
from interfaces.git.pktline import MOST, Mark, encode
from interfaces.git.requests import NOTHING

DATA, PROGRESS = b"\x01", b"\x02"
"""The bands."""

CAPABILITIES = (
    "report-status",
    "report-status-v2",
    "delete-refs",
    "side-band-64k",
    "quiet",
    "atomic",
    "ofs-delta",
    "push-options",
    "object-format=sha1",
    "agent=agent-nas",
)
"""What a push may ask for. Deleting is offered so that refusing it says why."""

KEEPALIVE = encode(PROGRESS)
"""Says nothing, so that nobody on the way takes silence for the end."""


def announce(service: str) -> bytes:
    """Return what precedes the references on offer over HTTP in versions 0 and 1."""
    return encode(f"# service={service}\n".encode()) + encode(Mark.FLUSH)


def offer(refs: Mapping[str, str]) -> bytes:
    """Return the references that a push finds, with what it may ask for."""
    names = sorted(refs)
    lines = [f"{refs[name]} {name}" for name in names] or [f"{NOTHING} capabilities^{{}}"]
    lines[0] += "\0" + " ".join(CAPABILITIES)
    return b"".join(encode(f"{line}\n".encode()) for line in lines) + encode(Mark.FLUSH)


def report(unpacked: str, fates: Mapping[str, str]) -> bytes:
    """Return the report of a push: what unpacking came to (``ok`` or why not), and for each reference why not (empty: it is done)."""
    lines = [f"unpack {unpacked}"]
    lines += [f"ng {name} {_one_line(why)}" if why else f"ok {name}" for name, why in fates.items()]
    return b"".join(encode(f"{line}\n".encode()) for line in lines) + encode(Mark.FLUSH)


def wrap(band: bytes, data: bytes) -> bytes:
    """Return data on a band, in as many packets as it needs."""
    return b"".join(encode(band + piece) for piece in _pieces(data, MOST - 1))


def tell(lines: Sequence[str]) -> bytes:
    """Return lines for people on the band that git prints."""
    return wrap(PROGRESS, "".join(f"{line}\n" for line in lines).encode()) if lines else b""


def refuse(message: str) -> bytes:
    """Return a failure that ends a conversation."""
    return encode(f"ERR {_one_line(message)}\n".encode()[:MOST])


def sentence(fault: Fault) -> str:
    """Return a fault in one line: what happened, and what to do next."""
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]

"""Packets, the frames of git's protocol (gitprotocol-common). Pure.

1. A packet is four hexadecimal digits, which count themselves, and that much data; ``0000`` ends a message, ``0001`` divides one, ``0002``
   ends a response. ``0003`` and ``0004`` mean nothing.
2. Every length is checked before a byte of data is waited for; none is longer than `LONGEST`.
3. What is written here can be read here, byte for byte.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from interfaces.faults import Fault, Kind

HEAD = 4
"""Bytes in front of the data."""

LONGEST = 65520
"""The longest packet, its four digits included."""

MOST = LONGEST - HEAD
"""The most data in one packet, bytes."""

_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class Mark(enum.Enum):
    """A packet that carries nothing but its meaning."""

    FLUSH = b"0000"
    DELIMITER = b"0001"
    END = b"0002"


Packet = bytes | Mark


def encode(packet: Packet) -> bytes:
    """Return a packet as it travels."""
    if isinstance(packet, Mark):
        return packet.value
    assert len(packet) <= MOST
    return b"%04x%b" % (len(packet) + HEAD, packet)


def read_head(head: bytes) -> Mark | int:
    """Return what four digits say: a mark, or how many bytes of data follow. Raises `Kind.INVALID`."""
    if len(head) != HEAD or not _DIGITS.issuperset(head):
        raise _malformed()
    length = int(head, 16)
    if length < HEAD:
        try:
            return Mark(b"%04x" % length)
        except ValueError:
            raise _malformed() from None
    if length > LONGEST:
        raise _malformed()
    return length - HEAD


def split_packets(data: bytes) -> Iterator[Packet]:
    """Yield the packets of a whole message. Raises `Kind.INVALID`."""
    position = 0
    while position < len(data):
        head = read_head(data[position : position + HEAD])
        position += HEAD
        if isinstance(head, Mark):
            yield head
            continue
        if position + head > len(data):
            raise _malformed()
        yield data[position : position + head]
        position += head


def _malformed() -> Fault:
    return Fault(Kind.INVALID, "the request is not in git's protocol", hint="talk to this address with git")

"""What clients ask, read from their packets: which objects, which changes of references. Pure.

1. A request is never understood further than a decision needs: git itself answers it. What names objects is found wherever it stands.
2. ``want`` names what is to be sent: it is checked, and an object that is not shown ends the request in git's own words. ``have`` and
   ``shallow`` name what the client has: what is not shown is left out, as git itself leaves out what it does not know.
3. A malformed line is a refused request, never a skipped line.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.git.pktline import Packet

NOTHING = "0" * 40
"""The id that stands for no object."""

_ID = re.compile(rb"[0-9a-f]{40}")
_REFERENCE = re.compile(rb"refs/[!-~\x80-\xff]{1,250}")
_PROTOCOL = re.compile(r"version=[012](?::[a-z0-9-]{1,32}(?:=[A-Za-z0-9./_-]{1,64})?){0,8}")


class Naming(enum.Enum):
    """Why a line of a request names an object."""

    WANT = b"want "
    HAVE = b"have "
    SHALLOW = b"shallow "


@dataclass(frozen=True, slots=True)
class Named:
    """An object that a line names, and why."""

    naming: Naming
    object: str


@dataclass(frozen=True, slots=True)
class Command:
    """One change of a reference: from an id to an id, either may be `NOTHING`."""

    old: str
    new: str
    reference: str

    @property
    def deletes(self) -> bool:
        """Tell whether the reference is to go."""
        return self.new == NOTHING


def read_protocol(text: str) -> str:
    """Return the protocol a client asks for as git's environment has it, empty for anything but a plain version."""
    return text if _PROTOCOL.fullmatch(text) else ""


def is_version_2(protocol: str) -> bool:
    """Tell whether a protocol is version 2."""
    return protocol.partition(":")[0] == "version=2"


def find_named(packet: Packet) -> Named | None:
    """Return the object that a line of a fetch names, None when it names none. Raises `Kind.INVALID`."""
    if not isinstance(packet, bytes):
        return None
    for naming in Naming:
        if packet.startswith(naming.value):
            start = len(naming.value)
            return Named(naming, _read_id(packet[start : start + 40]))
    return None


def read_command(packet: bytes) -> tuple[Command | None, frozenset[str]]:
    """Return the change that a line of a push asks for (None for ``shallow``) and the capabilities after it. Raises `Kind.INVALID`."""
    line, _, capabilities = packet.rstrip(b"\n").partition(b"\0")
    asked = frozenset(capabilities.decode("ascii", "replace").split())
    if line.startswith(Naming.SHALLOW.value):
        _read_id(line[len(Naming.SHALLOW.value) :])
        return None, asked
    old, new, reference = line[:40], line[41:81], line[82:]
    if line[40:41] != b" " or line[81:82] != b" " or not _REFERENCE.fullmatch(reference):
        raise Fault(Kind.INVALID, "a command of the push cannot be read", hint="push with git")
    return Command(_read_id(old), _read_id(new), reference.decode("utf-8", "backslashreplace")), asked


def read_options(packets: Sequence[Packet]) -> tuple[str, ...]:
    """Return the options of a push, one a packet."""
    return tuple(packet.rstrip(b"\n").decode("utf-8", "backslashreplace") for packet in packets if isinstance(packet, bytes))


def _read_id(digits: bytes) -> str:
    if not _ID.fullmatch(digits):
        raise Fault(Kind.INVALID, "a line of the request names no object id", hint="this store speaks SHA-1")
    return digits.decode("ascii")

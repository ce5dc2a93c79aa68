"""What the suite asks of every door, and what a door answered.

1. The truth is the port itself, asked in this process. A door passes when it decided the same, for the same reason, and left the same
   record and the same files.
2. A refusal is a word of the protocol (an errno, a status, a code). Each door's client has a total table from these words to `Kind`; a
   word may stand for several kinds, and one that the table does not know fails the suite.
3. Every operation works below a directory of its own, so that what it left is told apart from what the others left.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from interfaces.faults import Kind

NEEDLE = "needle"
"""The text that the search looks for; one of the two files has it."""
FIRST = b"one line with a needle in it\n"
SECOND = b"another line\n"
WRITTEN = b"these bytes came through a door\n"


class Operation(enum.Enum):
    """What can be done with a file."""

    READ = "read"
    LIST = "list"
    STAT = "stat"
    WRITE = "write"
    CREATE = "create"
    APPEND = "append"
    COPY = "copy"
    MOVE = "move"
    DELETE = "delete"
    SEARCH = "search"


class Refused(Exception):
    """A door said no; `word` is how."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


@dataclass(frozen=True, slots=True)
class Seen:
    """What `stat` tells in every protocol."""

    is_directory: bool
    size: int


Answer = bytes | tuple[str, ...] | Seen | None
"""Content, names, attributes, or nothing but success."""


class Client(Protocol):
    """Somebody's client of one door, for one lease on one branch. Every method raises `Refused`."""

    told: list[bytes]
    """Everything the door said, as it said it, since somebody emptied it."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def list(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory, ordered."""

    def stat(self, path: str) -> Seen:
        """Return what a name stands for."""

    def write(self, path: str, content: bytes) -> None:
        """Replace the content of a file."""

    def create(self, path: str, content: bytes) -> None:
        """Make a file."""

    def append(self, path: str, content: bytes) -> None:
        """Add to the end of a file."""

    def copy(self, path: str, target: str) -> None:
        """Make a copy of a file."""

    def move(self, path: str, target: str) -> None:
        """Give a file another name."""

    def delete(self, path: str) -> None:
        """Remove a file."""

    def search(self, path: str, text: str) -> tuple[str, ...]:
        """Return the names of the files directly in a directory that hold a text, ordered."""

    def close(self) -> None:
        """Leave."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The door did it."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Denied:
    """The door said no in a word that stands for one of `kinds`."""

    word: str
    kinds: frozenset[Kind]


Decided = Allowed | Denied


@dataclass(frozen=True, slots=True)
class Trace:
    """What an operation left: refusals in the record (action, path, rule), paths in the read manifest, and the files there are."""

    denied: frozenset[tuple[str, str, str]] = frozenset()
    read: frozenset[str] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation under one lease through one door."""

    decided: Decided
    told: tuple[bytes, ...]
    trace: Trace = field(default_factory=Trace)


def folder_of(root: str, operation: Operation) -> str:
    """Return the directory an operation works in."""
    return f"{root}/{operation.value}"


def perform(client: Client, operation: Operation, root: str, leaf: str) -> Answer:
    """Have a client do one operation. Raises `Refused`."""
    folder = folder_of(root, operation)
    path, target = f"{folder}/{leaf}", f"{folder}/target"
    match operation:
        case Operation.READ:
            return client.read(path)
        case Operation.LIST:
            return client.list(folder)
        case Operation.STAT:
            return client.stat(path)
        case Operation.SEARCH:
            return client.search(folder, NEEDLE)
        case Operation.WRITE:
            client.write(path, WRITTEN)
        case Operation.CREATE:
            client.create(path, WRITTEN)
        case Operation.APPEND:
            client.append(path, WRITTEN)
        case Operation.COPY:
            client.copy(path, target)
        case Operation.MOVE:
            client.move(path, target)
        case Operation.DELETE:
            client.delete(path)
    return None


def seed(leaf: str) -> dict[Operation, dict[str, bytes]]:
    """Return the files that each operation finds in its directory."""
    return {operation: {"second": SECOND} if operation is Operation.CREATE else {leaf: FIRST, "second": SECOND} for operation in Operation}

"""What this door needs beside `interfaces.port`, in its own words; ``nasd`` supplies it.

1. A `View` is what one caller sees of the histories, as a bare repository on this machine that holds nothing else under any name. Git reads
   it; what a client names is asked of it first.
2. Every method raises `Fault` and nothing else, may be called from several threads, and may block, but for those that say otherwise.
3. `check` and `spend` decide and account while bytes flow, so a lease that ends in the middle ends the transfer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from interfaces.git.requests import Command
from interfaces.port import Caller, Content


class LargeContent(Protocol):
    """The content of a large file, open."""

    def read(self, offset: int, size: int, /) -> bytes:
        """Return up to `size` bytes at `offset`; fewer only at the end."""

    def close(self) -> None:
        """Release it. Repeats do nothing."""


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A large file: the SHA-256 of its content (64 hexadecimal digits) and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Received:
    """What a push became, and lines that its sender should read."""

    head: str
    notices: Sequence[str] = ()


class View(Protocol):
    """What one caller sees of the histories. It was current when it was opened, what was not committed yet included."""

    folder: Path
    head: str
    """The full name of the reference that a clone checks out."""
    refs: Mapping[str, str]
    """Every reference by its full name, with its id."""

    def check(self) -> None:
        """Raise `Kind.EXPIRED` or `Kind.REVOKED` once the authority behind this view has ended. Takes microseconds."""

    def spend(self, read: int) -> None:
        """Account for bytes that leave. Raises `Kind.BUDGET`. Takes microseconds."""

    def reaches(self, objects: Iterable[str]) -> bool:
        """Tell whether each object is a commit on offer or is reached from one."""

    def has_commit(self, commit: str) -> bool:
        """Tell whether a commit is on offer or reached from one that is."""

    def explain_refusal(self, command: Command) -> str:
        """Return why a change of a reference is not possible, whatever is sent for it; empty when it may be."""

    def open_quarantine(self) -> Path:
        """Make an empty repository to unpack a push in, which borrows what is on offer."""

    def receive(self, quarantine: str, command: Command, options: Sequence[str]) -> Received:
        """Take in what was unpacked in a quarantine: decide it, record it, move the branch."""

    def discard(self, quarantine: str) -> None:
        """Remove a quarantine. Repeats do nothing."""

    def open_large(self, file: LargeFile) -> LargeContent:
        """Open the large file that a pointer on offer stands for. Raises `Kind.NOT_FOUND`."""

    def has_large(self, file: LargeFile) -> bool:
        """Tell whether `open_large` finds it, or whether this caller uploaded it for a push to come."""

    def put_large(self, file: LargeFile, content: Content) -> None:
        """Keep the content of a large file for a push to come. Raises `Kind.INVALID` when it is not what its name says."""

    def large_paths(self) -> Sequence[bytes]:
        """Return the paths of the head's tree where pointers stand for large files."""

    def sees(self, path: bytes) -> bool:
        """Tell whether a path exists, or could exist, for the caller."""

    def close(self) -> None:
        """Flush what was counted and release everything. Repeats do nothing."""


class Repositories(Protocol):
    """Every history there is, for who may see it."""

    def open(self, caller: Caller, branch: str) -> View:
        """Open a view whose head is a branch. Raises `Kind.NOT_FOUND` also for what the caller may not see."""

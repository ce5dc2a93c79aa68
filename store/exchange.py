"""What an engine promises whose histories git's own programs read and write (`store.model.Capability.GIT_EXCHANGE`).

1. Git reads what `show` put there: some commits under names, with what they reach of what is kept, and nothing else is named. Commits of
   which everything is kept have their own ids; others have ids of their own, the same ones every time.
2. Git writes into a quarantine, where nobody else looks. `examine` says what came; `Arrival.accept` alone makes it part of the store, whole
   and durably, and moves the branch by compare-and-set.
3. What was pushed onto a history that leaves something out is put back onto the whole one; who pushed it sees the ids they pushed.
4. An object counts as pushed when it was sent. One that exists and that the sender does not see cannot be had by naming it.
5. `show` and `open_quarantine` are for any process; what changes the store (`publish`, `examine`, `accept`) is the owner's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from store.model import Commit, CommitId
from store.partial import Introduced, Keep


@dataclass(frozen=True, slots=True)
class Selection:
    """What to leave out, and the plain name that stands for it: the same name always goes with the same answers."""

    name: str
    keep: Keep


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one push may bring: paths its commits touch, bytes of its contents when unpacked, bytes of one directory."""

    paths: int = 1_000_000
    size: int = 1 << 40
    tree_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class LargeFile:
    """The content that a pushed pointer stands for: its SHA-256 (32 raw bytes) and its size in bytes."""

    sha256: bytes
    size: int


class LargeContent(Protocol):
    """The content of a large file, open."""

    def read(self, offset: int, size: int, /) -> bytes:
        """Return up to `size` bytes at `offset`; fewer only at the end."""

    def close(self) -> None:
        """Release it. Repeats do nothing."""


class Shown(Protocol):
    """A bare repository that git reads, until it is closed."""

    folder: Path
    head: str
    """The full name of the reference that a clone checks out."""
    refs: Mapping[str, CommitId]
    """Full names of references (``refs/heads/main``) and the ids they are shown with."""

    def reaches(self, objects: Iterable[str]) -> bool:
        """Tell whether each of these objects (40 hexadecimal digits) is a shown commit or is reached from one."""

    def has_commit(self, commit: str) -> bool:
        """Tell whether a commit is shown. Cheaper than `reaches`."""

    def open_large(self, sha256: bytes, size: int) -> LargeContent:
        """Open the large file that a shown pointer stands for. Raises `NotFound`, also when the pointer is not shown."""

    def large_files(self) -> Mapping[bytes, LargeFile]:
        """Return the paths of the head's tree where pointers stand for large files."""

    def close(self) -> None:
        """Remove the repository. Repeats do nothing."""


class Arrival(Protocol):
    """A push that is whole and sound, and not yet part of the store."""

    commits: Sequence[Commit]
    """What is new, parents first, with the ids that it was sent with."""
    introduced: Sequence[Introduced]
    """Every path that a new commit touches itself, or that the branch would hold otherwise than the branches it was shown with."""
    size: int
    """The bytes of the new contents, unpacked."""
    large: Sequence[LargeFile]
    """The large files that new pointers stand for and that are not known yet."""
    twins: Sequence[tuple[bytes, ...]]
    """Groups of paths, in directories that the push changes, that are one path on other systems."""

    def accept(self, contents: Mapping[bytes, LargeContent]) -> CommitId:
        """Make the push part of the store, move the branch to it, and return the branch's head.

        `contents` holds, by SHA-256, the large files to take along; a pointer without content stays the small file it is.
        Raises `Moved`, `Corrupt` when a content is not what its pointer says, `NotEmpty`, `NoSpace`.
        """


class Exchange(Protocol):
    """The histories of one store, for git."""

    def packed(self, commits: Iterable[CommitId]) -> bool:
        """Tell whether git can read these commits with all they reach; costs microseconds."""

    def publish(self) -> None:
        """Put every acknowledged commit where git reads it. Raises `InUse` in a gateway, `NoSpace`."""

    def show(self, refs: Mapping[str, CommitId], head: str, selection: Selection) -> Shown:
        """Make a bare repository of these references (full names), whose commits are packed; `head` names the one to check out."""

    def open_quarantine(self, shown: Shown) -> Path:
        """Make an empty bare repository in the store's folder that borrows what is shown; its name is its last component."""

    def examine(self, quarantine: str, shown: Shown, branch: str, target: str, limits: Limits) -> Arrival:
        """Look at what came into a quarantine for a branch, whose new head is to be `target`. The branch is in `shown`.

        Raises `Moved` when the branch's head is not in the history of `target`, `HostileTree`, `TooLarge`, `NotFound`.
        """

    def discard(self, quarantine: str) -> None:
        """Remove a quarantine. Repeats do nothing."""

    def sweep(self, now: float) -> None:
        """Remove what processes that died left: quarantines that nobody holds, and what nobody used for a day."""

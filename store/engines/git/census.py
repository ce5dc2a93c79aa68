"""Which objects some commits reach: asked of git once, kept as sorted identities, extended by what is new.

1. A set of objects is one string of 20-byte identities in order: twenty bytes an object, found by bisection.
2. What a reference reached once counts as long as this process remembers it: references that are shown move forward only.
3. A reference's set leaves out what the first reference (the main line) reached when it was made, so that many branches of one
   history share its set.
4. Every method may be called from several threads.
"""

from __future__ import annotations

import struct
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from store.engines.git.caches import RecentMap
from store.engines.git.commands import run_git
from store.engines.git.objects import ID_LENGTH

_MOST_SETS = 8
_KEPT_BYTES = 256 << 20
_INDEX_TABLES = 8 + 1024


class ObjectSet:
    """Identities of objects, in order."""

    def __init__(self, ordered: bytes) -> None:
        """Take identities that are ordered already, one after the other."""
        self._ordered = ordered

    @classmethod
    def of(cls, identities: Iterable[bytes]) -> ObjectSet:
        """Return a set of raw identities in any order."""
        return cls(b"".join(sorted(identities)))

    @classmethod
    def of_index(cls, index: Path) -> ObjectSet:
        """Return the objects of a pack, by its index (version 2)."""
        data = index.read_bytes()
        (count,) = struct.unpack_from(">I", data, _INDEX_TABLES - 4)
        return cls(data[_INDEX_TABLES : _INDEX_TABLES + count * ID_LENGTH])

    def __contains__(self, oid: bytes) -> bool:
        place = bisect_left(range(len(self)), oid, key=self._at)
        return place < len(self) and self._at(place) == oid

    def __iter__(self) -> Iterator[bytes]:
        return (self._at(place) for place in range(len(self)))

    def __len__(self) -> int:
        return len(self._ordered) // ID_LENGTH

    @property
    def ordered(self) -> bytes:
        """Return the identities, in order, one after the other."""
        return self._ordered

    def _at(self, place: int) -> bytes:
        return self._ordered[place * ID_LENGTH : (place + 1) * ID_LENGTH]


@dataclass(slots=True)
class _Reach:
    """What one reference reached so far, and where it stood."""

    tips: set[str] = field(default_factory=set)
    sets: list[ObjectSet] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """Return about how many bytes this holds."""
        return 500 + sum(len(each) for each in self.sets) * ID_LENGTH


class Census:
    """What references reach, remembered under the name of the selection they are shown in. `commits_only` leaves out all else."""

    def __init__(self, *, commits_only: bool = False) -> None:
        """Remember nothing yet."""
        self._options = ("--topo-order",) if commits_only else ("--objects", "--no-object-names")
        self._known: RecentMap[tuple[str, str], _Reach] = RecentMap(_KEPT_BYTES, lambda reach: reach.weight)
        self._lock = threading.Lock()

    def holds(self, git_dir: Path, selection: str, refs: Mapping[str, str], oids: Iterable[bytes]) -> bool:
        """Tell whether each of the objects is reached from one of the references, the first of which is the main line."""
        wanted = set(oids)
        main: set[str] = set()
        for name, tip in refs.items():
            reach = self._reach(git_dir, (selection, name), tip, main)
            main = main or reach.tips
            wanted = {oid for oid in wanted if not any(oid in each for each in reach.sets)}
            if not wanted:
                return True
        return not wanted

    def _reach(self, git_dir: Path, key: tuple[str, str], tip: str, main: set[str]) -> _Reach:
        with self._lock:
            reach = self._known.get(key) or _Reach()
            if tip not in reach.tips:
                known = [f"^{each}" for each in reach.tips | main]
                reach = _Reach(reach.tips | {tip}, _merged([*reach.sets, list_objects(git_dir, [tip, *known], *self._options)]))
                self._known.put(key, reach)
            return reach


def list_objects(git_dir: Path, revisions: Sequence[str], *options: str) -> ObjectSet:
    """Return what git lists for revisions (``^`` before one leaves out what it reaches). Raises `CommandFailed` where one is missing."""
    given = "".join(f"{revision}\n" for revision in revisions).encode()
    return ObjectSet.of(map(bytes.fromhex, run_git(git_dir, "rev-list", *options, "--stdin", given=given).decode().split()))


def _merged(sets: Sequence[ObjectSet]) -> list[ObjectSet]:
    kept = [each for each in sets if len(each)]
    if len(kept) <= _MOST_SETS:
        return kept
    ordered = b"".join(each.ordered for each in kept)
    return [ObjectSet.of(ordered[place : place + ID_LENGTH] for place in range(0, len(ordered), ID_LENGTH))]

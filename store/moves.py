"""The renames of two sides, told as moves of what the base knows.

1. What both sides know has one name here: its path in the base (its *origin*). Things a side added keep the path that their
   directory's origin gives them; where that is taken by a renamed thing's origin, the added thing is parked under a name no
   tree can hold.
2. A move is an origin with the origin of its directory and its name; a final path follows by climbing directories, so
   that a file moved by one side inside a directory moved by the other ends up in both places at once.
3. A recorded rename whose old path the base does not have, whose new path is gone, or that changed between file and directory is no
   move: it is an addition and a deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from store.renames import Renames
from store.trees import DIRECTORY, Draft, Folder, Part, ReadTree, WriteTree, join_path, split_path


class Place(NamedTuple):
    """Where something is: the origin of its directory and its name there."""

    directory: bytes
    name: bytes


@dataclass(frozen=True, slots=True)
class Grown:
    """One side told in the base's names: its tree, the place of everything that moved, and what of that the base knows.

    `hollow` are the directories this side deleted but that its tree holds again, for something that was moved out of them.
    """

    root: bytes
    places: Mapping[bytes, Place]
    renamed: frozenset[bytes]
    hollow: frozenset[bytes]

    def locate(self, origin: bytes) -> bytes:
        """Return the path that an origin has on this side."""
        return _climb(self.places, origin)


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of both sides. `split` are origins that the sides moved apart, `circular` those whose directories contain each other."""

    places: Mapping[bytes, Place]
    ours: frozenset[bytes]
    hollow: frozenset[bytes]
    split: tuple[tuple[bytes, bytes, bytes], ...] = ()
    circular: tuple[bytes, ...] = field(default=())

    def locate(self, origin: bytes) -> bytes:
        """Return the final path of an origin."""
        return _climb(self.places, origin)


def _climb(places: Mapping[bytes, Place], origin: bytes) -> bytes:
    if not origin:
        return b""
    place = places.get(origin)
    directory, name = split_path(origin) if place is None else place
    return join_path(_climb(places, directory), name)


def tell_in_base_names(read: ReadTree, write: WriteTree, base: bytes | None, root: bytes, renames: Renames, side: bytes) -> Grown:
    """Return the side's tree in the base's names with the moves that lead back; `side` marks what is parked."""
    draft = Draft(read, root)
    real = _keep_real(Draft(read, base), draft, renames)
    cut = {origin: part for new, origin in sorted(real.items(), reverse=True) if (part := draft.cut(new)) is not None}
    parked: dict[bytes, bytes] = {}
    hollow: set[bytes] = set()
    for origin in sorted(cut):
        taken = draft.cut(origin)
        if taken is not None:
            parked[origin] = origin + b"\0" + side
            draft.place(parked[origin], taken)
        hollow.update(_missing_above(draft, origin))
        draft.place(origin, cut[origin])
    places = {origin: _find_place(real, parked, new) for new, origin in real.items()}
    places.update({aside: Place(*split_path(origin)) for origin, aside in parked.items()})
    return Grown(draft.freeze(write), places, frozenset(cut), frozenset(hollow))


def _keep_real(base: Draft, side: Draft, renames: Renames) -> dict[bytes, bytes]:
    """Return the renames that rule 3 counts as moves."""
    found = {}
    for new, old in renames.items():
        before, after = base.get(old), side.get(new)
        if before is not None and after is not None and _is_folder(before) == _is_folder(after):
            found[new] = old
    return found


def _is_folder(part: Part) -> bool:
    return isinstance(part, Folder) or part.mode == DIRECTORY


def _missing_above(draft: Draft, path: bytes) -> list[bytes]:
    """Return the directories above a path that the draft does not have."""
    missing = []
    directory = split_path(path)[0]
    while directory and draft.get(directory) is None:
        missing.append(directory)
        directory = split_path(directory)[0]
    return missing


def _find_place(renames: Renames, parked: Mapping[bytes, bytes], new: bytes) -> Place:
    directory, name = split_path(new)
    return Place(_find_origin(renames, parked, directory), name)


def _find_origin(renames: Renames, parked: Mapping[bytes, bytes], path: bytes) -> bytes:
    """Return the origin of a path of the side, one name at a time."""
    origin = here = b""
    for name in path.split(b"/") if path else ():
        here = join_path(here, name)
        renamed = renames.get(here)
        inherited = join_path(origin, name)
        origin = parked.get(inherited, inherited) if renamed is None else renamed
    return origin


def arrange_moves(ours: Grown, theirs: Grown) -> Moves:
    """Combine the moves of both sides; where they contradict each other, ours holds and the origin is named."""
    places = {**theirs.places, **ours.places}
    split = [origin for origin in ours.places if theirs.places.get(origin, ours.places[origin]) != ours.places[origin]]
    circular = sorted(origin for origin in places if _is_circular(places, origin))
    for origin in circular:
        del places[origin]
    return Moves(
        places,
        frozenset(ours.places),
        ours.hollow | theirs.hollow,
        tuple((origin, ours.locate(origin), theirs.locate(origin)) for origin in sorted(split)),
        tuple(circular),
    )


def _is_circular(places: Mapping[bytes, Place], origin: bytes) -> bool:
    seen = set()
    while origin:
        if origin in seen:
            return True
        seen.add(origin)
        place = places.get(origin)
        origin = split_path(origin)[0] if place is None else place.directory
    return False

"""What a bucket was told, as the operation `bucket.set` keeps it.

1. Settings are read at every put, so they are one note of the door.
2. A bucket that was told nothing has no settings: it keeps no versions, and blocks public access, which nothing here gives anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interfaces.s3.call import Door
from interfaces.s3.documents import OWNERSHIP, PUBLIC_BLOCKS, Tags

ENABLED = "Enabled"
SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a bucket was told: whether it keeps versions (empty: never asked), its tags, and the region its maker named.

    `public_block` is None and `ownership` empty where they were removed; before, a bucket blocks everything and its owner owns all.
    """

    versioning: str = ""
    tags: Tags = ()
    location: str = ""
    public_block: Mapping[str, bool] | None = None
    ownership: str = ""


def settings_of(door: Door, branch: str) -> Settings:
    """Return the settings of a bucket."""
    body = door.notes.find(f"bucket/{branch}")[1]
    tags = tuple((name, value) for name, value in body.get("tags", ()))
    return Settings(
        body.get("versioning", ""),
        tags,
        body.get("location", ""),
        body.get("public_block", dict.fromkeys(PUBLIC_BLOCKS, True)),
        body.get("ownership", OWNERSHIP),
    )

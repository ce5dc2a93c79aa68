"""An export as it lies in a folder: its manifest, its pieces of records, its checkpoints.

1. The manifest names every file with its SHA-256. What it does not name is not read; a name never leaves the folder.
2. Nothing of it is believed: it says where to look, and what is found there has to prove itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = "agent-nas-record"
VERSION = 1
_NAME = re.compile(r"[a-z]+/[A-Za-z0-9._-]+|[a-z]+\.jsonl")
_MOST_MANIFEST = 1 << 26


class BadExport(Exception):
    """The folder holds no export that can be read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive records, both ends included: a file of lines, or (`tiles`) the tree over what was given up, with its last hash."""

    first: int
    last: int
    file: str
    sha256: str
    tiles: tuple[bytes, ...]
    hash: bytes


@dataclass(frozen=True, slots=True)
class Export:
    """What the manifest says. `peaks` are the subtrees over the records before `first`, `previous` is the hash before it."""

    folder: Path
    first: int
    last: int
    previous: bytes
    peaks: tuple[bytes, ...]
    pieces: tuple[Piece, ...]
    files: dict[str, str]
    log_keys: tuple[str, ...]

    def lines(self, piece: Piece) -> Iterator[bytes]:
        """Yield the lines of a piece. Raises `BadExport` when its file is gone."""
        try:
            with (self.folder / piece.file).open("rb") as source:
                yield from source
        except OSError as error:
            raise BadExport(f"{piece.file}: {error.strerror or error}") from error

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file of the export. Raises `BadExport` when it is gone."""
        try:
            with (self.folder / name).open("rb") as source:
                return hashlib.file_digest(source, "sha256").hexdigest()
        except OSError as error:
            raise BadExport(f"{name}: {error.strerror or error}") from error

    def notes(self) -> Iterator[str]:
        """Yield the checkpoints with all their signatures. Raises `BadExport`."""
        try:
            with (self.folder / "checkpoints.jsonl").open(encoding="utf-8") as source:
                for line in source:
                    yield str(json.loads(line)["note"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadExport(f"checkpoints.jsonl: {error}") from error


def read_export(folder: Path) -> Export:
    """Return the export in a folder. Raises `BadExport`."""
    path = folder / "manifest.json"
    try:
        if path.stat().st_size > _MOST_MANIFEST:
            raise BadExport("manifest.json is too large")
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != FORMAT or said["version"] != VERSION:
            raise BadExport(f"an export of the form {said['format']} {said['version']}; this program reads {FORMAT} {VERSION}")
        return Export(
            folder,
            int(said["first"]),
            int(said["last"]),
            bytes.fromhex(said["previous"]),
            tuple(bytes.fromhex(peak) for peak in said["peaks"]),
            tuple(_read_piece(piece) for piece in said["pieces"]),
            {_checked(name): str(digest) for name, digest in said["files"].items()},
            tuple(str(key) for key in said["log_keys"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadExport(f"{path}: {error}") from error


def _read_piece(said: dict[str, Any]) -> Piece:
    tiles = tuple(bytes.fromhex(tile) for tile in said.get("tiles", []))
    file = "" if tiles else _checked(said["file"])
    return Piece(int(said["first"]), int(said["last"]), file, str(said.get("sha256", "")), tiles, bytes.fromhex(said.get("hash", "")))


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a file of an export")
    return name

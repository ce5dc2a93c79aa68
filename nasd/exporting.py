"""Exporting the record: everything that somebody needs to check it without us, in one folder.

1. The export ends with a checkpoint that is signed for it, over its last record. What comes later is in the next one.
2. It holds the records as lines, the checkpoints with every cosignature, the policies the decisions refer to, and the public keys. What was
   given up after its time is there as its part of the tree.
3. The folder is made whole or not at all, and holds nothing that is not named in its manifest. Records stream: memory does not grow with
   their number.
4. The form is `docs/reference/record.md`'s; `nas-verify` reads it and shares no code with this.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.config import Settings
from nasd.errors import NotInitialised
from trust.chain import GENESIS, Row
from trust.errors import Unknown
from trust.evidence import Evidence
from trust.lines import render_lines
from trust.segments import MOST_RECORDS, Segment
from trust.service import Trust

FORMAT = "agent-nas-record"
VERSION = 1


def export_record(evidence: Evidence, folder: Path, after: int, witnesses: Iterable[str], now: int) -> Document:
    """Write the record after number `after` into a new folder and return what was written.

    Raises `Kind.EXISTS` for a folder that is there, `Kind.NOT_FOUND` for a number that is not, `trust.errors.RecorderUnavailable`.
    """
    if folder.exists():
        raise Fault(Kind.EXISTS, f"{folder} is there already", hint="name a folder that does not exist yet")
    last = _last(evidence, now)
    if after >= last:
        raise Fault(Kind.NOT_FOUND, f"there are {last} records, none after {after}", hint="name a smaller number with --after")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.export")
    draft.mkdir(parents=True, mode=0o700)
    try:
        _write(evidence, draft, after, last, list(witnesses), now)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft)
        raise
    return {"folder": str(folder), "first": after + 1, "last": last, "origin": evidence.verifier.name}


def export_unserved(settings: Settings, folder: Path, after: int) -> Document:
    """Export the record of a data directory that nobody serves. Raises `NotInitialised`, and as `export_record`."""
    if not settings.trust.is_dir():
        raise NotInitialised(f"{settings.home} holds no Agent NAS yet", hint="name the data directory with NAS_HOME")
    trust = Trust.open(settings.trust)
    try:
        return export_record(trust.evidence, folder, after, [key for _, key in settings.witness_pairs], int(time.time()))
    finally:
        trust.close()


def _last(evidence: Evidence, now: int) -> int:
    try:
        return evidence.checkpoint(now).size
    except Unknown:
        return 0


def _write(evidence: Evidence, folder: Path, after: int, last: int, witnesses: list[str], now: int) -> None:
    for name in ("records", "policies"):
        (folder / name).mkdir(mode=0o700)
    pieces = list(_pieces(evidence, folder, after, last))
    files = {"checkpoints.jsonl": _write_file(folder / "checkpoints.jsonl", _checkpoint_lines(evidence, last))}
    for digest, text in evidence.policies():
        name = f"policies/{digest}.yaml"
        files[name] = _write_file(folder / name, [text.encode()])
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "origin": evidence.verifier.name,
        "made": now,
        "first": after + 1,
        "last": last,
        "previous": (evidence.find(after)[10] if after else GENESIS).hex(),
        "peaks": [peak.hex() for peak in evidence.peaks(after)],
        "pieces": pieces,
        "files": files,
        "log_keys": [evidence.verifier.render()],
        "witness_keys": witnesses,
    }
    _write_file(folder / "manifest.json", [json.dumps(manifest, indent=1).encode()])


def _pieces(evidence: Evidence, folder: Path, after: int, last: int) -> Iterator[dict[str, Any]]:
    """Write the records, segment by segment and then those of the database, and yield what the manifest says of each file."""
    for segment in evidence.segments():
        if segment.last <= after:
            continue
        if segment.removed is None:
            rows = (row for row in evidence.rows_of(segment) if row[0] > after)
            yield _write_piece(folder, max(segment.first, after + 1), segment.last, [rows])
        elif segment.first > after:
            yield _given_up(evidence, segment)
        else:
            raise Fault(Kind.NOT_FOUND, f"record {after + 1} was given up", hint=f"export from the beginning, or after {segment.last}")
        after = segment.last
    while after < last:
        end = min(after + MOST_RECORDS, last)
        yield _write_piece(folder, after + 1, end, evidence.live_rows(after, end))
        after = end


def _given_up(evidence: Evidence, segment: Segment) -> dict[str, Any]:
    tiles = [root.hex() for root in evidence.tile_roots(segment)]
    return {"first": segment.first, "last": segment.last, "tiles": tiles, "hash": segment.hash.hex()}


def _write_piece(folder: Path, first: int, last: int, batches: Iterable[Iterable[Row]]) -> dict[str, Any]:
    name = f"records/{first:012}-{last:012}.records"
    digest = _write_file(folder / name, map(render_lines, batches))
    return {"first": first, "last": last, "file": name, "sha256": digest}


def _checkpoint_lines(evidence: Evidence, last: int) -> Iterator[bytes]:
    for kept in evidence.checkpoints():
        if kept.size <= last:
            yield json.dumps({"size": kept.size, "time": kept.time, "note": kept.render()}, ensure_ascii=False).encode() + b"\n"


def _write_file(path: Path, content: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as sink:
        for piece in content:
            digest.update(piece)
            sink.write(piece)
        sink.flush()
        os.fsync(sink.fileno())
    return digest.hexdigest()

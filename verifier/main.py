"""``nas-verify``: the command line of the independent verifier.

0 everything that was looked at is right, 1 something is wrong, 2 what was asked cannot be looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from verifier.bundle import BadProof, verify_bundle
from verifier.export import BadExport, read_export
from verifier.notes import BadNote, Key, read_key
from verifier.report import RIGHT, UNREADABLE, WRONG
from verifier.verify import Pins, Verification


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        keys, witnesses = tuple(map(read_key, asked.log_key)), tuple(map(read_key, asked.witness))
        quorum = _quorum(asked.quorum, witnesses)
        if asked.path.is_dir():
            return _verify_export(asked, keys, witnesses, quorum)
        return _verify_bundle(asked, keys, witnesses, quorum)
    except (BadExport, BadNote, OSError, ValueError) as error:
        print(f"nas-verify: {error}", file=sys.stderr)
        return UNREADABLE


def _quorum(asked: int | None, witnesses: Sequence[Key]) -> int:
    if asked is not None and asked > len(witnesses):
        raise ValueError(f"--quorum {asked} is more than the {len(witnesses)} witnesses that are known")
    return len(witnesses) if asked is None else asked


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "nas-verify",
        description="Verify an exported record, or the proof of a single record, with nothing but keys that were kept elsewhere.",
        epilog="Ends with 0 when everything that was looked at is right, 1 when something is wrong, 2 when it cannot be looked at.",
    )
    parser.add_argument("path", type=Path, help="a folder that `nas record export` made, or a file that `nas record prove` made")
    parser.add_argument("--log-key", action="append", default=[], metavar="KEY", help="the log's key, from `nas record keys`; may repeat")
    parser.add_argument("--witness", action="append", default=[], metavar="KEY", help="a witness's key; may repeat")
    parser.add_argument("--quorum", type=int, metavar="N", help="how many of the witnesses must have cosigned (all)")
    parser.add_argument("--max-age", type=int, metavar="SECONDS", help="how old the last cosignature may be")
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="remember the last checkpoint here, and require that the record continues it"
    )
    parser.add_argument("--skew", type=int, default=300, metavar="SECONDS", help="how far the clock may have been set back (300)")
    parser.add_argument("--orphan-age", type=int, default=86400, metavar="SECONDS", help="how long an act may have no outcome (a day)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _verify_export(asked: argparse.Namespace, keys: tuple[Key, ...], witnesses: tuple[Key, ...], quorum: int) -> int:
    export = read_export(asked.path)
    logs = keys or tuple(map(read_key, export.log_keys))
    pins = Pins(logs, witnesses, quorum, asked.max_age, _read_state(asked.state), asked.skew, asked.orphan_age)
    walk = Verification(export, pins, int(time.time()))
    report = walk.run()
    if not keys:
        report.notes.append("the log's key was taken from the export itself: name one that was kept elsewhere with --log-key")
    if report.exit_code == RIGHT and asked.state is not None and walk.last is not None:
        _write_state(asked.state, walk.last.origin, walk.last.size, walk.last.root)
    print(report.render_json() if asked.json else report.render_text())
    return report.exit_code


def _verify_bundle(asked: argparse.Namespace, keys: tuple[Key, ...], witnesses: tuple[Key, ...], quorum: int) -> int:
    if not keys:
        raise ValueError("a single record proves nothing without a key that was kept elsewhere: name it with --log-key")
    try:
        record, origin, size, cosigned = verify_bundle(asked.path.read_text(encoding="utf-8"), keys, witnesses, quorum)
    except BadProof as error:
        print(json.dumps({"version": 1, "ok": False, "exit_code": WRONG, "why": str(error)}) if asked.json else f"WRONG    {error}")
        return WRONG
    said = {name: value for name, value in record._asdict().items() if name != "hash"} | {"hash": record.hash.hex()}
    document = {"version": 1, "ok": True, "exit_code": RIGHT, "record": said, "origin": origin, "size": size, "cosigned": cosigned}
    told = f"right    record {record.sequence} ({record.phase} of {record.kind}) is among the first {size} records of {origin}"
    print(json.dumps(document) if asked.json else told)
    return RIGHT


def _read_state(path: Path | None) -> tuple[str, int, bytes] | None:
    if path is None or not path.exists():
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return str(said["origin"]), int(said["size"]), bytes.fromhex(said["root"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no memory of this program: {error}") from error


def _write_state(path: Path, origin: str, size: int, root: bytes) -> None:
    draft = path.with_name(path.name + ".tmp")
    with draft.open("w", encoding="utf-8") as sink:
        json.dump({"origin": origin, "size": size, "root": root.hex()}, sink)
        sink.flush()
        os.fsync(sink.fileno())
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())

"""Looking whether everything the appliance needs is there, and saying what to do where it is not."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from interfaces.port import Document
from nasd.config import Settings
from nasd.errors import Misconfigured
from nasd.notices.targets import read_targets
from nasd.processes import Process
from nasd.reach import judge, survey
from nasd.witnesses import WitnessFailure, last_note, read_witness

TOP_LEVEL = ("nasd", "store", "trust", "interfaces", "witness", "verifier")
_WITNESS_SECONDS = 3.0
SAFE_SQLITE = (3, 51, 3)
"""From this version on SQLite does not have the WAL-reset corruption bug of 3.7.0 to 3.51.2."""


def examine(settings: Settings) -> Document:
    """Return one item for each thing looked at: ``check``, ``ok``, ``detail`` and ``hint``."""
    items = [item for look in _LOOKS for item in look(settings)]
    return {"ok": all(item["ok"] for item in items), "items": items}


def _item(check: str, ok: bool, detail: str, hint: str = "") -> Document:
    return {"check": check, "ok": ok, "detail": detail, "hint": "" if ok else hint}


def _python(_: Settings) -> Iterator[Document]:
    yield _item("python", sys.version_info >= (3, 11), platform.python_version(), "install Python 3.11 or newer")


def _sqlite(_: Settings) -> Iterator[Document]:
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    yield _item("sqlite", found >= SAFE_SQLITE, apsw.sqlite_lib_version(), "upgrade the package apsw: this version can corrupt its log")


def _programs(_: Settings) -> Iterator[Document]:
    wanted = {"git": "imports, exports and merges of text", "bwrap": "checks of proposals (package bubblewrap)"}
    for program, use in wanted.items():
        found = shutil.which(program)
        yield _item(program, found is not None, found or "missing", f"install it: needed for {use}")


def _fuse(_: Settings) -> Iterator[Document]:
    device = Path("/dev/fuse")
    yield _item(
        "/dev/fuse",
        device.exists() and os.access(device, os.R_OK | os.W_OK),
        str(device),
        "load the fuse module, or run where it is available",
    )
    if os.geteuid() != 0:
        found = shutil.which("fusermount3")
        yield _item("fusermount3", found is not None, found or "missing", "install the package fuse3")


def _folders(settings: Settings) -> Iterator[Document]:
    if not settings.home.is_dir():
        yield _item("data directory", False, f"{settings.home} is missing", "run `nas init`")
        return
    mode = stat.S_IMODE(settings.home.stat().st_mode)
    yield _item("data directory", mode & 0o077 == 0, f"{settings.home} has mode {mode:o}", f"chmod 700 {settings.home}")
    usage = shutil.disk_usage(settings.home)
    free = usage.free / usage.total
    yield _item("disk", free > 0.05, f"{usage.free >> 20} MiB free", "free space, or run `nas gc`")
    for path in (settings.owner_token_file, *settings.trust.glob("keys/*")):
        if path.is_file():
            private = stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
            yield _item(f"private {path.name}", private, str(path), f"chmod 600 {path}")


def _reach(settings: Settings) -> Iterator[Document]:
    """Look at whether somebody else could reach policy, keys, record and trees."""
    if not settings.home.is_dir():
        return
    found = judge(survey(settings))
    yield _item("out of reach", not found, f"nobody else reaches {settings.home}" if not found else f"{len(found)} findings", "see below")
    for finding in found:
        yield _item("reach", False, finding.what, finding.hint)


def _packages(_: Settings) -> Iterator[Document]:
    owners = importlib.metadata.packages_distributions()
    for name in TOP_LEVEL:
        found = sorted(set(owners.get(name, ["agent-nas"])))
        yield _item(f"package {name}", found == ["agent-nas"], ", ".join(found), "install Agent NAS in a virtual environment of its own")


def _outside(settings: Settings) -> Iterator[Document]:
    """Look at what is kept outside of the data directory: without it nobody notices an old copy that was put back."""
    if not settings.anchor_folders and not settings.witness_pairs:
        yield _item(
            "record outside", True, "no anchor and no witness: an old copy that is put back would not be noticed (docs/guides/record.md)"
        )
    for folder in settings.anchor_folders:
        held = folder.is_dir() and os.access(folder, os.W_OK)
        detail = str(folder) if held else f"{folder} is missing or not writable"
        yield _item("anchor", held, detail, "mount it, or name another with the setting anchors")
    for url, key in settings.witness_pairs:
        failure = ""
        try:
            last_note(read_witness(url, key), "agent-nas/doctor", _WITNESS_SECONDS)
        except (WitnessFailure, Misconfigured) as error:
            failure = str(error)
        yield _item(
            "witness", not failure, f"{url} {failure or 'answers'}", "start it, or mend the setting witnesses; see `nas record status`"
        )


def _gateways(settings: Settings) -> Iterator[Document]:
    """Look at the processes that the daemon, while it runs, keeps for the HTTP family."""
    for path in sorted((settings.run / "gateways").glob("*.json")):
        process = Process(**json.loads(path.read_text(encoding="utf-8")))
        alive = process.is_alive()
        detail = f"process {process.pid} {'serves' if alive else 'is gone'}"
        yield _item(f"gateway {path.stem}", alive, detail, "the daemon starts it again; see log/gateways.log, or `nas serve`")


def _notify(settings: Settings) -> Iterator[Document]:
    """Look at who is told of gates: whether each file with a secret is there for its owner alone. The secrets are not read."""
    try:
        targets = read_targets(settings.notify)
    except Misconfigured as error:
        yield _item("notify", False, error.message, error.hint)
        return
    for target in targets:
        bad = [path for path in target.secret_files if not _is_private(Path(path))]
        yield _item(f"notify {target.name}", not bad, ", ".join(bad) or "private", "these hold secrets: make them, with mode 0600")


def _is_private(path: Path) -> bool:
    return path.is_file() and not stat.S_IMODE(path.stat().st_mode) & 0o077


_LOOKS: tuple[Callable[[Settings], Iterator[Document]], ...] = (
    _python,
    _sqlite,
    _programs,
    _fuse,
    _folders,
    _reach,
    _packages,
    _outside,
    _gateways,
    _notify,
)

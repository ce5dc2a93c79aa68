"""The key that signs checkpoints: outside of the database, so that who has only one of the two can sign nothing.

1. One file of mode 0600 beside the keys of leases; it appears whole and on stable storage, or not. It holds the name of the log too.
2. A key that is gone is replaced by one with another name: whoever pinned the former one sees another log, and asks.
3. Any thread; several processes may open it at once, and agree.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from trust.errors import RecorderUnavailable
from trust.secret import Secret
from trust.signed import SigningKey, parse_private, render_private

FILE_NAME = "log.key"
_SEED_BYTES = 32
_NAME_BYTES = 6


def open_log_key(folder: Path, entropy: Callable[[int], bytes]) -> tuple[SigningKey, bool]:
    """Return the key in a folder and whether this call made it. Raises `RecorderUnavailable`, `NoteInvalid` for a file that holds none."""
    path = folder / FILE_NAME
    try:
        made = not path.exists() and _make(path, entropy)
        return parse_private(path.read_bytes()), made
    except OSError as error:
        raise RecorderUnavailable(path, error.strerror or str(error)) from error


def retire_log_key(folder: Path) -> None:
    """Put the key aside, so that the next opening makes another log's. Raises `RecorderUnavailable`."""
    path = folder / FILE_NAME
    try:
        name = parse_private(path.read_bytes()).verifier.name.replace("/", "-")
        path.rename(folder / f"{name}.retired.key")
        _sync(folder)
    except OSError as error:
        raise RecorderUnavailable(path, error.strerror or str(error)) from error


def _make(path: Path, entropy: Callable[[int], bytes]) -> bool:
    """Make the key and tell whether it is the one in the file: another process may have been first."""
    content = render_private(f"agent-nas/{entropy(_NAME_BYTES).hex()}", Secret(entropy(_SEED_BYTES))).reveal()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{entropy(8).hex()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as sink:
        sink.write(content + b"\n")
        sink.flush()
        os.fsync(sink.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    _sync(path.parent)
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

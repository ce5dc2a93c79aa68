"""Log files that do not fill the disk: one that grew too long is kept once more under another name, and begins anew.

The processes that write keep their descriptor and append, so the file is copied and then cut. What is written in between, a few lines
at most, is lost; records are not logs and are never cut.
"""

from __future__ import annotations

import shutil
from pathlib import Path

LONGEST = 64 << 20
"""The length in bytes from which a log begins anew."""


def rotate_logs(folder: Path, longest: int = LONGEST) -> list[Path]:
    """Begin anew each log of a folder that is longer than `longest` bytes, the former one kept as ``.1``; return which."""
    grown = [path for path in sorted(folder.glob("*.log")) if path.stat().st_size > longest]
    for path in grown:
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        with path.open("r+b") as file:
            file.truncate(0)
    return grown

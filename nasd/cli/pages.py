"""The generated pages of the documentation.

``python -m nasd.cli.pages docs/reference`` writes them; a test keeps them current.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def render_pages() -> Mapping[str, str]:
    """Return the text of each generated page by its file name."""
    from interfaces.http.reference import render_reference as render_http
    from nasd.cli.reference import render_reference as render_cli
    from nasd.operations import all_operations

    return {"cli.md": render_cli(), "http.md": render_http({name: operation.document() for name, operation in all_operations().items()})}


def write_pages(folder: Path) -> None:
    """Write each page into a folder."""
    for name, text in render_pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))

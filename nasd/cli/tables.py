"""Answers as people read them.

1. On a terminal a table is drawn to its width; in a pipe it is padded columns that nothing wraps or cuts.
2. A diff looks like git's: the same words, the same colours, no colours in a pipe.
3. Whatever an agent wrote is shown, never obeyed: control characters and marks that reorder text are printed as escapes, or a
   person could be made to approve something other than what the screen says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nasd import legible

plain = legible.plain
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_BOLD, _YELLOW, _PLAIN = "\x1b[1m", "\x1b[33m", "\x1b[m"
_HEADS = ("diff ", "index ", "--- ", "+++ ", "rename ", "similarity ", "old mode", "new mode", "deleted file", "new file")
_LETTERS = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R"}


def render_value(value: Any) -> str:
    """Return a member of a document as text."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={render_value(member)}" for name, member in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(render_value, value)) or "-"
    return plain(str(value))


def print_fields(document: Mapping[str, Any], names: Sequence[str]) -> None:
    """Print members of a document, one a line; what the document does not have is left out."""
    shown = [(name.replace("_", " "), render_value(document[name])) for name in names if name in document]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        print(f"{name:<{width}}  {text}")


def print_table(items: Sequence[Mapping[str, Any]], names: Sequence[str], empty: str) -> None:
    """Print items as a table, or (on standard error) the sentence `empty`."""
    if not items:
        print(empty, file=sys.stderr)
        return
    heads = [name.replace("_", " ").upper() for name in names]
    rows = [[render_value(item.get(name)) for name in names] for item in items]
    if sys.stdout.isatty():
        _draw_table(heads, rows)
        return
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def _draw_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def print_commit(commit: Mapping[str, Any]) -> None:
    """Print the head of a commit as ``git log`` does."""
    print(_coloured(_YELLOW, f"commit {commit['commit']}"))
    if len(commit.get("parents", ())) > 1:
        print("Merge:  " + " ".join(parent[:12] for parent in commit["parents"]))
    for label, name in (("Author", "principal"), ("For", "on_behalf_of"), ("Run", "run"), ("Lease", "lease"), ("Date", "when")):
        if commit.get(name):
            print(f"{label + ':':<8}{plain(commit[name])}")
    message = plain(str(commit.get("message", ""))).rstrip()
    print("\n" + "\n".join(f"    {line}".rstrip() for line in message.split("\n")))


def print_changes(changes: Iterable[Mapping[str, Any]], *, patch: bool) -> None:
    """Print changes: as patches, or one line each."""
    for change in changes:
        print(_render_patch(change) if patch else plain(_render_line(change)))


def _render_line(change: Mapping[str, Any]) -> str:
    letter = _LETTERS.get(change["kind"], change["kind"])
    origin = change.get("origin")
    return f"{letter}\t{origin} -> {change['path']}" if origin and origin != change["path"] else f"{letter}\t{change['path']}"


def _render_patch(change: Mapping[str, Any]) -> str:
    text = change.get("patch")
    body = "(no text: a directory, binary, large, or not readable with this lease)" if text is None else text
    lines = plain("\n".join([*_patch_head(change), body])).rstrip("\n").split("\n")
    return "\n".join(_coloured(_colour_of(line), line) for line in lines)


def _patch_head(change: Mapping[str, Any]) -> list[str]:
    path, origin = change["path"], change.get("origin") or change["path"]
    renamed = [f"rename from {origin}", f"rename to {path}"] if origin != path else []
    kinds = {"added": ["new file"], "deleted": ["deleted file"]}
    return [f"diff --git a/{origin} b/{path}", *kinds.get(change["kind"], []), *renamed]


def _colour_of(line: str) -> str:
    return _BOLD if line.startswith(_HEADS) else _COLOURS.get(line[:1], "")


def _coloured(colour: str, text: str) -> str:
    return f"{colour}{text}{_PLAIN}" if colour and sys.stdout.isatty() else text

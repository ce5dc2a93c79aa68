"""A gate as a person reads it: in sections, for a terminal or as markdown. Pure.

1. The order is that of judging: what is asked, by whom and why; what it would change; what it rests on; which rule asks, of whom and until
   when; what follows from each answer and from none; then identities and whatever else the card says.
2. Everything on a card may be a stranger's words: it passes `nasd.legible`, no value can begin a line of its own, and each is cut.
3. A card names and counts; it holds no content of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nasd.durations import render_duration
from nasd.legible import marked_down, one_line, visible

LONGEST = 2_000
"""The most letters of one value that are shown."""
LONGEST_NAME = 40
"""The most letters of a member's name that are shown."""
MOST_LISTED = 50
"""The most entries of a list that are shown."""
_LETTERS = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R"}
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

Row = tuple[str, str]
Section = tuple[str, list[Row]]

_SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("question", ("what", "who", "on_behalf_of", "actors", "why", "purpose")),
    ("change", ("in_words", "size", "changes", "changes_beyond", "overlap_paths", "twins")),
    (
        "policy change",
        ("policy_in_words", "policy_rules", "policy_wider", "policy_narrower", "policy_asks", "policy_facts", "policy_replay"),
    ),
    ("act", ("account", "destination", "method", "path", "paths", "actions", "ttl", "budgets")),
    ("evidence", ("reads", "stale_reads", "labels", "taint", "checks")),
    ("rule", ("asks", "rule", "who_decides", "who_can", "answers_so_far", "excluded", "until")),
    ("answers", ("on_approve", "on_reject", "on_silence")),
)
_FOLDED = frozenset({"files", "deletes", "bytes", "policy_change"})
_HEAD = ("gate", "state", "phase", "answered_by", "comment", "successor", "outcome")
_IDENTITIES = ("digest", "act", "alike")


def sections_of(gate: Mapping[str, Any]) -> list[Section]:
    """Return the sections of a gate with its card, each a title and rows of name and text; what says nothing is left out."""
    told = _told(gate)
    known = {name for _, names in _SECTIONS for name in names} | _FOLDED
    beyond = [name for name in told if name not in known]
    sections = [("gate", _rows(gate, _HEAD)), *((title, _rows(told, names)) for title, names in _SECTIONS)]
    sections += [("identities", [*_rows(gate, _IDENTITIES), *_rows(told, beyond)])]
    return [(title, rows) for title, rows in sections if rows]


def _told(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the card says together with what the gate itself does."""
    card: Mapping[str, Any] = gate.get("card", {})
    told = dict(card)
    if isinstance(card.get("files"), int):
        told["size"] = _size(card)
    approvals, given = gate.get("approvals", 1), sum(bool(answer.get("approve")) for answer in gate.get("answers", ()))
    people = "somebody" if approvals == 1 else f"{approvals} people"
    told["who_decides"] = f"{people} with the role {gate.get('required_role')}"
    told["excluded"] = gate.get("excluded")
    if approvals > 1:
        told["answers_so_far"] = f"{given} of {approvals} approvals"
    told["until"] = _until(gate)
    told.setdefault("on_silence", f"after the deadline: {gate.get('fallback')}")
    return told


def _until(gate: Mapping[str, Any]) -> str:
    use = gate.get("use_within")
    return f"{gate.get('deadline')}" + (f"; an approval counts for {render_duration(int(use))}" if use else "")


def _size(card: Mapping[str, Any]) -> str:
    files, deletes = int(card["files"]), int(card.get("deletes") or 0)
    counted = f"{files} file{'' if files == 1 else 's'}" + (f", {deletes} of them deleted" if deletes else "")
    return f"{counted}, {render_size(int(card.get('bytes') or 0))}"


def render_size(size: int) -> str:
    """Return a number of bytes for people."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def _rows(document: Mapping[str, Any], names: Iterable[str]) -> list[Row]:
    return [(one_line(name.replace("_", " "), LONGEST_NAME), text) for name in names if (text := render_member(name, document.get(name)))]


def render_member(name: str, value: Any) -> str:
    """Return a member of a card as lines of text, empty when it says nothing."""
    if value is None or value in ("", 0, False) or value in ([], {}, ()):
        return ""
    if name == "actors":
        return " → ".join(_render(actor) for actor in value) if isinstance(value, Sequence) else _render(value)
    if name == "changes" and isinstance(value, Sequence):
        return "\n".join(_listed(value, _render_change))
    if name == "checks" and isinstance(value, Sequence):
        return "\n".join(_listed(value, _render_check))
    return _render(value)


def _render(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        told = {name: _render(member) for name, member in value.items() if member not in (None, "", [], {})}
        return ", ".join(f"{one_line(str(name), LONGEST_NAME)}: {text}" for name, text in told.items())
    if isinstance(value, list | tuple):
        return ", ".join(_listed(value, _render))
    return visible(str(value), LONGEST)


def _listed(values: Sequence[Any], render: Any) -> Iterator[str]:
    for value in values[:MOST_LISTED]:
        yield render(value).replace("\n", "\\n")
    if len(values) > MOST_LISTED:
        yield f"… and {len(values) - MOST_LISTED} more"


def _render_change(change: Any) -> str:
    if not isinstance(change, Mapping):
        return _render(change)
    kind, path, origin = str(change.get("kind")), change.get("path"), change.get("origin")
    size = change.get("size")
    told = f" ({render_size(size)})" if isinstance(size, int) else ""
    moved = f"{_render(origin)} -> " if origin and origin != path else ""
    return f"{_LETTERS.get(kind, visible(kind, 20))}  {moved}{_render(path)}{told}"


def _render_check(check: Any) -> str:
    if not isinstance(check, Mapping):
        return _render(check)
    needed = "" if check.get("required", True) else " (not required)"
    return f"{_render(check.get('id'))}: {_render(check.get('state'))}{needed}"


def lines_of(gate: Mapping[str, Any]) -> list[str]:
    """Return a gate as lines for a terminal or a pipe: a name, and beside it its value, whose further lines are indented."""
    sections = sections_of(gate)
    width = max((len(name) for _, rows in sections for name, _ in rows), default=0)
    lines: list[str] = []
    for _, rows in sections:
        for name, text in rows:
            first, *others = text.split("\n")
            lines.append(f"{name:<{width}}  {first}".rstrip())
            lines += [f"{'':<{width}}  {line}".rstrip() for line in others]
        lines.append("")
    return lines[:-1]


def markdown_of(gate: Mapping[str, Any]) -> str:
    """Return a gate as markdown, in which nothing that a stranger wrote is markup."""
    lines: list[str] = []
    for title, rows in sections_of(gate):
        lines += [f"### {title.capitalize()}", ""]
        for name, text in rows:
            parts = text.split("\n")
            lines.append(f"- **{marked_down(name, 100)}**: {marked_down(parts[0], 2 * LONGEST)}")
            lines += [f"  - {marked_down(part, 2 * LONGEST)}" for part in parts[1:]]
        lines.append("")
    return "\n".join(lines)

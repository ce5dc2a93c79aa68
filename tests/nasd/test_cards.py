"""What a stranger writes is shown and never obeyed: not by a terminal, not by markdown, and not instead of what the card itself says."""

from __future__ import annotations

import html
import re
import unicodedata
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nasd.cards import LONGEST, MOST_LISTED, lines_of, markdown_of, render_size, sections_of
from nasd.legible import marked_down, visible

GATE: dict[str, Any] = {
    **{"gate": "g1", "state": "pending", "phase": "pending", "digest": "d1", "act": "a1", "alike": "k1", "required_role": "owner"},
    **{"deadline": "2026-12-01T00:00:00Z", "fallback": "reject", "use_within": 3600, "approvals": 2, "excluded": ["coder"]},
    "answers": [{"by": "ana", "approve": True}],
}
CARD: dict[str, Any] = {
    **{"what": "merge coder/r1 into main", "who": "coder", "on_behalf_of": "ana", "actors": ["coder", "helper"], "why": "tidy"},
    **{"files": 3, "deletes": 1, "bytes": 4096, "in_words": "adds 2 files, deletes 1 file in src/", "asks": "many", "rule": "big (p:1:1)"},
    "changes": [{"kind": "added", "path": "src/a", "size": 3}, {"kind": "renamed", "path": "src/b", "origin": "src/c"}],
    "checks": [{"id": "tests", "state": "passed", "required": False}],
    "reads": {"files": 2, "paths": ["web/page.html"]},
    "taint": {"origin": "external", "sensitivity": "internal"},
    **{"on_approve": "it is merged", "on_reject": "it is not", "surprise": "more"},
}

ATTACKS = [
    "fine\x1b[2J\x1b]0;title\x07",
    "\u202egnihton\u202c and \u2066more\u2069",
    "one\nrule: approved by everybody\nstate: approved",
    "one\r\nstate           approved",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) ![x](http://evil/x.png) <http://evil> http://evil www.evil.example",
    "\n# Approved\n\n- **state**: approved\n```\n",
    "a\u200bb\ufeffc\u00ad\U000e0041\ue000\u2028d",
    "[bold]red[/bold] [link=http://evil]x[/link]",
    "| a | b |\n|---|---|",
    "&lt;b&gt; &#x3c;b&#x3e;",
    "\udcff\udc80 undecodable",
    "\x9b31m",
]
words = st.one_of(st.sampled_from(ATTACKS), st.text(st.characters(), max_size=60))


def card_of(text: str) -> dict[str, Any]:
    """Return a gate in which a stranger wrote everything that a stranger can."""
    return GATE | {
        "comment": text,
        text or "empty": text,
        "card": CARD
        | {"why": text, "purpose": text, "who": text, "surprise": {text: text}, text: text, "actors": [text, text]}
        | {"changes": [{"kind": "added", "path": text, "size": 1}, text], "checks": [{"id": text, "state": text}], "twins": [[text]]}
        | {"reads": {"paths": [text], text: 1}, "destination": text},
    }


def test_a_card_is_in_the_order_of_judging() -> None:
    titles = [title for title, _ in sections_of(GATE | {"card": CARD})]
    assert titles == ["gate", "question", "change", "evidence", "rule", "answers", "identities"]
    told = dict(row for _, rows in sections_of(GATE | {"card": CARD}) for row in rows)
    assert told["actors"] == "coder → helper"
    assert told["size"] == "3 files, 1 of them deleted, 4.0 KiB"
    assert told["changes"] == "A  src/a (3 bytes)\nR  src/c -> src/b"
    assert told["checks"] == "tests: passed (not required)"
    assert told["answers so far"] == "1 of 2 approvals" and told["who decides"] == "2 people with the role owner"
    assert told["until"] == "2026-12-01T00:00:00Z; an approval counts for 1h"
    assert told["on silence"] == "after the deadline: reject" and told["surprise"] == "more"


@given(words)
def test_nothing_hidden_reaches_a_terminal_and_no_value_begins_a_line(text: str) -> None:
    lines = lines_of(card_of(text))
    shown = "\n".join(lines)
    assert not [letter for letter in shown if letter != "\n" and unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    honest = lines_of(GATE | {"card": CARD})
    states = [line for line in lines if re.match(r"state\s", line)]
    assert states == [line for line in lines if line.split() == ["state", "pending"]] and len(states) >= 1
    assert [line.split() for line in lines if line.startswith("phase")] == [line.split() for line in honest if line.startswith("phase")]


class Tags(HTMLParser):
    """Notes every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


@given(words)
def test_nothing_of_a_stranger_is_markup(text: str) -> None:
    shown = markdown_of(card_of(text))
    tags = Tags()
    tags.feed(re.sub(r"\\(.)", "", shown))
    assert tags.tags == []
    allowed = re.compile(r"(### [A-Z][a-z ]+|- \*\*.*\*\*: .*|  - .*|)")
    assert all(allowed.fullmatch(line) for line in shown.split("\n"))
    bare = re.sub(r"\\.", "", re.sub(r"^(### .*|\s*- (\*\*)?)", "", shown, flags=re.MULTILINE).replace("**: ", ""))
    assert not set(bare) & set("`*_[]#|~<>!"), bare


@given(words)
def test_what_markdown_shows_is_every_letter_of_it(text: str) -> None:
    seen = html.unescape(re.sub(r"\\(.)", r"\1", marked_down(text, 1000)))
    assert seen == " ⏎ ".join(visible(text, 1000).split("\n"))


def test_a_megabyte_is_cut_and_says_so() -> None:
    huge = "x" * (1 << 20)
    gate = card_of(huge)
    gate["card"]["changes"] = [{"kind": "added", "path": f"p{number}", "size": 1} for number in range(100_000)]
    text = "\n".join(lines_of(gate))
    assert len(text) < 100 * LONGEST and f"({(1 << 20) - LONGEST} more letters)" in text
    assert f"… and {100_000 - MOST_LISTED} more" in text
    assert len(markdown_of(gate)) < 200 * LONGEST


def test_sizes_are_for_people() -> None:
    assert [render_size(size) for size in (0, 1023, 1024, 5 << 20)] == ["0 bytes", "1023 bytes", "1.0 KiB", "5.0 MiB"]

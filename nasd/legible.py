"""Text of strangers, made safe to read: shown, never obeyed. Pure.

1. What moves a terminal's cursor, reorders text or cannot be seen is shown as an escape, or a person could be made to approve something
   other than what is on the screen.
2. What is too long is cut and says how much is missing.
3. In markdown nothing of it is a mark, a tag or a link.
"""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})
_MARKS = frozenset("\\`*_{}[]()#+-.!|>~<&:@$^=")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    """Return text that a terminal shows as it is; only line breaks and tabs stay special."""
    return "".join(letter if _is_plain(letter) else letter.encode("unicode_escape").decode() for letter in text)


def _is_plain(letter: str) -> bool:
    return letter in "\n\t" or not (unicodedata.category(letter) in {"Cc", "Cs"} or letter in _REORDERING)


def visible(text: str, most: int) -> str:
    """Return text in which nothing is hidden, of at most `most` letters before escaping, with its line breaks."""
    kept = "".join(letter if letter == "\n" or _is_visible(letter) else _escape(letter) for letter in text[:most])
    missing = len(text) - most
    return f"{kept}… ({missing} more letters)" if missing > 0 else kept


def one_line(text: str, most: int) -> str:
    """Return what `visible` does, with line breaks as escapes."""
    return visible(text, most).replace("\n", "\\n")


def _is_visible(letter: str) -> bool:
    return (letter.isascii() and letter.isprintable()) or (unicodedata.category(letter) not in _HIDDEN and letter not in _FILLERS)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def marked_down(text: str, most: int) -> str:
    """Return text as one line of markdown that says exactly these letters."""
    line = " ⏎ ".join(visible(text, most).split("\n"))
    return "".join(_mark_down(letter) for letter in line)


def _mark_down(letter: str) -> str:
    if letter in "<>&":
        return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[letter]
    return f"\\{letter}" if letter in _MARKS else letter

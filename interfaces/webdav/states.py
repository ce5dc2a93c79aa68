"""The ``If`` header (RFC 4918 section 10.4): what a client believes to be so, and the lock tokens it holds. Pure.

1. The header is a set of lists; it holds when one list holds; a list holds when each of its assertions does.
2. A list speaks of the resource of its tag, or without tag of the one the request names.
3. Whatever tokens are written anywhere in it count as submitted; whether they are the right ones is not asked here.
4. Reading is one pass over the text without going back, over at most `MAX_LENGTH` characters and `MAX_ASSERTIONS` assertions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from interfaces.faults import Fault, Kind

MAX_LENGTH = 16 << 10
MAX_ASSERTIONS = 512

_TOKEN = re.compile(r"\s*(?:(<[^<>\s]+>)|(\()|(\))|(\[(?:W/)?\"[^\"\]]*\"\])|(not(?=[\s<\[])))\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assertion:
    """One belief: a state token holds for the resource, or its entity tag (in quotes) is this one; or, negated, not."""

    token: str = ""
    etag: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Belief:
    """One list: all assertions are believed of the resource at `address` (empty: the one the request names)."""

    address: str
    assertions: tuple[Assertion, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What is so: the entity tag of a resource (empty: none), and the tokens of the locks on it."""

    etag: str = ""
    tokens: frozenset[str] = frozenset()


def parse_if(text: str) -> tuple[Belief, ...]:
    """Return the lists of an ``If`` header. Raises `Kind.INVALID`."""
    if len(text) > MAX_LENGTH:
        raise _unreadable("it is too long")
    words = _split(text)
    beliefs: list[Belief] = []
    address, position = "", 0
    while position < len(words):
        if words[position].startswith("<"):
            if not beliefs or beliefs[-1].address:
                address, position = words[position][1:-1], position + 1
            else:
                raise _unreadable("lists with and without a tag do not mix")
        assertions, position = _read_list(words, position)
        beliefs.append(Belief(address, assertions))
    if not beliefs:
        raise _unreadable("it is empty")
    return tuple(beliefs)


def submitted_tokens(beliefs: tuple[Belief, ...]) -> frozenset[str]:
    """Return every state token in the header."""
    return frozenset(assertion.token for belief in beliefs for assertion in belief.assertions if assertion.token)


def holds(beliefs: tuple[Belief, ...], state_of: Callable[[str], State]) -> bool:
    """Tell whether the header holds; `state_of` tells about the resource of a tag (empty: the one the request names)."""
    return any(_list_holds(belief.assertions, state_of(belief.address)) for belief in beliefs)


def _list_holds(assertions: tuple[Assertion, ...], state: State) -> bool:
    return all(_assertion_holds(assertion, state) != assertion.negated for assertion in assertions)


def _assertion_holds(assertion: Assertion, state: State) -> bool:
    if assertion.token:
        return assertion.token in state.tokens
    # A weak tag never matches: what it guards is a change (RFC 9110 section 8.8.3.2).
    return bool(state.etag) and assertion.etag == state.etag


def _split(text: str) -> list[str]:
    words: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(f"it cannot be understood from {text[position : position + 20]!r} on")
        words.append(match[0].strip())
        position = match.end()
        if len(words) > MAX_ASSERTIONS:
            raise _unreadable(f"it has more than {MAX_ASSERTIONS} parts")
    return words


def _read_list(words: list[str], position: int) -> tuple[tuple[Assertion, ...], int]:
    """Return the assertions of the list that starts at `position`, and where it ends."""
    if position >= len(words) or words[position] != "(":
        raise _unreadable("a list starts with '('")
    position += 1
    assertions: list[Assertion] = []
    while position < len(words) and words[position] != ")":
        negated = words[position].lower() == "not"
        position += negated
        assertions.append(_read_assertion(words[position] if position < len(words) else "", negated=negated))
        position += 1
    if position >= len(words) or not assertions:
        raise _unreadable("a list has at least one assertion and ends with ')'")
    return tuple(assertions), position + 1


def _read_assertion(word: str, *, negated: bool) -> Assertion:
    if word.startswith("<"):
        return Assertion(token=word[1:-1], negated=negated)
    if word.startswith("["):
        return Assertion(etag=word[1:-1], negated=negated)
    raise _unreadable('a assertion is <a state token> or ["an entity tag"]')


def _unreadable(why: str) -> Fault:
    return Fault(Kind.INVALID, f"the If header cannot be read: {why}", hint='send If: (<lock token> ["entity tag"])')

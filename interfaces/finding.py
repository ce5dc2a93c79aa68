"""Searching a branch: names by a pattern, content by literal text. Over the port alone, for every door that offers it.

1. Only what the workspace lists is looked at, and every file that is read is opened through it: decided, counted and noted as any read.
2. Text is literal and lies within one line. There are no expressions of the caller's to run, so no search takes longer than reading does.
3. A search is bounded in matches, names, files, bytes and seconds. When a bound is met, `Outcome.cursor` continues exactly there, also in
   the middle of a large file; every call gets at least one step further.
4. A file that cannot be read is told of in `Outcome.failures`, so an error never looks like "nothing found". What ends the caller's
   authority ends the search with its fault; a spent budget does so too, unless there are matches to give, which were paid for.
5. Order is that of the names, directory by directory, so pages neither repeat nor skip what stays where it is.
6. It blocks; no state outlives a call.
"""

from __future__ import annotations

import stat
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import quote_from_bytes, unquote_to_bytes

from interfaces.faults import Fault, Kind
from interfaces.matching import WINDOW, Needle, Pattern, States, cut_excerpt
from interfaces.port import ROOT, Access, Attributes, Handle, Workspace, walk

_BINARY_PROBE = 8 << 10
_MAX_TEXT = 1000
_MAX_GLOB = 1000
_GONE = frozenset({Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY, Kind.STALE})
_ENDED = frozenset({Kind.EXPIRED, Kind.REVOKED, Kind.UNAUTHENTICATED})

Names = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, below a path of the branch.

    `glob` chooses paths relative to `below`: ``*`` and ``?`` and ``[a-z]`` stay within a name, ``**`` is any number of names, and a
    pattern without a slash holds at any depth. With `text`, regular files that contain it are found, line by line; without, paths.
    """

    text: str = ""
    glob: str = "**"
    below: bytes = b""
    ignore_case: bool = False
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one call may cost: matches, names looked at, files opened, bytes read, seconds; and how much it tells of each."""

    matches: int = 1000
    names: int = 100_000
    files: int = 5_000
    bytes: int = 64 << 20
    seconds: float = 5.0
    excerpt: int = 200
    failures: int = 20


@dataclass(frozen=True, slots=True)
class Match:
    """A line (counted from 1) that contains the text, or (line 0) a path that fits the pattern."""

    path: bytes
    attributes: Attributes
    line: int = 0
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A path that could not be searched, and why."""

    path: bytes
    fault: Fault


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call found. `truncated` tells that there is more to look at, from `cursor` on; `stopped` names the bound that was met.

    `failures` holds the first ones of the `failed` paths; `binary` counts the files that were skipped because they are not text.
    """

    matches: tuple[Match, ...]
    failures: tuple[Failure, ...]
    failed: int
    files: int
    bytes: int
    binary: int
    cursor: str
    stopped: str

    @property
    def truncated(self) -> bool:
        """Tell whether the search ended before everything was looked at."""
        return bool(self.stopped)


def search(workspace: Workspace, query: Query, bounds: Bounds, clock: Callable[[], float], *, cursor: str = "") -> Outcome:
    """Return what fits `query`, from `cursor` on (empty: from the start). Blocks.

    `clock` gives seconds that never go back. Raises `Kind.INVALID` for a query or a cursor that means nothing, `Kind.NOT_FOUND` when there
    is nothing at `query.below`, `Kind.EXPIRED`, `Kind.REVOKED`, and `Kind.BUDGET` when nothing could be found before it was spent.
    """
    _check(query, bounds)
    return _Search(workspace, query, bounds, clock, _parse_cursor(cursor)).run()


def labels_of_matches(workspace: Workspace, outcome: Outcome) -> Mapping[bytes, Mapping[str, str]]:
    """Return the labels of the paths that a search found; empty ones for what nobody labelled."""
    nodes = {match.path: match.attributes.node for match in outcome.matches}
    return {path: workspace.label(node) for path, node in nodes.items()}


def _check(query: Query, bounds: Bounds) -> None:
    if len(query.text) > _MAX_TEXT or "\n" in query.text:
        raise Fault(Kind.INVALID, f"the text to find is one line of at most {_MAX_TEXT} characters", hint="look for a shorter part of it")
    if not query.glob or len(query.glob) > _MAX_GLOB:
        raise Fault(Kind.INVALID, f"a pattern has 1 to {_MAX_GLOB} characters", hint="for example *.py or src/**/test_*")
    if not 1 <= query.limit <= bounds.matches:
        raise Fault(Kind.INVALID, f"a page has 1 to {bounds.matches} matches, not {query.limit}", hint="ask for fewer and use the cursor")


# -- where a search stands ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """The next thing to look at: a path relative to where the search began, and a position in that file with the lines before it."""

    names: Names = ()
    offset: int = 0
    lines: int = 0


def _render_cursor(place: _Place) -> str:
    return f"{place.lines}.{place.offset}.{quote_from_bytes(b'/'.join(place.names), safe='/')}"


def _parse_cursor(text: str) -> _Place:
    if not text:
        return _Place()
    lines, _, rest = text.partition(".")
    offset, dot, path = rest.partition(".")
    numbers = lines.isascii() and lines.isdigit() and offset.isascii() and offset.isdigit() and len(lines) < 19 and len(offset) < 19
    if not numbers or not dot or len(text) > 1 << 15 or not text.isascii():
        raise Fault(Kind.INVALID, "the cursor is not one of a search", hint="repeat exactly what the page before gave, or leave it out")
    return _Place(tuple(unquote_to_bytes(path).split(b"/")) if path else (), int(offset), int(lines))


class _Stopped(Exception):
    """A bound is met; the search continues at a place."""

    def __init__(self, reason: str, place: _Place) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


# -- the search ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Level:
    """A directory on the way: its names that are still to be looked at."""

    names: Names
    states: States
    entries: Iterator[tuple[bytes, Attributes]]


@dataclass(slots=True)
class _Counted:
    names: int = 0
    files: int = 0
    bytes: int = 0
    binary: int = 0
    failed: int = 0
    matches: list[Match] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class _Search:
    """One call of `search`."""

    def __init__(self, workspace: Workspace, query: Query, bounds: Bounds, clock: Callable[[], float], start: _Place) -> None:
        self._start = self._at = start
        self._workspace = workspace
        self._query = query
        self._bounds = bounds
        self._clock = clock
        self._deadline = clock() + bounds.seconds
        self._pattern = Pattern(query.glob)
        self._needle = Needle(query.text, ignore_case=query.ignore_case)
        self._counted = _Counted()

    def run(self) -> Outcome:
        counted, place, reason = self._counted, _Place(), ""
        try:
            self._visit_all(self._start)
        except _Stopped as stopped:
            place, reason = stopped.place, stopped.reason
        self._workspace.check()  # to an authority that has ended everything is absent, which must not read as "nothing found"
        cursor = _render_cursor(place) if reason else ""
        matches, failures = tuple(counted.matches), tuple(counted.failures)
        return Outcome(matches, failures, counted.failed, counted.files, counted.bytes, counted.binary, cursor, reason)

    def _visit_all(self, start: _Place) -> None:
        root = walk(self._workspace, self._query.below) if self._query.below else self._workspace.attributes(ROOT)
        if not stat.S_ISDIR(root.st_mode):
            self._visit_single(root, start)
            return
        stack = self._descend_to(root, start)
        while stack:
            level = stack[-1]
            name, attributes = next(level.entries, (b"", None))
            if attributes is None:
                stack.pop()
                continue
            names, states = (*level.names, name), self._pattern.step(level.states, name)
            if states:
                self._visit(attributes, states, start if start.names == names else _Place(names))
            if states and stat.S_ISDIR(attributes.st_mode):
                stack.append(_Level(names, states, iter(self._entries(attributes.node, names))))

    def _visit_single(self, attributes: Attributes, start: _Place) -> None:
        """Look at a file that `below` itself names; the pattern is about its name."""
        name = self._query.below.rpartition(b"/")[2]
        states = self._pattern.step(self._pattern.start, name)
        self._visit(attributes, states, start if not start.names else _Place())

    def _descend_to(self, root: Attributes, start: _Place) -> list[_Level]:
        """Return the directories down to a place, each with what comes from it on; what is gone meanwhile is passed over."""
        stack: list[_Level] = []
        node, states = root.node, self._pattern.start
        for depth in range(max(len(start.names), 1)):
            entries = self._entries(node, start.names[:depth])
            if not start.names:
                return [_Level((), states, iter(entries))]
            wanted = start.names[depth]
            first = bisect_left(entries, wanted, key=lambda entry: entry[0])
            found = entries[first][1] if first < len(entries) and entries[first][0] == wanted else None
            deeper = found is not None and depth + 1 < len(start.names)
            stack.append(_Level(start.names[:depth], states, iter(entries[first + deeper :])))
            states = self._pattern.step(states, wanted)
            if found is None or not deeper or not states or not stat.S_ISDIR(found.st_mode):
                break
            node = found.node
        return stack

    def _entries(self, node: int, names: Names) -> Sequence[tuple[bytes, Attributes]]:
        try:
            return self._workspace.list(node)
        except Fault as fault:
            self._note_failure(names, fault)
            return ()

    def _visit(self, attributes: Attributes, states: States, place: _Place) -> None:
        self._pause(place, "names", met=self._counted.names >= self._bounds.names)
        self._counted.names += 1
        if not self._pattern.fits(states):
            return
        if not self._query.text:
            self._add(Match(self._path(place.names), attributes), place)
        elif stat.S_ISREG(attributes.st_mode):
            self._read(attributes, place)

    def _read(self, attributes: Attributes, place: _Place) -> None:
        self._pause(place, "files", met=self._counted.files >= self._bounds.files)
        try:
            with closing(self._workspace.open(attributes.node, Access())) as handle:
                self._counted.files += 1
                self._scan(handle, attributes, place)
        except Fault as fault:
            if fault.kind is Kind.BUDGET and self._counted.matches:
                raise _Stopped(fault.kind.value, self._at) from fault
            self._note_failure(place.names, fault)

    def _scan(self, handle: Handle, attributes: Attributes, place: _Place) -> None:
        while True:
            self._pause(place, "bytes", met=self._counted.bytes >= self._bounds.bytes)
            read = handle.read(place.offset, WINDOW)
            self._counted.bytes += len(read)
            if place.offset == 0 and b"\0" in read[:_BINARY_PROBE]:
                self._counted.binary += 1
                return
            piece, advance = self._needle.cut(read)
            self._collect(piece, attributes, place)
            if len(read) < WINDOW:
                return
            place = _Place(place.names, place.offset + advance, place.lines + piece.count(b"\n"))

    def _collect(self, piece: bytes, attributes: Attributes, place: _Place) -> None:
        """Add the lines of a piece, which begins at `place`, that contain the text."""
        path = self._path(place.names)
        for line, start, at, end in self._needle.lines(piece):
            excerpt = cut_excerpt(piece[start:end], at - start, self._bounds.excerpt)
            found = _Place(place.names, place.offset + start, place.lines + line)
            self._add(Match(path, attributes, found.lines + 1, excerpt), found)

    def _add(self, match: Match, place: _Place) -> None:
        matches = self._counted.matches
        if match.line and matches and (matches[-1].path, matches[-1].line) == (match.path, match.line):
            return  # another part of a very long line
        if len(matches) >= self._query.limit:
            raise _Stopped("matches", place)
        matches.append(match)

    def _pause(self, place: _Place, reason: str, *, met: bool) -> None:
        """Note what comes next. Raises `_Stopped` when a bound or the time is met, but not where this call began: it must get further."""
        self._at = place
        if place == self._start:
            return
        if met or self._clock() >= self._deadline:
            raise _Stopped(reason if met else "seconds", place)

    def _note_failure(self, names: Names, fault: Fault) -> None:
        if fault.kind in _ENDED or fault.kind is Kind.BUDGET:
            raise fault
        if fault.kind in _GONE:
            return
        self._counted.failed += 1
        if len(self._counted.failures) < self._bounds.failures:
            self._counted.failures.append(Failure(self._path(names), fault))

    def _path(self, names: Names) -> bytes:
        below = (self._query.below,) if self._query.below else ()
        return b"/".join((*below, *names))

"""From the names in a URL to what stands there, inside one branch.

1. A place is found from the root of its branch, name by name, through the port: what the caller cannot see is not there.
2. A symlink is what it points to, when that is inside the branch and the caller may follow it. One that points outside, in circles or to
   nothing is not there. Nothing is ever written outside the directory that was found.
3. A place has a parent even when nothing stands there: that is where something can be made. Without one it has none.
4. Pipes, sockets and the like are not there: this protocol has no word for them.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Attributes, Workspace
from interfaces.web.names import Names, display_name
from interfaces.webdav.faults import missing_parent

MAX_LINKS = 40
_ABSENT = frozenset({Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY, Kind.NAME_TOO_LONG, Kind.LOOP, Kind.STALE})
_SHOWN = frozenset({stat.S_IFREG, stat.S_IFDIR})
_NAMED = _SHOWN | {stat.S_IFLNK}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a branch. `names` is where it is once links are followed; `parent` the node of its directory, None when there is none.

    `attributes` is None when nothing stands there.
    """

    workspace: Workspace
    names: Names
    parent: int | None
    attributes: Attributes | None

    @property
    def name(self) -> bytes:
        """Return the last name, empty for the root of the branch."""
        return self.names[-1] if self.names else b""

    @property
    def title(self) -> str:
        """Return the path for people."""
        return display_name(b"/".join(self.names)) or "/"

    @property
    def is_collection(self) -> bool:
        """Tell whether a directory stands there."""
        return self.attributes is not None and stat.S_ISDIR(self.attributes.st_mode)

    def existing(self) -> Attributes:
        """Return the attributes of what stands there. Raises `Kind.NOT_FOUND`."""
        if self.attributes is None:
            raise absent(self.names)
        return self.attributes

    def directory(self) -> int:
        """Return the node of the directory. Raises a 409 `Refusal` without one, `Kind.NOT_PERMITTED` for the root of the branch."""
        if not self.names:
            raise Fault(Kind.NOT_PERMITTED, "a branch itself cannot be changed here", hint="change what is in it")
        if self.parent is None:
            raise missing_parent(self.title)
        return self.parent


@dataclass(frozen=True, slots=True)
class _Step:
    name: bytes
    attributes: Attributes


class _Walk:
    """A way from the root of a branch; `rest` is what is still to go, last name first."""

    def __init__(self, workspace: Workspace, names: Names) -> None:
        self.workspace = workspace
        self.rest = list(reversed(names))
        self.steps: list[_Step] = []
        self.root = workspace.attributes(ROOT)
        self._links = 0

    @property
    def names(self) -> Names:
        return tuple(step.name for step in self.steps)

    @property
    def here(self) -> Attributes:
        return self.steps[-1].attributes if self.steps else self.root

    def go(self, *, follow: bool) -> None:
        """Go all the way; `follow` tells whether a link at its end is followed. Raises `Kind.NOT_FOUND` and kin."""
        while self.rest:
            name = self.rest.pop()
            if name == b"..":
                self._back()
                continue
            attributes = self.workspace.lookup(self.here.node, name)
            if stat.S_ISLNK(attributes.st_mode) and (self.rest or follow):
                self._follow(attributes)
            else:
                self.steps.append(_Step(name, attributes))

    def _back(self) -> None:
        if not self.steps:
            raise Fault(Kind.NOT_FOUND, "the link leaves the branch")
        self.steps.pop()

    def _follow(self, link: Attributes) -> None:
        self._links += 1
        target = _readlink(self.workspace, link)
        if self._links > MAX_LINKS or target.startswith(b"/") or not target:
            raise Fault(Kind.NOT_FOUND, "the link leads nowhere")
        self.rest.extend(name for name in reversed(target.split(b"/")) if name not in {b"", b"."})


def locate(workspace: Workspace, names: Names, *, follow: bool = True) -> Place:
    """Return the place at `names`; `follow` tells whether a link that stands there is followed. Raises what the port raises."""
    walk = _Walk(workspace, names)
    parent: Attributes | None = None
    try:
        if names:
            parent, walk.rest = _go_to_parent(walk), [names[-1]]
        walk.go(follow=follow)
    except Fault as fault:
        if fault.kind not in _ABSENT:
            raise
        return _empty_place(walk, names, parent)
    if stat.S_IFMT(walk.here.st_mode) not in (_SHOWN if follow else _NAMED):
        return Place(workspace, names, None, None)
    above = walk.steps[-2].attributes if len(walk.steps) > 1 else walk.root
    return Place(workspace, walk.names, above.node, walk.here)


def members(workspace: Workspace, directory: Names, entries: Iterable[tuple[bytes, Attributes]]) -> Iterator[tuple[bytes, Attributes]]:
    """Yield what is shown of the entries of a directory (found already), a link as what it stands for."""
    for name, attributes in entries:
        kind = stat.S_IFMT(attributes.st_mode)
        if kind in _SHOWN:
            yield name, attributes
        elif kind == stat.S_IFLNK:
            target = locate(workspace, (*directory, name)).attributes
            if target is not None:
                yield name, target


def absent(names: Sequence[bytes]) -> Fault:
    """Return the fault of what is not there, or not for this caller."""
    return Fault(Kind.NOT_FOUND, f"{display_name(b'/'.join(names)) or '/'}: no such file or directory")


def _go_to_parent(walk: _Walk) -> Attributes:
    """Go all but the last name, which is left out, and return the directory. Raises `Kind.NOT_A_DIRECTORY` when it is none."""
    del walk.rest[0]
    walk.go(follow=True)
    if not stat.S_ISDIR(walk.here.st_mode):
        raise Fault(Kind.NOT_A_DIRECTORY, "not a directory")
    return walk.here


def _empty_place(walk: _Walk, names: Names, parent: Attributes | None) -> Place:
    """Return the place of nothing. Something can be made there when its directory is, and no link leads astray from there."""
    if parent is None or walk.here.node != parent.node or walk.rest:
        return Place(walk.workspace, names, None, None)
    return Place(walk.workspace, (*walk.names, names[-1]), parent.node, None)


def _readlink(workspace: Workspace, link: Attributes) -> bytes:
    try:
        return workspace.readlink(link.node)
    except Fault as fault:
        if fault.kind is Kind.DENIED:
            raise Fault(Kind.NOT_FOUND, "the link may not be read") from fault
        raise

"""How a workspace decides: from nodes and names to paths, from paths to what the authority says of them.

1. A node is decided by the path it has now; one that lost its last name while it was open answers to whoever opened it.
2. A directory moves when everything that is or could be below it may be written, and would be decided alike at its next place.
3. What the caller cannot see does not exist for a condition either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Condition
from nasd.authority import Authority
from nasd.manifest import words
from nasd.open_files import OpenNodes, Replaced
from nasd.paths import render_path
from nasd.trees import node_at
from store.contract import Tree, Working
from store.errors import NotADirectory, NotFound, Stale
from store.model import Attributes, EntryKind, NodeId
from trust.labels import DEFAULT, join
from trust.model import Action

LABEL_XATTRS = b"user.nas."
"""What the names of the attributes start with that show a label."""
_MOST_CONTENTS = 65536


class Deciding:
    """The deciding half of a workspace."""

    def __init__(
        self, branch: str, working: Working, authority: Authority, committed: Callable[[], Tree], clock: Callable[[], float]
    ) -> None:
        """Decide for `authority` over the `working` layer of a branch.

        `committed` gives the tree of its last commit; `clock` gives seconds that never go back.
        """
        self.branch = branch
        self._working = working
        self._authority = authority
        self._committed = committed
        self._open = OpenNodes()
        self._replaced = Replaced(clock)
        self._contents: dict[int, tuple[int, bytes]] = {}

    def _keep_replaced(self, target: int, name: bytes, path: bytes) -> None:
        """Keep what a rename is about to replace for those who looked it up and have not opened or followed it yet."""
        try:
            replaced = self._working.lookup(NodeId(target), name)
        except NotFound:
            return
        if replaced.kind is EntryKind.FILE:
            self._replaced.keep(path, self._working.open(replaced.node))
        elif replaced.kind is EntryKind.SYMLINK:
            self._replaced.keep_link(path, replaced.node, self._working.readlink(replaced.node))

    def _path_of(self, node: int) -> bytes:
        try:
            return self._working.path(NodeId(node))
        except Stale:
            if (former := self._replaced.path(node)) is not None:
                return former
            raise Fault(Kind.STALE, "the file has no name any more", hint="look it up again") from None

    def _require_visible(self, node: int, attributes: Attributes) -> None:
        try:
            path = self._working.path(NodeId(node))
        except Stale:
            self._authority.check()
            return
        directory, _, name = path.rpartition(b"/")
        if not self._authority.sees(directory, name or None, is_directory=attributes.kind is EntryKind.DIRECTORY):
            raise absent(directory, name)

    def _demand(self, action: Action, node: int) -> None:
        if node in self._open and self._nameless(node):
            self._authority.check()
        else:
            self._demand_path(action, self._path_of(node))

    def _demand_read(self, node: int) -> None:
        """Return when the content of a node may be read; see `Authority.demand_read`."""
        if node in self._open and self._nameless(node):
            self._authority.check()
        else:
            self._demand_read_at(self._path_of(node), self._content_of(node))

    def _demand_read_at(self, path: bytes, content: bytes) -> None:
        self._authority.demand_read(path, self._authority.label(path, content))

    def _content_of(self, node: int) -> bytes:
        """Return the identity of the content of a node; empty for what has none, or has no name any more."""
        version = self._working.version()
        known = self._contents.get(node)
        if known is not None and known[0] == version:
            return known[1]
        try:
            content = self._working.attributes(NodeId(node)).content
        except Stale:
            return b""
        if len(self._contents) >= _MOST_CONTENTS:
            self._contents.clear()
        self._contents[node] = (version, content)  # with the version from before: a change in between makes it worth nothing
        return content

    def _carry_label(self, parent: int, name: bytes, path: bytes) -> None:
        """Have the run's taint take up the label of what is about to be moved; what may not be read is not moved past that."""
        moved = self._working.lookup(NodeId(parent), name)
        below = moved.kind is EntryKind.DIRECTORY
        label = self._authority.label_below(path) if below else self._authority.label(path, moved.content)
        if label != DEFAULT:
            self._authority.demand_read(path, label)

    def _label_of(self, node: int, attributes: Attributes) -> Mapping[str, str]:
        """Return the label of a node in words; empty for what nobody labelled."""
        try:
            return self._label_at(self._working.path(NodeId(node)), attributes.content, self._is_committed)
        except Stale:
            return {}

    def _labels_in(self, directory: bytes, entries: Iterable[tuple[bytes, Any]]) -> Mapping[bytes, Mapping[str, str]]:
        """Return the labels of entries of a directory by name; those without are left out."""
        if not self._authority.labels_below(directory) and self._authority.taint_of(self.branch) == DEFAULT:
            return {}
        former: dict[bytes, bytes] | None = None

        def is_committed(path: bytes, content: bytes) -> bool:
            nonlocal former
            if former is None:  # a whole directory is cheaper than its names one by one
                former = self._contents_of(directory)
            return former.get(path.rpartition(b"/")[2]) == content

        told = ((name, self._label_at(join_path(directory, name), attributes.content, is_committed)) for name, attributes in entries)
        return {name: label for name, label in told if label}

    def _label_at(self, path: bytes, content: bytes, is_committed: Callable[[bytes, bytes], bool]) -> Mapping[str, str]:
        label = self._authority.label(path, content)
        taint = self._authority.taint_of(self.branch)
        if content and not taint.within(label) and not is_committed(path, content):
            label = join(label, taint)  # not committed yet: this is what it will be, whoever looks
        return {} if label == DEFAULT else words(label)

    def _is_committed(self, path: bytes, content: bytes) -> bool:
        """Tell whether the last commit has a content at a path."""
        tree = self._committed()
        try:
            return tree.attributes(node_at(tree, path)).content == content
        except (NotFound, NotADirectory):
            return False

    def _contents_of(self, directory: bytes) -> dict[bytes, bytes]:
        """Return what the last commit has directly in a directory, as identities by name."""
        tree = self._committed()
        try:
            return {name: found.content for name, found in tree.list(node_at(tree, directory))}
        except (NotFound, NotADirectory):
            return {}

    def _nameless(self, node: int) -> bool:
        try:
            self._working.path(NodeId(node))
        except Stale:
            return True
        return False

    def _demand_path(self, action: Action, path: bytes) -> None:
        directory, _, name = path.rpartition(b"/")
        self._authority.demand(action, directory, name or None)

    def _demand_name(self, action: Action, parent: int, name: bytes) -> None:
        self._authority.demand(action, self._path_of(parent), name)

    def _demand_subtree(self, source: bytes, destination: bytes) -> None:
        """Return when moving a directory moves only what may be written, and changes nobody's rights on what is below."""
        for path in (source, destination):
            if not self._authority.covers_below(Action.WRITE, path):
                raise Fault(
                    Kind.DENIED,
                    f"move {render_path(path)}: the lease does not cover everything that can be below it",
                    hint="move the files it covers one by one, or ask for a lease over the whole directory",
                )
        if not self._authority.same_below(source, destination):
            raise Fault(
                Kind.DENIED,
                f"move {render_path(source)}: the policy treats what is below {render_path(destination)} differently",
                hint="move the files one by one: each is decided by its own path",
            )

    def _for_caller(self, parent: int, name: bytes, condition: Condition | None) -> Callable[[Attributes | None], None] | None:
        """Return the condition as the store asks it: what the caller cannot see is not there (rule 3)."""
        if condition is None:
            return None
        directory = self._path_of(parent)

        def judge(standing: Attributes | None) -> None:
            seen = standing is not None and self._authority.sees(directory, name, is_directory=standing.kind is EntryKind.DIRECTORY)
            condition(standing if seen else None)

        return judge


def join_path(directory: bytes, name: bytes) -> bytes:
    """Return the path of a name in a directory."""
    return directory + b"/" + name if directory else name


def absent(directory: bytes, name: bytes | None) -> Fault:
    """Return the fault of what does not exist, or not for the caller: the same words."""
    path = join_path(directory, name) if name else directory
    return Fault(Kind.NOT_FOUND, f"{render_path(path)}: no such file or directory")

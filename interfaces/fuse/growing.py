"""Files that somebody may still be writing through another door.

1. A file held open and written elsewhere changes the workspace's version once, not at every write: a version for each
   write would cost the writer a transaction. So what changed lately is looked at again and again until it rests.
2. Only a few files are looked at, the latest to change, known to the kernel or not yet; a look is one stat below.
3. A file that rested for a while is left. The store makes a version again for the first write after a commit, which
   follows a moment of quiet, so a file that wakes up is seen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes, Workspace

FILES_MAX = 16
"""How many files are looked at."""

LOOKS_MAX = 1500
"""After how many looks without a change a file is left alone: half a minute at the usual 20 milliseconds."""

_GONE = frozenset((Kind.NOT_FOUND, Kind.STALE))


@dataclass(slots=True)
class _Look:
    size: int
    mtime_ns: int
    rested: int = 0


class Growing:
    """The files that are looked at."""

    def __init__(self, workspace: Workspace) -> None:
        """Start with none."""
        self._workspace = workspace
        self._looks: OrderedDict[int, _Look] = OrderedDict()

    def note(self, nodes: Iterable[int]) -> None:
        """Begin to look at nodes that just changed elsewhere, in place of those that changed longest ago.

        To be called before the kernel is told of the change: what it then fetches is at least as recent as the first look.
        """
        for node in list(nodes)[-FILES_MAX:]:
            attributes = self._attributes(node)
            if attributes is not None:
                self._looks[node] = _Look(attributes.size, attributes.mtime_ns)
                self._looks.move_to_end(node)
        while len(self._looks) > FILES_MAX:
            self._looks.popitem(last=False)

    def collect(self) -> list[int]:
        """Look once and return the nodes that changed since the last look."""
        return [node for node in list(self._looks) if self._has_changed(node)]

    def _has_changed(self, node: int) -> bool:
        look = self._looks[node]
        attributes = self._attributes(node)
        if attributes is None or look.rested > LOOKS_MAX:
            del self._looks[node]
            return False
        if (attributes.size, attributes.mtime_ns) == (look.size, look.mtime_ns):
            look.rested += 1
            return False
        self._looks[node] = _Look(attributes.size, attributes.mtime_ns)
        return True

    def _attributes(self, node: int) -> Attributes | None:
        try:
            return self._workspace.attributes(node)
        except Fault as fault:
            if fault.kind in _GONE:
                return None
            raise

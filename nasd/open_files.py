"""Open files of a workspace: checked and accounted at every call, and what keeps nameless ones usable.

1. A read or write on an open file, and a file that is still arriving, is refused as soon as the authority behind it ends.
2. Written bytes are accounted before they are stored, read bytes after they were read.
3. Any thread may call.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from interfaces.port import Content
from nasd.authority import Authority
from nasd.faults import guarded
from nasd.meter import Meter
from nasd.reads import Reading
from store.contract import Handle as StoreHandle
from store.errors import StoreError, Unsupported
from trust.model import BudgetKind

GRACE = 1.0
"""How long a replaced file can still be opened by who had looked it up, seconds."""


class MeteredContent:
    """Content that is checked and accounted while it is read. What was read for a file that could not be stored stays spent."""

    def __init__(self, content: Content, authority: Authority, meter: Meter) -> None:
        """Read from `content` for `authority`, spend from `meter`."""
        self._content = content
        self._authority = authority
        self._meter = meter

    def read(self, size: int, /) -> bytes:
        """Return the next bytes. Raises `Kind.BUDGET`, and what `Authority.check` raises once the authority has ended."""
        data = self._content.read(size)
        self._authority.check()
        self._meter.spend(BudgetKind.BYTES_WRITTEN, len(data))
        return data


class OpenNodes:
    """Which nodes are open through one workspace. Any thread may call."""

    def __init__(self) -> None:
        """Start with none."""
        self._counts: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __contains__(self, node: int) -> bool:
        return node in self._counts

    def add(self, node: int) -> None:
        """Count one more opening."""
        with self._lock:
            self._counts[node] += 1

    def remove(self, node: int) -> None:
        """Count one less."""
        with self._lock:
            self._counts[node] -= 1
            if self._counts[node] <= 0:
                del self._counts[node]


class Replaced:
    """Files and symlinks that a rename replaced, held for a moment. Any thread may call."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Hold nothing yet; `clock` gives seconds that never go back."""
        self._clock = clock
        self._held: dict[int, tuple[float, bytes, StoreHandle]] = {}
        self._links: dict[int, tuple[float, bytes, bytes]] = {}
        self._lock = threading.Lock()

    def keep_link(self, path: bytes, node: int, target: bytes) -> None:
        """Remember where a symlink pointed that is about to lose the name `path`."""
        self.expire()
        with self._lock:
            self._links[node] = (self._clock() + GRACE, path, target)

    def target(self, node: int) -> bytes | None:
        """Return where a replaced symlink pointed, None for anything else."""
        link = self._links.get(node)
        return link[2] if link is not None else None

    def keep(self, path: bytes, handle: StoreHandle) -> None:
        """Hold an open file that is about to lose the name `path`."""
        self.expire()
        with self._lock:
            former = self._held.pop(handle.node, None)
            self._held[handle.node] = (self._clock() + GRACE, path, handle)
        if former is not None:
            former[2].close()

    def path(self, node: int) -> bytes | None:
        """Return the path a held file had, None for one that is not held."""
        held = self._held.get(node) or self._links.get(node)
        return held[1] if held is not None else None

    def expire(self) -> None:
        """Let go of what was held long enough."""
        if self._held or self._links:
            self._drop(self._clock())

    def close(self) -> None:
        """Let go of everything."""
        self._drop(float("inf"))

    def _drop(self, now: float) -> None:
        with self._lock:
            over = [node for node, (until, _, _) in self._held.items() if until <= now]
            dropped = [self._held.pop(node) for node in over]
            self._links = {node: link for node, link in self._links.items() if link[0] > now}
        for _, _, handle in dropped:
            handle.close()


class CheckedHandle:
    """An open file whose every read and write is still checked and accounted."""

    def __init__(self, handle: StoreHandle, authority: Authority, meter: Meter, opened: OpenNodes, reading: Reading | None = None) -> None:
        """Wrap an open file of the store and keep it in `opened` until it closes; what is read goes into `reading`."""
        self.node: int = handle.node
        self._handle = handle
        self._authority = authority
        self._meter = meter
        self._reading = reading
        self._opened: OpenNodes | None = opened
        opened.add(self.node)

    @guarded
    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        self._authority.check()
        data = self._handle.read(offset, size)
        self._meter.spend(BudgetKind.BYTES_READ, len(data))
        self._note(offset, len(data))
        return data

    @guarded
    def lend(self, offset: int, size: int) -> int | None:
        """Account for bytes as if they were read, and return a descriptor to send them from; None where the engine has none."""
        self._authority.check()
        try:
            descriptor = self._handle.fileno()
        except Unsupported:
            return None
        self._meter.spend(BudgetKind.BYTES_READ, size)
        self._note(offset, size)
        return descriptor

    def _note(self, offset: int, size: int) -> None:
        if self._reading is not None:
            self._reading.cover(offset, size, self._authority.now())

    @guarded
    def write(self, offset: int, data: bytes) -> int:
        """Store `data` and return its length. Raises `Kind.BUDGET` before anything is stored."""
        self._authority.check()
        self._meter.spend(BudgetKind.BYTES_WRITTEN, len(data))
        try:
            return self._handle.write(offset, data)
        except (StoreError, OSError):
            self._meter.give_back(BudgetKind.BYTES_WRITTEN, len(data))
            raise

    @guarded
    def sync(self) -> None:
        """Return once what was written is on stable storage."""
        self._handle.sync()

    @guarded
    def close(self) -> None:
        """Release the handle; repeats do nothing."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.remove(self.node)
        self._handle.close()

    @guarded
    def fileno(self) -> int:
        """Return a descriptor that reads this file now, owned by the handle."""
        return self._handle.fileno()

"""The working layers this process holds: one object for each branch, however many callers use it.

1. Callers of one branch share a layer, so that they share its rows, its open files and its lock.
2. A layer nobody uses is kept for a while, because the next commit of the same branch wants it; the oldest idle ones go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from store.engines.git.content import measure_uppers
from store.engines.git.layer import Layer, Surroundings
from store.errors import NotFound

_IDLE = 64


class Layers:
    """Hands out layers by the number of their branch."""

    def __init__(self, around: Surroundings) -> None:
        """Make layers in these surroundings."""
        self._around = around
        self._lock = threading.Lock()
        self._layers: dict[int, Layer] = {}

    def acquire(self, branch: int) -> Layer:
        """Return the layer of a branch; give it back with `release`. Raises `NotFound`."""
        with self._lock:
            layer = self._layers.pop(branch, None) or self._load(branch)
            self._layers[branch] = layer
            layer.users += 1
            return layer

    def release(self, layer: Layer) -> None:
        """Give back one use of a layer."""
        with self._lock:
            layer.users -= 1
            if len(self._layers) > _IDLE:
                self._drop_oldest()

    @contextmanager
    def borrowed(self, branch: int) -> Iterator[Layer]:
        """Run the block with a layer. Raises `NotFound`."""
        layer = self.acquire(branch)
        try:
            yield layer
        finally:
            self.release(layer)

    def disk_bytes(self, branch: int) -> int:
        """Return the bytes on disk that the upper files of a branch take."""
        return measure_uppers(self._around.uppers / str(branch))

    def forget(self, branch: int) -> None:
        """Drop the layer of a branch that was removed, unless somebody still uses it."""
        with self._lock:
            layer = self._layers.get(branch)
            if layer is not None and layer.is_idle():
                self._layers.pop(branch).close()

    def _drop_oldest(self) -> None:
        idle = [layer for layer in self._layers.values() if layer.is_idle()]
        for layer in idle[: max(len(idle) - _IDLE, 0)]:
            self._layers.pop(layer.branch).close()

    def _load(self, branch: int) -> Layer:
        layer = Layer(self._around, branch)
        try:
            layer.refresh()
        except NotFound:
            layer.close()
            raise
        return layer

    def close(self) -> None:
        """Drop every layer."""
        with self._lock:
            for layer in self._layers.values():
                layer.close()
            self._layers.clear()

"""What an owner has that a gateway has not, and the end of both.

1. Maintenance belongs to the owner. A gateway that is asked for it refuses and names the reason.
2. Closing ends maintenance first, then releases what it used; the lock goes last, so the next owner finds nothing in use.
"""

from __future__ import annotations

from contextlib import ExitStack

from store.engines.git.maintenance import Maintainer
from store.errors import InUse


class Upkeep:
    """The maintenance of one store, if this process owns it."""

    def __init__(self, maintainer: Maintainer | None, closing: ExitStack) -> None:
        """Take over what has to be released at the end, in reverse order."""
        self._maintainer = maintainer
        self._closing = closing
        if maintainer is not None:
            closing.callback(maintainer.stop)
            maintainer.start()

    def owned(self) -> Maintainer:
        """Return the maintenance. Raises `InUse` in a gateway."""
        if self._maintainer is None:
            raise InUse("the store", "another process owns it; this one is a gateway")
        return self._maintainer

    def close(self) -> None:
        """Release everything. Repeats do nothing."""
        self._closing.close()

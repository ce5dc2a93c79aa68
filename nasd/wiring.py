"""Every object is made once, here.

1. The owner of a data directory is the daemon (or a setup that runs before it): it recovers, publishes and maintains.
   Gateways (mount processes) open the same state beside it and only work in working layers.
2. Time and randomness enter here and are arguments everywhere else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nasd.acts import Clock
from nasd.config import Settings
from nasd.errors import AlreadyRunning, NotInitialised
from store import Engine, open_store
from store.errors import InUse
from trust.service import Trust

Role = Literal["owner", "gateway"]


@dataclass(frozen=True, slots=True)
class Appliance:
    """The opened state of one data directory, and the two impure arguments."""

    settings: Settings
    engine: Engine
    trust: Trust
    clock: Clock
    entropy: Callable[[int], bytes]

    def now(self) -> int:
        """Return the time in whole seconds since the epoch."""
        return int(self.clock())

    def close(self) -> None:
        """Finish background work and release everything."""
        self.engine.close()
        self.trust.close()


def open_appliance(settings: Settings, role: Role) -> Appliance:
    """Open the state of a data directory.

    Raises `NotInitialised` when there is none, `AlreadyRunning` when `role` is owner and another process owns it.
    """
    if not settings.store.is_dir() or not settings.trust.is_dir():
        raise NotInitialised(
            f"{settings.home} holds no Agent NAS yet", hint="run `nas init` first, or name the data directory with NAS_HOME"
        )
    try:
        engine = open_store(settings.store, role=role)
    except InUse as error:
        raise AlreadyRunning(f"{settings.home} is in use: {error}", hint="`nas stop` ends the daemon that owns it") from error
    trust = Trust.open(settings.trust)
    return Appliance(settings, engine, trust, time.time, os.urandom)

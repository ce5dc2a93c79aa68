"""Every object is made once, here.

1. The owner of a data directory is the daemon (or a setup that runs before it): it recovers, publishes and maintains.
   Gateways (mount processes) open the same state beside it and only work in working layers.
2. Time and randomness enter here and are arguments everywhere else.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nasd.acts import Clock
from nasd.config import Settings
from nasd.errors import AlreadyRunning, Exposed, NotInitialised
from nasd.reach import judge, survey
from store import Engine, open_store
from store.errors import InUse
from trust.service import Trust

Role = Literal["owner", "gateway"]
log = logging.getLogger("nasd.wiring")


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


def require_out_of_reach(settings: Settings) -> None:
    """Return when nobody else reaches the data directory; what only looks wrong is logged. Raises `Exposed`."""
    for finding in judge(survey(settings)):
        if finding.fatal:
            raise Exposed(finding.what, hint=finding.hint)
        log.warning("%s: %s", finding.what, finding.hint)


def open_appliance(settings: Settings, role: Role) -> Appliance:
    """Open the state of a data directory.

    Raises `NotInitialised` when there is none, `AlreadyRunning` when `role` is owner and another process owns it, `Exposed` when
    somebody else could reach what an owner is about to open.
    """
    if not settings.store.is_dir() or not settings.trust.is_dir():
        raise NotInitialised(
            f"{settings.home} holds no Agent NAS yet", hint="run `nas init` first, or name the data directory with NAS_HOME"
        )
    if role == "owner":
        require_out_of_reach(settings)
    try:
        engine = open_store(settings.store, role=role)
    except InUse as error:
        raise AlreadyRunning(f"{settings.home} is in use: {error}", hint="`nas stop` ends the daemon that owns it") from error
    trust = Trust.open(settings.trust)
    return Appliance(settings, engine, trust, time.time, os.urandom)

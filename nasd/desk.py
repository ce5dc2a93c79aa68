"""What the operations of the API work with: the appliance, what the caller sees of it, and the services of the daemon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interfaces.port import Document
from nasd.asking import Asking
from nasd.gates import Gates
from nasd.mounts import Mounts
from nasd.notary import Notary
from nasd.outward import Outward
from nasd.proposals import Proposals
from nasd.reclaim import Reclaim
from nasd.sight import Sight


@dataclass(frozen=True, slots=True)
class Desk(Sight):
    """Everything an operation may use. `describe` tells about the daemon itself, `stop` asks it to drain."""

    proposals: Proposals
    gates: Gates
    mounts: Mounts
    reclaim: Reclaim
    outward: Outward
    describe: Callable[[], Document]
    stop: Callable[[], None]
    notary: Notary

    @property
    def asking(self) -> Asking:
        """Return what asks people and uses their answers."""
        return Asking(self.appliance)


def limited(items: list[Document], arguments: Mapping[str, Any], key: str) -> Document:
    """Return one page of `items` by the arguments ``limit`` and ``cursor``; the cursor is the last `key` seen."""
    limit = int(arguments.get("limit", 1000))
    cursor = arguments.get("cursor")
    if cursor is not None:
        items = [item for item in items if str(item[key]) > str(cursor)]
    shown = items[:limit]
    more = len(items) > limit
    return {"items": shown, "next": str(shown[-1][key]) if more and shown else None, "truncated": more}

"""The `Control` port as a gateway process has it: files from the state it opened itself, everything else from the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interfaces.port import Caller, Document
from nasd.entrance import Entrance, identity_behind
from nasd.link import LinkClient
from nasd.operations import all_operations
from nasd.sight import Sight
from nasd.workspaces import describe_identity


class GatewayControl(Entrance):
    """What the doors of one gateway process ask. Any thread may call."""

    def __init__(self, sight: Sight, link: LinkClient) -> None:
        """Answer from the state behind `sight`; ask the daemon through `link`."""
        super().__init__(sight)
        self._link = link
        self._operations = {name: operation.document() for name, operation in all_operations().items()}

    def call(self, caller: Caller, operation: str, arguments: Mapping[str, Any]) -> Document:
        """Have the daemon carry out one operation. Raises `Kind.UNAVAILABLE` while it is away."""
        identity = identity_behind(caller, operation)
        return self._link.ask({"caller": describe_identity(identity), "operation": operation, "arguments": dict(arguments)})

    def operations(self) -> Mapping[str, Document]:
        """Return the description of every operation."""
        return self._operations

    def ready(self) -> Document:
        """Return whether this process serves, and whether the daemon answers: without it only files do."""
        return {"ready": not self._draining.is_set(), "home": str(self._sight.appliance.settings.home)}

    def close(self) -> None:
        """Flush what was counted and release everything."""
        super().close()
        self._link.close()

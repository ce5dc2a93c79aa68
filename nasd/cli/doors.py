"""Where the doors of the appliance are, for verbs that start or configure a client of one."""

from __future__ import annotations

from interfaces.faults import Fault
from nasd.cli.session import Session
from nasd.client import NoDaemon


def door_url(session: Session, door: str) -> str:
    """Return the address of a door: as the daemon tells it to who may see its status, else as the settings have it."""
    from nasd.exposure import describe_doors

    try:
        return str(session.client.get("/v1/status")["doors"][door])
    except (Fault, NoDaemon):
        return describe_doors(session.settings, session.settings.address[1])[door]

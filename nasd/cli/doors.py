"""Where the doors of the appliance are, for verbs that start or configure a client of one."""

from __future__ import annotations

from interfaces.faults import Fault
from nasd.cli.session import Session
from nasd.client import NoDaemon


def door_url(session: Session, door: str) -> str:
    """Return the address of a door: as the daemon tells it, else (there is none, or no secret for it) as the settings have it."""
    from nasd.exposure import describe_doors

    try:
        return next(str(each["url"]) for each in session.client.items("/v1/doors") if each["door"] == door)
    except (Fault, NoDaemon):
        return describe_doors(session.settings, session.settings.address[1])[door]

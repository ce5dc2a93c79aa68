"""``nas mount``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nasd.cli.session import Session, verb

if TYPE_CHECKING:
    from nasd.client import Client

_PERIOD = 0.2


@verb
@click.argument("target", metavar="RUN|BRANCH")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--foreground", is_flag=True, help="Stay until it is unmounted; Ctrl-C unmounts.")
@click.option("--allow-other", is_flag=True, default=None, help="Let other users of this machine in.")
def command(session: Session, target: str, directory: Path, foreground: bool, allow_other: bool | None) -> None:
    """Mount a run's branch, or main read-only.

    Returns once it is usable; it stays until it is unmounted or its lease ends. With a lease, what travels is a credential derived from
    it that is good for mounting alone (`nas lease credentials --for mount`).
    """
    mountpoint = str(directory.absolute())
    client = _mounting(session)
    document = client.post("/v1/mounts", {"target": target, "mountpoint": mountpoint, "allow_other": allow_other})
    session.show(document, lambda: print(document["mountpoint"]))
    if foreground:
        _stay(client, mountpoint)


def _mounting(session: Session) -> Client:
    """Return a client that mounts: with a lease in force it shows no more of it than that takes."""
    if not session.acts_with_lease:
        return session.client
    from nasd.narrowing import derive_offline

    return session.client_with(derive_offline(session.secret or "", "mount")["credential"])


def _stay(client: Client, mountpoint: str) -> None:
    try:
        while any(mount["mountpoint"] == mountpoint for mount in client.items("/v1/mounts")):
            time.sleep(_PERIOD)
    except KeyboardInterrupt:
        client.post("/v1/mounts/remove", {"mountpoint": mountpoint})

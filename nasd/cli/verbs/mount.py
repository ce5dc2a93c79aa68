"""``nas mount``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from nasd.cli.session import Session, verb

_PERIOD = 0.2


@verb
@click.argument("target", metavar="RUN|BRANCH")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--foreground", is_flag=True, help="Stay until it is unmounted; Ctrl-C unmounts.")
@click.option("--allow-other", is_flag=True, default=None, help="Let other users of this machine in.")
def command(session: Session, target: str, directory: Path, foreground: bool, allow_other: bool | None) -> None:
    """Mount a run's branch, or main read-only.

    Returns once it is usable; it stays until it is unmounted or its lease ends.
    """
    mountpoint = str(directory.absolute())
    document = session.client.post("/v1/mounts", {"target": target, "mountpoint": mountpoint, "allow_other": allow_other})
    session.show(document, lambda: print(document["mountpoint"]))
    if foreground:
        _stay(session, mountpoint)


def _stay(session: Session, mountpoint: str) -> None:
    try:
        while any(mount["mountpoint"] == mountpoint for mount in session.client.items("/v1/mounts")):
            time.sleep(_PERIOD)
    except KeyboardInterrupt:
        session.client.post("/v1/mounts/remove", {"mountpoint": mountpoint})

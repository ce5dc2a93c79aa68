"""The daemon's environment, shed: what the daemon does not understand is the broker's alone.

1. Before the daemon opens anything it puts every variable that it does not keep (`nasd.config.split_environment`) into a sealed file in
   memory and starts itself again without them: its own memory and ``/proc/PID/environ`` never held one by the time anybody is served.
2. The file has no name and is never mapped; the broker alone inherits it and reads it, again after each start.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Mapping, MutableMapping

from nasd.config import split_environment

VARIABLE = "NAS_BROKER_ENVIRONMENT"
"""Names, for the process that was started again, the descriptor of the file."""
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


def shed_environment(environ: Mapping[str, str]) -> None:
    """Start this program again without what is the broker's; return when that has happened, or nothing is."""
    environment, descriptors = hand_over(environ)
    if VARIABLE in environ or not descriptors:
        return
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - it is ourselves


def hand_over(environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[int, ...]]:
    """Return the environment of a daemon that another process starts, and the descriptors that it has to inherit for it."""
    kept, handed = split_environment(environ)
    if not handed:
        return kept, ()
    descriptor = seal(handed)
    return {**kept, VARIABLE: str(descriptor)}, (descriptor,)


def take_descriptor(environ: MutableMapping[str, str]) -> int | None:
    """Return the descriptor of the broker's variables, None without any; no child but the broker inherits it from now on."""
    named = environ.pop(VARIABLE, "")
    if not named.isdecimal():
        return None
    os.set_inheritable(int(named), False)
    return int(named)


def seal(variables: Mapping[str, str]) -> int:
    """Return a descriptor of a file in memory that holds the variables and cannot be changed any more."""
    descriptor = os.memfd_create("broker-environment", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(descriptor, json.dumps(dict(variables)).encode("utf-8", "surrogateescape"))
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor


def read_sealed(descriptor: int) -> dict[str, str]:
    """Return the variables that a sealed file holds."""
    size = os.fstat(descriptor).st_size
    variables: dict[str, str] = json.loads(os.pread(descriptor, size, 0).decode("utf-8", "surrogateescape"))
    return variables

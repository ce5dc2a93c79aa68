"""References to secrets into secrets: variables, files, systemd's credentials, a vault. Only the broker's process does this.

1. A secret is fetched for each use and kept by nobody: what was rotated is used from the next time on. Variables are as they were when the
   daemon started.
2. A file counts when nobody but its owner can read it, its owner is root or us, and it lies on no file system that a program serves,
   such as a mount that agents write to.
3. A fault names the reference and never what was found there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from interfaces.faults import Fault, Kind
from nasd.broker.scrubbing import SHORTEST
from trust.accounts import Reference
from trust.requests import holds_secret
from trust.secret import Secret

LONGEST = 8192
_READABLE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREDENTIALS = "CREDENTIALS_DIRECTORY"


class Vault(Protocol):
    """What keeps secrets elsewhere."""

    def read(self, reference: Reference) -> str:
        """Return a secret. Raises `Kind.UNAVAILABLE`."""


class Resolver:
    """Resolves references. Any thread may call."""

    def __init__(self, environment: Mapping[str, str], vault: Vault) -> None:
        """Look into the variables that the daemon was started with, and into `vault`."""
        self._environment = environment
        self._vault = vault
        self._schemes = {"env": self._env, "file": self._file, "systemd": self._systemd, "vault": self._vault_secret}

    def resolve(self, reference: Reference) -> Secret:
        """Return the secret that a reference names. Raises `Kind.UNAVAILABLE`."""
        found = self._schemes[reference.scheme](reference)
        return Secret(_checked(reference, found))

    def _env(self, reference: Reference) -> bytes:
        value = self._environment.get(reference.place)
        if value is None:
            raise missing(reference, "the daemon was started without this variable", "set it where the daemon is started, then restart it")
        return value.encode("utf-8", "surrogateescape")

    def _file(self, reference: Reference) -> bytes:
        return read_private(reference, Path(reference.place))

    def _systemd(self, reference: Reference) -> bytes:
        folder = self._environment.get(CREDENTIALS)
        if folder is None:
            raise missing(
                reference, "the daemon runs without systemd's credentials", f"add LoadCredential={reference.place}:/PATH to its unit"
            )
        return read_private(reference, Path(folder) / reference.place)

    def _vault_secret(self, reference: Reference) -> bytes:
        return self._vault.read(reference).encode()


def read_private(reference: Reference, path: Path) -> bytes:
    """Return what a file that only its owner reads holds. Raises `Kind.UNAVAILABLE`."""
    try:
        descriptor = os.open(path, _READABLE)
    except OSError as error:
        raise missing(reference, error.strerror or "it cannot be opened", "name a file that the daemon's user can read") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise missing(reference, "it is no file", "name a file")
        if found.st_mode & 0o077 or found.st_uid not in (0, os.getuid()):
            raise missing(reference, "others can read it, or it is theirs", f"chown it to the daemon's user, then chmod 600 {path}")
        if _is_served(found.st_dev):
            raise missing(reference, "it lies on a mount that a program serves", "keep secrets where no agent writes")
        return os.read(descriptor, LONGEST + 1)
    finally:
        os.close(descriptor)


def missing(reference: Reference, why: str, hint: str) -> Fault:
    """Return the fault of a reference that leads to no secret."""
    return Fault(Kind.UNAVAILABLE, f"{reference}: {why}", hint=hint)


def _checked(reference: Reference, found: bytes) -> bytes:
    secret = found.removesuffix(b"\n").removesuffix(b"\r")
    if not SHORTEST <= len(secret) <= LONGEST:
        raise missing(reference, f"a secret has {SHORTEST} to {LONGEST} bytes", "look at what is stored there")
    if holds_secret(secret):
        raise missing(reference, "it holds a secret of this appliance, which goes nowhere", "name the secret of the account")
    if any(byte < 0x20 or byte == 0x7F for byte in secret):
        raise missing(reference, "it holds control characters or more than one line", "store the secret alone, in one line")
    return secret


def _is_served(device: int) -> bool:
    """Tell whether a file system is one that a process serves (FUSE)."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with suppress(FileNotFoundError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            if before.split(" ")[2] == wanted and after.startswith("fuse"):
                return True
    return False

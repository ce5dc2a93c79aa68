"""Git between a folder of ours and a pinned remote, as the account says.

1. Fixed arguments and environment: no configuration of the machine or the user, no hook, no submodule, no redirect, one transport.
2. A fetch brings one branch into a quarantine, checked object by object (`transfer.fsckObjects`); what becomes of it is decided elsewhere.
3. A push moves one branch forward; it never forces and never deletes.
4. Time and disk are bounded: git and all it started are killed when they take more.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from interfaces.faults import Fault, Kind
from nasd.broker.passwords import answering
from nasd.broker.scrubbing import scrub_text
from trust.accounts import Account
from trust.errors import AccountInvalid
from trust.requests import check_remote
from trust.secret import Secret

FETCHED = "refs/nas/fetched"
_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "transfer.fsckObjects=true",
    "fetch.unpackLimit=1",
    "http.followRedirects=false",
    "http.proxy=",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "submodule.recurse=false",
    "credential.helper=",
)
_TICK = 0.2


@dataclass(frozen=True, slots=True)
class GitBounds:
    """What one exchange may take: seconds in all, bytes that it may put on disk."""

    seconds: float = 600.0
    largest: int = 4 << 30


def find_base(folder: Path, commit: str, head: str, bounds: GitBounds) -> str:
    """Return the best common ancestor of two commits of `folder`, empty when they have none. Raises `Fault`."""
    return _run_here(folder, ["merge-base", commit, head], bounds, allowed=(0, 1))


def fetch(account: Account, folder: Path, path: str, branch: str, secret: Secret, bounds: GitBounds) -> str:
    """Fetch a branch of a remote into the bare repository `folder` and return the commit it leads to. Raises `Fault`."""
    _check(account, path, branch, push=False)
    wanted = f"+refs/heads/{branch}:{FETCHED}"
    options = ["fetch", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet"]
    _run(account, folder, [*options, "--end-of-options", _url(account, path), wanted], secret, bounds)
    return _run_here(folder, ["rev-parse", "--verify", "--end-of-options", f"{FETCHED}^{{commit}}"], bounds)


def push(account: Account, folder: Path, path: str, commit: str, branch: str, secret: Secret, bounds: GitBounds) -> str:
    """Push a commit of `folder` to a branch of a remote and return what git says of it. Raises `Fault`."""
    _check(account, path, branch, push=True)
    options = ["push", "--porcelain", "--no-verify", "--no-follow-tags"]
    told = _run(account, folder, [*options, "--end-of-options", _url(account, path), f"{commit}:refs/heads/{branch}"], secret, bounds)
    return next((line for line in told.splitlines() if "\t" in line), "").partition("\t")[2].replace("\t", " ")


def _check(account: Account, path: str, branch: str, *, push: bool) -> None:
    try:
        check_remote(account, path, push=push)
    except AccountInvalid as error:
        raise Fault(Kind.INVALID, str(error), hint=f"`nas account show {account.name}` shows what it lets") from None
    checked = subprocess.run(["git", "check-ref-format", f"refs/heads/{branch}"], env=_ENVIRONMENT, check=False, capture_output=True)
    if checked.returncode or branch.startswith("-"):
        raise Fault(Kind.INVALID, f"{branch[:200]!r} is no name of a branch", hint="name it without refs/heads/")


def _url(account: Account, path: str) -> str:
    # Without the user, whose name could be read as a host; git is told it together with the password.
    return f"{account.destination}{path}"


def _run(account: Account, folder: Path, arguments: Sequence[str], secret: Secret, bounds: GitBounds) -> str:
    """Run git, which gets the password when it asks, and return what it printed. Raises `Fault`."""
    settings = [f"protocol.{account.destination.scheme}.allow=always"]
    if account.authorities:
        settings.append(f"http.sslCAInfo={account.authorities}")
    with answering(account, secret) as (descriptor, program):
        child = _start(folder, arguments, [*settings, f"credential.helper={program}"], (descriptor,))
        told, errors = _finish(child, folder, bounds)
    if child.returncode:
        raise _failure(account, arguments[0], told, errors, secret)
    return scrub_text(told.decode("utf-8", "backslashreplace"), secret.reveal())


def _run_here(folder: Path, arguments: Sequence[str], bounds: GitBounds, allowed: Sequence[int] = (0,)) -> str:
    """Run git over a folder of ours, without network and secret, and return what it printed. Raises `Kind.INVALID`."""
    child = _start(folder, arguments, (), ())
    told, errors = _finish(child, folder, bounds)
    if child.returncode not in allowed:
        why = errors.decode("utf-8", "backslashreplace").strip()[-500:]
        raise Fault(Kind.INVALID, f"git {arguments[0]}: {why}", hint="look at the remote's branch")
    return told.decode("utf-8", "backslashreplace").strip()


def _start(folder: Path, arguments: Sequence[str], settings: Sequence[str], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    options = [option for setting in (*_SETTINGS, *settings) for option in ("-c", setting)]
    return subprocess.Popen(
        ["git", *options, f"--git-dir={folder}", *arguments],
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        cwd="/",
        start_new_session=True,
    )


def _finish(child: subprocess.Popen[bytes], folder: Path, bounds: GitBounds) -> tuple[bytes, bytes]:
    """Return what a child prints until its end. Raises `Kind.TOO_LARGE`, `Kind.UNAVAILABLE` when it takes more than it may."""
    deadline, before = time.monotonic() + bounds.seconds, _size(folder)
    try:
        while True:
            printed = _await(child)
            if _size(folder) - before > bounds.largest:
                raise Fault(Kind.TOO_LARGE, f"the remote sends more than {bounds.largest} bytes", hint="fetch a smaller branch")
            if printed is not None:
                return printed
            if time.monotonic() > deadline:
                raise Fault(Kind.UNAVAILABLE, f"the remote took more than {bounds.seconds:g} seconds", hint="try again later")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def _await(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes] | None:
    """Return what a child printed when it has ended, None when it works on after a moment."""
    try:
        return child.communicate(timeout=_TICK)
    except subprocess.TimeoutExpired:
        return None


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total


def _failure(account: Account, verb: str, told: bytes, errors: bytes, secret: Secret) -> Fault:
    rejected = [line for line in told.decode("utf-8", "backslashreplace").splitlines() if line.startswith("!")]
    lines = [*rejected, *errors.decode("utf-8", "backslashreplace").strip().splitlines()] or ["it failed without a word"]
    why = scrub_text(lines[0] if rejected else lines[-1], secret.reveal()).removeprefix("fatal: ").replace("\t", " ")
    kind = Kind.CONFLICT if rejected else Kind.UNAVAILABLE
    hint = (
        "fetch first: the remote's branch has moved" if rejected else f"`nas account test {account.name}` tells whether the account works"
    )
    return Fault(kind, f"git {verb} {account.name}: {why[:500]}", hint=hint)

"""Git as a child process: fixed arguments, fixed environment, no setting of the machine or of a repository that runs anything.

1. No system or user configuration is read; hooks, file system monitors, automatic maintenance and every transport are off.
   An import opens exactly the transport its source needs (`Transport`).
2. A repository is always named (``--git-dir``): git never finds one by looking around, so a repository embedded in content is inert.
3. Nothing is ever asked: no terminal, no password program.
4. Arguments that came from outside follow ``--end-of-options``; the callers see to that.
5. A child inherits none of this process' environment, and no descriptor but one that a caller names: a lock that has to outlive a killed
   parent as long as its child works on.
6. A failed child raises `CommandFailed` with the last line it printed; output is never matched against a pattern to learn what went wrong.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from store.errors import StoreError

_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "SSH_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=all",
    "core.bigFileThreshold=8m",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "transfer.fsckObjects=true",
    "fetch.unpackLimit=1",
)


class CommandFailed(StoreError):
    """A git child ended with an error; the subject is what was asked of it."""


def git_arguments(git_dir: Path | None, *arguments: str | bytes, settings: Sequence[str] = ()) -> list[str | bytes]:
    """Return the whole argument list of one git child; later settings win over the fixed ones."""
    options: list[str | bytes] = ["git"]
    for setting in (*_SETTINGS, *settings):
        options += ["-c", setting]
    if git_dir is not None:
        options.append(f"--git-dir={git_dir}")
    return [*options, *arguments]


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment of a git child."""
    return {**_ENVIRONMENT, **(extra or {})}


def run_git(
    git_dir: Path | None,
    *arguments: str | bytes,
    settings: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    given: bytes = b"",
    inherited: Sequence[int] = (),
) -> bytes:
    """Run git to its end with `given` as its input and return what it printed. Raises `CommandFailed`."""
    done = subprocess.run(
        git_arguments(git_dir, *arguments, settings=settings),
        env=git_environment(extra),
        input=given,
        capture_output=True,
        check=False,
        pass_fds=inherited,
    )
    if done.returncode != 0:
        raise _failure(arguments, done.stderr)
    return done.stdout


@contextmanager
def git_reader(git_dir: Path | None, *arguments: str | bytes, given: IO[bytes] | int = subprocess.DEVNULL) -> Iterator[IO[bytes]]:
    """Yield the output of a running git child; leaving early ends it. Raises `CommandFailed` when it was read to its end and failed."""
    child = subprocess.Popen(
        git_arguments(git_dir, *arguments), env=git_environment(), stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert child.stdout is not None
    try:
        yield child.stdout
        if child.stdout.read(1) == b"" and child.wait() != 0:
            raise _failure(arguments, b"")
    finally:
        child.stdout.close()
        child.terminate()
        child.wait()


def _failure(arguments: Sequence[str | bytes], printed: bytes) -> CommandFailed:
    verb = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode()
    lines = printed.decode("utf-8", "backslashreplace").strip().splitlines()
    return CommandFailed(f"git {verb}", lines[-1] if lines else "it failed without a word")

"""Addresses of this door: ``/git/<branch>.git/<what>``. Pure.

1. A branch is ``main``, ``<role>/<run>`` or the id of a run; ``.git`` after it may be left out. The first name that is none of a branch's
   begins what is asked of it.
2. What is asked is one of a closed set; anything else does not exist.
"""

from __future__ import annotations

import enum
import re
import shlex
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.web.names import decode_text

PREFIX = "/git/"

_ADDRESS = re.compile(
    r"(?P<branch>[^/]+(?:/[^/]+)?)/(?P<what>info/refs|git-upload-pack|git-receive-pack|info/attributes|HEAD|objects/.*|info/lfs/(?P<large>.+))"
)


class Asked(enum.Enum):
    """What can be asked of a repository."""

    REFERENCES = "info/refs"
    FETCH = "git-upload-pack"
    PUSH = "git-receive-pack"
    ATTRIBUTES = "info/attributes"
    LARGE = "info/lfs"


@dataclass(frozen=True, slots=True)
class Address:
    """A repository, what is asked of it, and for large files the names that follow."""

    branch: str
    asked: Asked
    rest: tuple[str, ...] = ()


def read_address(raw_path: bytes) -> Address:
    """Return what the path of a request is about. Raises `Kind.NOT_FOUND`, `Kind.INVALID`."""
    text = decode_text(raw_path)
    match = _ADDRESS.fullmatch(text.removeprefix(PREFIX)) if text.startswith(PREFIX) else None
    if match is None:
        raise Fault(Kind.NOT_FOUND, "no such repository", hint="clone /git/main.git, or /git/RUN.git for a run")
    what = match["what"]
    if what == "HEAD" or what.startswith("objects/"):
        raise Fault(Kind.NOT_FOUND, "this store speaks git's smart protocol only", hint="use git 1.6.6 or later")
    branch = match["branch"].removesuffix(".git")
    return Address(branch, Asked.LARGE, tuple(match["large"].split("/"))) if match["large"] else Address(branch, Asked(what))


class Service(enum.Enum):
    """What can be asked over SSH."""

    FETCH = "git-upload-pack"
    PUSH = "git-receive-pack"
    LARGE = "git-lfs-authenticate"


def read_shell_command(text: str) -> tuple[Service, str]:
    """Return what a client asks over SSH and of which branch. Raises `Kind.INVALID` for anything but git's own commands."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if words[:1] == ["git"]:
        words = [f"git-{words[1]}", *words[2:]] if len(words) > 1 else []
    services = {service.value: service for service in Service}
    if len(words) < 2 or words[0] not in services:
        raise Fault(Kind.INVALID, "this account serves git and nothing else", hint="git clone ssh://USER@HOST/git/main.git")
    return services[words[0]], read_repository(words[1])


def read_repository(path: str) -> str:
    """Return the branch of a path that a client gives over SSH, such as ``/git/main.git`` or ``main``."""
    return f"/{path.strip('/')}".removeprefix(PREFIX).strip("/").removesuffix(".git")

"""A room behind the door for tests: a folder of the file system as workspace, and a control with a few operations.

It decides nothing: one secret, one branch, no policy. What it does is real: files on disk, threads, waiting.
"""

from __future__ import annotations

import os
import queue
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Access, AttributeChange, Content, Document, Touch

SECRET = "anl1-secret-of-a-lease"
BRANCH = "builder/run-1"


@dataclass(frozen=True, slots=True)
class Stat:
    node: int
    st_mode: int
    size: int
    links: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    uid: int | None = None
    gid: int | None = None
    content: bytes = b""


class OpenFile:
    def __init__(self, node: int, descriptor: int, *, append: bool) -> None:
        self.node = node
        self.descriptor = descriptor
        self.append = append

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self.descriptor, size, offset)

    def write(self, offset: int, data: bytes) -> int:
        return os.write(self.descriptor, data) if self.append else os.pwrite(self.descriptor, data, offset)

    def sync(self) -> None:
        os.fdatasync(self.descriptor)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


@dataclass
class Folder:
    """A workspace over a folder; nodes are numbers given to paths as they are met."""

    root: bytes
    branch: str = BRANCH
    paths: dict[int, bytes] = field(default_factory=dict)
    opened: list[OpenFile] = field(default_factory=list)
    closed: int = 0

    def _path(self, node: int, name: bytes = b"") -> bytes:
        path = self.root if node == ROOT else self.paths[node]
        return path + b"/" + name if name else path

    def _stat(self, path: bytes) -> Stat:
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Fault(Kind.NOT_FOUND, "there is nothing of this name") from error
        node = ROOT if path == self.root else found.st_ino + 1
        self.paths[node] = path
        return Stat(node, found.st_mode, found.st_size, found.st_nlink, found.st_mtime_ns, found.st_ctime_ns, found.st_atime_ns)

    def lookup(self, parent: int, name: bytes) -> Stat:
        return self._stat(self._path(parent, name))

    def attributes(self, node: int) -> Stat:
        return self._stat(self._path(node))

    def list(self, node: int) -> Sequence[tuple[bytes, Stat]]:
        path = self._path(node)
        if not Path(os.fsdecode(path)).is_dir():
            raise Fault(Kind.NOT_A_DIRECTORY, "not a directory")
        return [(name, self._stat(path + b"/" + name)) for name in sorted(os.listdir(path))]

    def readlink(self, node: int) -> bytes:
        return os.readlink(self._path(node))

    def open(self, node: int, access: Access) -> OpenFile:
        flags = os.O_RDONLY if not access.write else os.O_WRONLY | (os.O_APPEND if access.append else 0)
        handle = OpenFile(node, os.open(self._path(node), flags), append=access.append)
        self.opened.append(handle)
        return handle

    def create(self, parent: int, name: bytes, mode: int) -> tuple[Stat, OpenFile]:
        path = self._path(parent, name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        attributes = self._stat(path)
        return attributes, OpenFile(attributes.node, descriptor, append=False)

    def publish(self, parent: int, name: bytes, mode: int, content: Content) -> Stat:
        path = self._path(parent, name)
        if os.path.isdir(path) and not os.path.islink(path):
            raise Fault(Kind.IS_A_DIRECTORY, "a directory is there")
        staged = self.root + b"/../staged-" + str(threading.get_ident()).encode()
        with open(staged, "wb") as file:
            while piece := content.read(1 << 16):
                file.write(piece)
            os.fchmod(file.fileno(), stat.S_IMODE(os.lstat(path).st_mode) if os.path.lexists(path) else mode)
        Path(os.fsdecode(staged)).rename(os.fsdecode(path))
        return self._stat(path)

    def mkdir(self, parent: int, name: bytes, mode: int) -> Stat:
        path = self._path(parent, name)
        try:
            Path(os.fsdecode(path)).mkdir(mode)
        except FileExistsError as error:
            raise Fault(Kind.EXISTS, "it exists") from error
        return self._stat(path)

    def symlink(self, parent: int, name: bytes, target: bytes) -> Stat:
        os.symlink(target, self._path(parent, name))
        return self._stat(self._path(parent, name))

    def unlink(self, parent: int, name: bytes) -> None:
        os.unlink(self._path(parent, name))

    def rmdir(self, parent: int, name: bytes) -> None:
        try:
            Path(os.fsdecode(self._path(parent, name))).rmdir()
        except OSError as error:
            raise Fault(Kind.NOT_EMPTY, "the directory is not empty") from error

    def rename(self, parent: int, name: bytes, target: int, target_name: bytes, *, replace: bool = True, exchange: bool = False) -> None:
        destination = self._path(target, target_name)
        if os.path.lexists(destination) and not replace:
            raise Fault(Kind.EXISTS, "it exists")
        Path(os.fsdecode(self._path(parent, name))).rename(os.fsdecode(destination))

    def set_attributes(self, node: int, change: AttributeChange) -> Stat:
        if change.mode is not None:
            os.chmod(self._path(node), change.mode)
        return self.attributes(node)

    def touched(self, since: int) -> Sequence[Touch] | None:
        return None

    def sync(self) -> None:
        os.sync()

    def close(self) -> None:
        self.closed += 1


@dataclass(frozen=True, slots=True)
class Someone:
    principal: str = "builder"
    lease: str = "lease-1"


def operation(method: str, path: str, properties: Mapping[str, Any] | None = None, **more: Any) -> Document:
    document: Document = {
        "method": method,
        "path": path,
        "summary": f"{method} {path}",
        "response": {"type": "object"},
        "status": 200,
        "effect": method != "GET",
    }
    document["parameters"] = {"type": "object", "properties": dict(properties or {}), "required": more.pop("required", [])}
    return document | more


OPERATIONS: dict[str, Document] = {
    "echo.show": operation(
        "GET",
        "/v1/echoes/{name}",
        {
            "name": {"type": "string"},
            "limit": {"type": "integer"},
            "deep": {"type": "boolean"},
            "tag": {"type": "array", "items": {"type": "string"}},
        },
    ),
    "echo.list": operation("GET", "/v1/echoes/all"),
    "echo.make": operation(
        "POST", "/v1/echoes", {"name": {"type": "string"}, "if_match": {"type": "string"}}, status=201, required=["name"]
    ),
    "echo.refuse": operation("POST", "/v1/echoes/{name}/refuse", {"name": {"type": "string"}}),
    "echo.break": operation("POST", "/v1/echoes/{name}/break", {"name": {"type": "string"}}),
    "history.log": operation("GET", "/v1/branches/{branch}/commits", {"branch": {"type": "string"}}),
}


@dataclass
class Room:
    """The control."""

    folder: Path
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    happenings: queue.Queue[Document] = field(default_factory=queue.Queue)
    draining: threading.Event = field(default_factory=threading.Event)
    workspaces: list[Folder] = field(default_factory=list)
    ready_now: bool = True

    def authenticate(self, secret: str) -> Someone:
        if secret == "expired":
            raise Fault(Kind.EXPIRED, "the lease has expired", hint="start another run")
        if secret != SECRET:
            raise Fault(Kind.UNAUTHENTICATED, "nobody has this secret")
        return Someone()

    def workspace(self, caller: Someone, branch: str) -> Folder:
        if branch != BRANCH:
            raise Fault(Kind.NOT_FOUND, f"there is no branch {branch!r}")
        self.workspaces.append(Folder(os.fsencode(self.folder)))
        return self.workspaces[-1]

    def call(self, caller: Someone, operation: str, arguments: Mapping[str, Any]) -> Document:
        self.calls.append((operation, dict(arguments)))
        if operation == "echo.refuse":
            raise Fault(
                Kind.GATED, "the policy asks a person", hint="wait for the gate", policy="big-ones (policy.yaml:7:3)", gate="gate-1"
            )
        if operation == "echo.break":
            raise ZeroDivisionError("a defect with a secret detail")
        return {"operation": operation, "arguments": dict(arguments)}

    def operations(self) -> Mapping[str, Document]:
        return OPERATIONS

    def events(self, caller: Someone, after: int) -> Iterator[Document]:
        yield {"sequence": after + 1, "kind": "run.started", "run": "run-1"}
        while not self.draining.is_set():
            try:
                yield self.happenings.get(timeout=0.05)
            except queue.Empty:
                yield {}

    def ready(self) -> Document:
        return {"ready": self.ready_now}

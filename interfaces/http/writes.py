"""Changing files and directories of a branch: ``PUT``, ``DELETE`` and ``POST ?op=`` below ``/v1/branches/{branch}/files``.

1. A file is replaced whole: nobody, also after a crash, sees a mixture. An answered change is on stable storage.
2. Conditions on what a put, a copy or the removal of a file replaces are judged in the moment of the change, for every door and mount
   alike. Those on a directory, an append or the source of a move or a copy are as good as the moment before it.
3. A condition that fails now is refused before the body is read.
4. Nothing is created above a path unless ``?parents=1`` asks for it, and nothing is written through a symlink.
5. Nothing is replaced by a move or a copy unless the request says so.
6. Everything here blocks, and runs in the pool.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.http.reads import describe, resolve
from interfaces.port import ROOT, Access, AttributeChange, Attributes, Content, Document, Handle, Workspace
from interfaces.web.bodies import Upload
from interfaces.web.conditions import require, validators_of
from interfaces.web.contents import HandleContent
from interfaces.web.names import Names, display_name, split_path

_PIECE = 1 << 20
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755
_CONDITIONS = frozenset({"if-match", "if-none-match", "if-unmodified-since"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a request changes and under which conditions. `content` is a body that arrives, `document` a parsed one."""

    names: Names
    method: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    content: Upload | None = None
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return the path for people."""
        return display_name(b"/".join(self.names))

    @property
    def is_conditional(self) -> bool:
        """Tell whether the request has conditions."""
        return not self.headers.keys().isdisjoint(_CONDITIONS)


Changed = tuple[int, Document | None]
"""A status and what there is now (None: nothing)."""


class Guard:
    """The conditions of a request, judged in the moment of the change; `existed` tells what it found then."""

    def __init__(self, target: Target) -> None:
        """Guard the place of a request."""
        self._target = target
        self.existed = False

    def __call__(self, current: Attributes | None) -> None:
        """Judge. Raises `Kind.PRECONDITION`, and `Kind.EXISTS` for a symlink."""
        self.existed = current is not None
        _require(self._target, current)
        _refuse_symlink(self._target, current)


class Vacancy:
    """Whether a copy may take a name, judged in the moment of the change; `existed` tells what it found then."""

    def __init__(self, names: Names, *, replaces: bool) -> None:
        """Guard the place `names`; `replaces` allows a file there."""
        self._names = names
        self._replaces = replaces
        self.existed = False

    def __call__(self, current: Attributes | None) -> None:
        """Judge. Raises `Kind.EXISTS`."""
        self.existed = current is not None
        if self.existed and not self._replaces:
            raise Fault(Kind.EXISTS, f"{display_name(b'/'.join(self._names))} exists", hint='say "replace": true to replace it')


def change(workspace: Workspace, target: Target) -> Changed:
    """Carry out a request. Raises `Fault`."""
    if target.method == "PUT":
        return _put(workspace, target)
    if target.method == "DELETE":
        return _delete(workspace, target)
    operation = target.query.get("op", "")
    if operation not in OPERATIONS:
        raise Fault(Kind.INVALID, f"op={operation!r} is not an operation on files", hint=f"use one of {', '.join(sorted(OPERATIONS))}")
    return OPERATIONS[operation](workspace, target)


def _put(workspace: Workspace, target: Target) -> Changed:
    parent, name = _place(workspace, target)
    guard = Guard(target)
    if target.is_conditional:
        guard(_existing(workspace, parent, name))
    mode = _read_mode(target.query)
    attributes = workspace.publish(parent, name, _FILE_MODE if mode is None else mode, _content(target), condition=guard)
    if mode is not None and stat.S_IMODE(attributes.st_mode) != mode:
        attributes = workspace.set_attributes(attributes.node, AttributeChange(mode=mode))
    return 200 if guard.existed else 201, describe(workspace, target.names, attributes)


def _append(workspace: Workspace, target: Target) -> Changed:
    parent, name = _place(workspace, target)
    current = _existing(workspace, parent, name)
    _require(target, current)
    _refuse_symlink(target, current)
    upload = _content(target)
    if upload.complete:
        _append_from(workspace, parent, name, current, upload)
    else:
        # A body that breaks off must not leave its beginning in the file: it is complete before the file hears of it.
        staged = workspace.stage(upload)
        with closing(workspace.staged(staged.id)) as handle:
            _append_from(workspace, parent, name, current, HandleContent(handle))
        workspace.unstage(staged.id)
    return 200 if current else 201, describe(workspace, target.names, workspace.lookup(parent, name))


def _append_from(workspace: Workspace, parent: int, name: bytes, current: Attributes | None, content: Content) -> None:
    with closing(_open_end(workspace, parent, name, current)) as handle:
        while piece := content.read(_PIECE):
            handle.write(0, piece)
        handle.sync()


def _open_end(workspace: Workspace, parent: int, name: bytes, current: Attributes | None) -> Handle:
    if current is None:
        created, handle = workspace.create(parent, name, _FILE_MODE)
        handle.close()
        current = created
    return workspace.open(current.node, Access(read=False, write=True, append=True))


def _delete(workspace: Workspace, target: Target) -> Changed:
    parent, name = _place(workspace, target)
    current = workspace.lookup(parent, name)
    _require(target, current)
    if stat.S_ISDIR(current.st_mode):
        workspace.rmdir(parent, name)
    else:
        workspace.unlink(parent, name, condition=partial(_require, target))
    workspace.sync()
    return 204, None


def _mkdir(workspace: Workspace, target: Target) -> Changed:
    parent, name = _place(workspace, target)
    _require(target, _existing(workspace, parent, name))
    attributes = workspace.mkdir(parent, name, _read_mode(target.query) or _DIRECTORY_MODE)
    workspace.sync()
    return 201, describe(workspace, target.names, attributes)


def _symlink(workspace: Workspace, target: Target) -> Changed:
    parent, name = _place(workspace, target)
    _require(target, _existing(workspace, parent, name))
    destination = _text(target, "target").encode("utf-8", "surrogateescape")
    attributes = workspace.symlink(parent, name, destination)
    workspace.sync()
    return 201, describe(workspace, target.names, attributes)


def _move(workspace: Workspace, target: Target) -> Changed:
    parent, name = _place(workspace, target)
    current = workspace.lookup(parent, name)
    _require(target, current)
    names = _destination(target)
    into = resolve(workspace, names[:-1]).node
    workspace.rename(parent, name, into, names[-1], replace=_replaces(target))
    workspace.sync()
    return 200, describe(workspace, names, workspace.lookup(into, names[-1]))


def _copy(workspace: Workspace, target: Target) -> Changed:
    source = resolve(workspace, target.names)
    _require(target, source)
    if not stat.S_ISREG(source.st_mode):
        raise Fault(Kind.NOT_PERMITTED, f"{target.title} is not a regular file", hint="copy its files one by one")
    names = _destination(target)
    into = resolve(workspace, names[:-1]).node
    vacancy = Vacancy(names, replaces=_replaces(target))
    attributes = workspace.copy(source.node, into, names[-1], condition=vacancy)
    return 200 if vacancy.existed else 201, describe(workspace, names, attributes)


OPERATIONS: Mapping[str, Callable[[Workspace, Target], Changed]] = {
    "append": _append,
    "copy": _copy,
    "mkdir": _mkdir,
    "move": _move,
    "symlink": _symlink,
}
CONTENT_OPERATIONS = frozenset({"append"})


def _place(workspace: Workspace, target: Target) -> tuple[int, bytes]:
    """Return the directory and the name that a request changes, making directories when it asks for them."""
    if not target.names:
        raise Fault(Kind.NOT_PERMITTED, "the root itself cannot be changed", hint="name something in it")
    *above, name = target.names
    node = ROOT
    for step in above:
        node = _step(workspace, node, step, create=target.query.get("parents") == "1")
    return node, name


def _step(workspace: Workspace, parent: int, name: bytes, *, create: bool) -> int:
    try:
        return workspace.lookup(parent, name).node
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND or not create:
            raise
    return workspace.mkdir(parent, name, _DIRECTORY_MODE).node


def _existing(workspace: Workspace, parent: int, name: bytes) -> Attributes | None:
    try:
        return workspace.lookup(parent, name)
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return None


def _require(target: Target, current: Attributes | None) -> None:
    require(target.method, target.headers, None if current is None else validators_of(current))


def _refuse_symlink(target: Target, current: Attributes | None) -> None:
    if current and stat.S_ISLNK(current.st_mode):
        raise Fault(
            Kind.EXISTS,
            f"{target.title} is a symlink, and nothing is written through one",
            hint="delete it first, or write to what it points to",
        )


def _content(target: Target) -> Upload:
    if target.content is None:
        raise Fault(Kind.INVALID, "the request carries no content", hint="send the bytes of the file as the body")
    return target.content


def _destination(target: Target) -> Names:
    names = split_path(_text(target, "to").encode("ascii", "replace"))
    if not names:
        raise Fault(Kind.NOT_PERMITTED, "the root cannot be replaced", hint="name a place in it")
    return names


def _text(target: Target, name: str) -> str:
    value = target.document.get(name)
    if not isinstance(value, str) or not value:
        raise Fault(Kind.INVALID, f"the body says nothing of {name}", hint=f'send {{"{name}": "..."}}')
    return value


def _replaces(target: Target) -> bool:
    value = target.document.get("replace", False)
    if not isinstance(value, bool):
        raise Fault(Kind.INVALID, f"replace is true or false, not {value!r}")
    return value


def _read_mode(query: Mapping[str, str]) -> int | None:
    text = query.get("mode")
    if text is None:
        return None
    if not text or len(text) > 4 or set(text) - set("01234567"):
        raise Fault(Kind.INVALID, f"mode is octal digits such as 755, not {text!r}")
    return int(text, 8) & 0o777

"""No door reaches a file, the store or trust but through the port it is given.

1. Nothing below ``interfaces/`` imports a context, the composition or what they keep their state with, at any depth and by no trick.
2. Nothing there opens, lists or runs anything of this machine, except the modules of `OUTSIDE`, each for its own reason.
3. Nothing there looks behind what it was given: no private name of another object, no port hidden behind `Any`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {str(path.relative_to(ROOT / "interfaces")): path for path in sorted((ROOT / "interfaces").rglob("*.py"))}

CONTEXTS = frozenset({"store", "trust", "nasd", "memory", "sync"})
STATE = frozenset({"apsw", "sqlite3", "pygit2", "dulwich"})
TRICKS = frozenset({"importlib", "imp", "runpy", "pkgutil", "ctypes", "gc", "inspect", "pickle", "marshal"})
TRICK_CALLS = frozenset({"__import__", "eval", "exec", "compile", "globals"})
MACHINE = frozenset({"subprocess", "shutil", "tempfile", "glob", "mmap", "fcntl", "fileinput", "multiprocessing", "dbm", "shelve"})
HARMLESS_OS = frozenset({"fsencode", "fsdecode", "fspath", "urandom", "makedev", "major", "minor", "strerror"})
FILE_METHODS = frozenset(
    {"read_bytes", "read_text", "write_bytes", "write_text", "iterdir", "rglob", "touch", "is_file", "is_dir", "symlink_to", "hardlink_to"}
)
RUNS = frozenset({"create_subprocess_exec", "create_subprocess_shell"})
PORTS = frozenset({"control", "workspace", "caller", "handle", "notes", "view", "signer", "repositories"})

OUTSIDE = {
    "fuse/channels/loop.py": "wakes its own loop by an event descriptor",
    "fuse/mountpoint.py": "asks the kernel for its mounts, and mounts and unmounts",
    "fuse/serve.py": "tells the kernel how far to read ahead",
    "git/children.py": "runs git, in the folder that the port names",
    "http/serve.py": "keeps the Unix socket of the API",
    "web/sending.py": "has the kernel send from descriptors that the port lent",
}
"""The modules that touch this machine, and what for."""

Offences = Iterator[str]


def named(node: ast.AST) -> str:
    """Return a dotted name as it is written, empty for what is not one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := named(node.value)):
        return f"{before}.{node.attr}"
    return ""


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every imported module with its line, relative imports as what they are not: absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def find_foreign_imports(tree: ast.AST) -> Offences:
    """Yield imports of contexts, of the composition, of what keeps state, and of what imports by name (rule 1)."""
    for line, module in imported(tree):
        first = module.partition(".")[0]
        if not first or first in CONTEXTS | STATE | TRICKS:
            yield f"{line}: imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func) in TRICK_CALLS:
            yield f"{node.lineno}: calls {named(node.func)}"
        if isinstance(node, ast.Attribute) and named(node) == "sys.modules":
            yield f"{node.lineno}: looks into sys.modules"


def find_reaching_out(tree: ast.AST) -> Offences:
    """Yield what opens, lists or runs something of this machine (rule 2)."""
    for line, module in imported(tree):
        if module.partition(".")[0] in MACHINE:
            yield f"{line}: imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if named(node.value) == "os" and not node.attr.startswith("O_") and node.attr not in HARMLESS_OS:
                yield f"{node.lineno}: os.{node.attr}"
            if node.attr in RUNS or node.attr in FILE_METHODS:
                yield f"{node.lineno}: .{node.attr}"
        if isinstance(node, ast.Call) and named(node.func) in {"open", "io.open", "Path", "pathlib.Path"}:
            yield f"{node.lineno}: {named(node.func)}()"
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield f"{node.lineno}: from os import {', '.join(alias.name for alias in node.names)}"


def find_looking_behind(tree: ast.AST) -> Offences:
    """Yield uses of another object's private names, and ports without their type (rule 3)."""
    own = {"self", "cls", *(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and named(node.value) not in own:
            yield f"{node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.Call) and named(node.func) in {"getattr", "setattr"} and is_port(named(node.args[0])):
            yield f"{node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.arg) and is_port(node.arg) and (node.annotation is None or named(node.annotation) in {"Any", "object"}):
            yield f"{node.lineno}: {node.arg} has no type"


def is_private(name: str) -> bool:
    """Tell whether a name is an object's own business."""
    return name.startswith("_") and not name.startswith("__")


def is_port(name: str) -> bool:
    """Tell whether a name is one that this code base gives to a port or to what comes out of one."""
    return name.rpartition(".")[2].lstrip("_") in PORTS


RULES: dict[str, Callable[[ast.AST], Offences]] = {
    "imports": find_foreign_imports,
    "reaching out": find_reaching_out,
    "looking behind": find_looking_behind,
}


@pytest.mark.parametrize("rule", RULES)
def test_no_door_goes_round_the_port(rule: str) -> None:
    allowed = OUTSIDE if rule == "reaching out" else {}
    found = {
        name: offences
        for name, path in MODULES.items()
        if name not in allowed and (offences := list(RULES[rule](ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == {}


def test_every_module_that_is_let_out_goes_out() -> None:
    idle = [name for name in OUTSIDE if not list(find_reaching_out(ast.parse(MODULES[name].read_text(encoding="utf-8"))))]
    assert idle == []


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("imports", "from store import open_store"),
        ("imports", "import nasd.workspace"),
        ("imports", "def f():\n    from trust.service import Trust"),
        ("imports", "import apsw"),
        ("imports", "from ... import store"),
        ("imports", "import importlib"),
        ("imports", "store = __import__('store')"),
        ("imports", "import sys\nsys.modules['store']"),
        ("reaching out", "open('store/index')"),
        ("reaching out", "import os\nos.open(b'store', 0)"),
        ("reaching out", "from os import listdir"),
        ("reaching out", "Path('/srv').iterdir()"),
        ("reaching out", "def f(folder):\n    return (folder / 'HEAD').read_bytes()"),
        ("reaching out", "import subprocess"),
        ("reaching out", "import asyncio\nasyncio.create_subprocess_exec('git')"),
        ("looking behind", "def f(workspace: Workspace):\n    return workspace._working"),
        ("looking behind", "def f(control: Control):\n    return getattr(control, 'trust')"),
        ("looking behind", "class Door:\n    def f(self):\n        return getattr(self._control, 'trust')"),
        ("looking behind", "def f(control: Any): ..."),
        ("looking behind", "def f(workspace): ..."),
    ],
)
def test_each_way_round_is_noticed(rule: str, source: str) -> None:
    assert list(RULES[rule](ast.parse(source)))

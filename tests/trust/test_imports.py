"""The trust package imports few things, and what decides imports nothing that could make it answer otherwise."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import trust

FOLDER = Path(trust.__file__).parent
ALLOWED = {
    "__future__",
    "apsw",
    "base64",
    "binascii",
    "collections",
    "contextlib",
    "cryptography",
    "dataclasses",
    "difflib",
    "enum",
    "fcntl",
    "functools",
    "hashlib",
    "hmac",
    "importlib",
    "itertools",
    "json",
    "jsonschema",
    "mmap",
    "os",
    "pathlib",
    "pkgutil",
    "threading",
    "time",
    "trust",
    "typing",
    "urllib",
    "weakref",
    "yaml",
}
EDGE = {"apsw", "fcntl", "importlib", "mmap", "os", "pathlib", "pkgutil", "threading", "time", "weakref"}
IMPURE = {
    "archive.py": {"os", "pathlib"},
    "evidence.py": {"pathlib"},
    "log_key.py": {"os", "pathlib"},
    "batching.py": {"threading"},
    "credentials.py": set(),
    "keys.py": {"os", "pathlib"},
    "service.py": {"os", "pathlib"},
    "policy/resources.py": {"importlib"},
    "engines/__init__.py": {"importlib", "pathlib", "pkgutil"},
    "conformance/bench.py": {"pathlib"},
    "conformance/transactions.py": {"threading"},
}
BUILT_INS = {"open", "eval", "exec", "compile", "__import__", "input", "print", "globals"}
MODULES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py"))


def imported(module: str) -> set[str]:
    """Return the top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((FOLDER / module).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_is_listed(module: str) -> None:
    assert imported(module) <= ALLOWED
    if not module.startswith("engines/sqlite/"):
        assert imported(module) & EDGE <= IMPURE.get(module, set())


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("policy/")])
def test_what_decides_calls_nothing_that_reaches_out(module: str) -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse((FOLDER / module).read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & BUILT_INS

"""Names in the code keep to the glossary and to the shape every reader expects."""

from __future__ import annotations

import ast
import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("nasd", "store", "trust", "interfaces")
BANNED = {
    "manager",
    "handler",
    "helper",
    "helpers",
    "util",
    "utils",
    "common",
    "misc",
    "new",
    "old",
    "v2",
    "ng",
    "backend",
    "driver",
    "provider",
}
WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def names(path: Path) -> Iterator[str]:
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def test_no_module_class_or_function_has_a_name_that_says_nothing() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        for name in names(path)
        if {w.lower() for w in WORDS.findall(name)} & BANNED
    ]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path.relative_to(ROOT)) for path in sources() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_no_module_is_longer_than_six_hundred_lines() -> None:
    long = [f"{path.relative_to(ROOT)}: {count}" for path in sources() if (count := len(path.read_text().splitlines())) > 600]
    assert long == []


def test_nothing_is_left_for_later() -> None:
    marks = re.compile(r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b")
    assert [str(path.relative_to(ROOT)) for path in sources() if marks.search(path.read_text(encoding="utf-8"))] == []


def test_each_top_level_package_has_one_owner() -> None:
    owners = importlib.metadata.packages_distributions()
    assert {name: set(owners.get(name, ["agent-nas"])) for name in PACKAGES} == {name: {"agent-nas"} for name in PACKAGES}


def test_only_the_settings_read_the_environment() -> None:
    readers = [
        str(path.relative_to(ROOT))
        for path in sources()
        if re.search(r"os\.environ\b|os\.getenv\b", path.read_text(encoding="utf-8")) and path.parts[-2:] != ("nasd", "config.py")
    ]
    # These pass it on whole: to the settings, or what a person's own program inherits.
    assert set(readers) <= {"nasd/cli/session.py", "nasd/cli/execution.py", "nasd/daemon.py", "store/conformance/capabilities.py"}

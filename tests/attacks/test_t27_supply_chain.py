"""T27: what we are made of. py-ucan pulled half a build system in; postmark-mcp turned on its users with a patch release."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.trust.test_imports import ALLOWED, MODULES, imported

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ \\;]+)", re.MULTILINE | re.IGNORECASE)
MOST = 80
"""Packages at run time, with everything that they need; a number that somebody has to raise on purpose."""


@pytest.mark.parametrize("lock", ["run.txt", "dev.txt"])
def test_every_package_is_pinned_by_version_and_hash(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements" / lock).read_text())
    pinned = [entry for entry in entries if not entry.startswith("#") and entry.strip()]
    assert len(pinned) > 10
    for entry in pinned:
        assert PIN.match(entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]
        assert "://" not in entry.split("#")[0] and "git+" not in entry, entry[:80]


def test_what_is_declared_is_locked_and_little() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = {name.lower().replace("_", "-") for name, _ in PIN.findall((ROOT / "requirements" / "run.txt").read_text())}
    declared = {re.split(r"[\[<>=!~; ]", each)[0].lower().replace("_", "-") for each in project["dependencies"]}
    assert declared <= locked
    assert len(locked) <= MOST


def test_what_decides_is_made_of_few_things() -> None:
    assert len(MODULES) > 20
    for module in MODULES:
        assert imported(module) <= ALLOWED, module
    assert {"requests", "httpx", "socket", "subprocess", "pickle", "marshal", "ctypes"}.isdisjoint(ALLOWED)


def test_the_bill_of_materials_names_every_package_with_its_hashes(tmp_path: Path) -> None:
    """CycloneDX, from the lock: what is installed is what is listed."""
    out = tmp_path / "sbom.json"
    subprocess.run([sys.executable, str(ROOT / "script" / "sbom"), str(out)], check=True, capture_output=True)
    bill = json.loads(out.read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.6"
    listed = {(component["name"], component["version"]) for component in bill["components"]}
    assert listed == {(name.lower(), version) for name, version in PIN.findall((ROOT / "requirements" / "run.txt").read_text())}
    for component in bill["components"]:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        assert component["hashes"] and all(each["alg"] == "SHA-256" and len(each["content"]) == 64 for each in component["hashes"])

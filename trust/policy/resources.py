"""The documents that ship with the package: the schema and the default policy.

1. The only module of `trust.policy` that reads files, and it reads no others.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any


@functools.cache
def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of policy documents."""
    schema: dict[str, Any] = json.loads(_read("schema.json"))
    return schema


def default_policy() -> str:
    """Return the text of the policy a fresh installation starts with."""
    return _read("default.yaml")


def _read(name: str) -> str:
    return importlib.resources.files("trust.policy").joinpath(name).read_text(encoding="utf-8")

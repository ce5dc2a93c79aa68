"""Whom to tell, from a file of the operator's.

1. The file is TOML with one ``[[target]]`` for each; an unknown key is an error that suggests the nearest known one.
2. What is secret in an address stands in a file of its own, which nobody but its owner can read; it is read by the process that sends, each
   time it sends, and by no other.
3. A webhook is signed: it needs a key of at least 24 bytes.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nasd.errors import Misconfigured

EVENTS = frozenset({"asked", "expired", "bypassed"})
_KNOWN = ("name", "url_file", "webhook", "webhook_file", "key_file", "roles", "events")


@dataclass(frozen=True, slots=True)
class Target:
    """Somebody to tell. One of `url_file` (an Apprise URL), `webhook` and `webhook_file` is set; empty `roles` stand for every gate."""

    name: str
    url_file: str = ""
    webhook: str = ""
    webhook_file: str = ""
    key_file: str = ""
    roles: frozenset[str] = frozenset()
    events: frozenset[str] = EVENTS

    def wants(self, event: str, role: str) -> bool:
        """Tell whether this target hears of an event of a gate that a role may answer."""
        return event in self.events and (not self.roles or not role or role in self.roles)

    @property
    def secret_files(self) -> tuple[str, ...]:
        """Return the files that hold what is secret of it."""
        return tuple(path for path in (self.url_file, self.webhook_file, self.key_file) if path)

    @property
    def spec(self) -> dict[str, str]:
        """Return what the sending process needs to know: where the address is."""
        return {"url_file": self.url_file, "webhook": self.webhook, "webhook_file": self.webhook_file, "key_file": self.key_file}


def read_targets(path: str) -> tuple[Target, ...]:
    """Return the targets of a file, none for no file. Raises `Misconfigured`."""
    if not path:
        return ()
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Misconfigured(f"notify: cannot read {path}: {error}", hint="name a TOML file with [[target]] tables") from error
    entries = document.get("target", [])
    if set(document) - {"target"} or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Misconfigured(f"{path}: expected [[target]] tables and nothing else", hint="docs/guides/gates.md shows one")
    targets = tuple(_target(entry, Path(path)) for entry in entries)
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        raise Misconfigured(f"{path}: two targets have the same name", hint="give each its own")
    return targets


def _target(entry: Mapping[str, Any], path: Path) -> Target:
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise Misconfigured(f"{path}: a target needs a name", hint='name = "owner-mail"')
    for key in entry:
        if key not in _KNOWN:
            near = difflib.get_close_matches(key, _KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_KNOWN)}"
            raise Misconfigured(f"{path}: {name}: unknown key {key!r}", hint=hint)
    texts = {key: _text(entry, key, name, path) for key in ("url_file", "webhook", "webhook_file", "key_file")}
    for key in ("url_file", "webhook_file", "key_file"):
        texts[key] = texts[key] and str(path.parent / texts[key])
    ways = [key for key in ("url_file", "webhook", "webhook_file") if texts[key]]
    if len(ways) != 1:
        raise Misconfigured(f"{path}: {name}: name one of url_file, webhook and webhook_file", hint="docs/guides/gates.md shows each")
    if (ways[0] != "url_file") != bool(texts["key_file"]):
        raise Misconfigured(
            f"{path}: {name}: a webhook needs a key_file, and nothing else has one", hint="head -c 32 /dev/urandom | base64"
        )
    if texts["webhook"]:
        _check_address(texts["webhook"], name, path)
    return Target(
        name,
        **texts,
        roles=frozenset(_texts(entry, "roles", name, path)),
        events=frozenset(_texts(entry, "events", name, path, known=EVENTS)) or EVENTS,
    )


def _text(entry: Mapping[str, Any], key: str, name: str, path: Path) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise Misconfigured(f"{path}: {name}: {key}: expected text, found {value!r}", hint="put the value in quotes")
    return value


def _texts(entry: Mapping[str, Any], key: str, name: str, path: Path, known: frozenset[str] | None = None) -> list[str]:
    values = entry.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise Misconfigured(f"{path}: {name}: {key}: expected a list of texts, found {values!r}", hint=f'{key} = ["..."]')
    for value in values:
        if known is not None and value not in known:
            raise Misconfigured(f"{path}: {name}: {key}: {value!r} is not known", hint=f"known: {', '.join(sorted(known))}")
    return values


def _check_address(address: str, name: str, path: Path) -> None:
    parts = urlsplit(address)
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise Misconfigured(f"{path}: {name}: webhook: expected an http or https address", hint="for example https://hooks.example.net/nas")
    if parts.username or parts.password or parts.query:
        raise Misconfigured(
            f"{path}: {name}: webhook: what is secret in an address stands in a file of its own", hint="write webhook_file = instead"
        )

"""Options that several verbs share, and how their text is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def read_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return ``name=value`` texts as a mapping. Raises `click.UsageError`."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name or not separator or name in pairs:
            raise click.UsageError(f"{option} takes name=value, each name once, not {text!r}")
        pairs[name] = value
    return pairs


def read_budgets(texts: Sequence[str]) -> dict[str, int]:
    """Return ``name=amount`` texts as numbers; amounts may have a unit, such as 10MiB. Raises `click.UsageError`."""
    from nasd.durations import parse_size

    budgets: dict[str, int] = {}
    for name, text in read_pairs(texts, "--budget").items():
        try:
            budgets[name.replace("-", "_")] = parse_size(text)
        except ValueError as error:
            raise click.UsageError(f"--budget {name}: {error}; write a whole number, or a size such as 10MiB") from error
    return budgets


def read_seconds(text: str | None, option: str) -> float | None:
    """Return a duration such as 90s, 30min or 7d in seconds, None for None. Raises `click.UsageError`."""
    from nasd.durations import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}; write a duration such as 90s, 30min or 7d") from error


def read_list(texts: Sequence[str]) -> list[str] | None:
    """Return the parts of comma-separated texts, None when there are none."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    return [part for part in parts if part] or None


def read_path(text: str) -> str:
    r"""Return a path as the API writes it: as `nas` prints it, with each byte that is no UTF-8 as ``\xNN``."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def label_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a label: ``origin`` and ``sensitivity``, None where nobody says."""
    origin = click.option("--origin", type=click.Choice(["owner", "internal", "external"]), help="Whose words it is.")
    sensitivity = click.option("--sensitivity", type=click.Choice(["public", "internal", "sensitive"]), help="How far it may go.")
    return origin(sensitivity(function))


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a lease allows; read them with `read_scope`."""
    options: tuple[Decorator, ...] = (
        click.option("--paths", multiple=True, metavar="PATTERN", help="Paths, such as src/**; repeatable, or with commas."),
        click.option(
            "--actions", multiple=True, metavar="ACTION", help="list, read, write, delete, propose, egress; repeatable, or with commas."
        ),
        click.option("--ttl", metavar="DURATION", help="How long the lease counts, such as 90s, 8h or 7d."),
        click.option("--purpose", help="What the work is for; people read it at a gate."),
        click.option(
            "--budget", "budgets", multiple=True, metavar="NAME=AMOUNT", help="reads, bytes_read, bytes_written, commits; repeatable."
        ),
        click.option("--destination", "destinations", multiple=True, metavar="ACCOUNT", help="An account it may act through; repeatable."),
        click.option("--doors", multiple=True, metavar="DOOR", help="Where it counts: http, webdav, git, s3, mcp, mount, ssh."),
        click.option("--ceiling", metavar="LABEL", help="The highest label it may read, such as internal/public or /public."),
        click.option("--actor", "actors", multiple=True, metavar="NAME", help="Whom it is handed on to; repeatable, in order."),
        click.option("--holder", metavar="KEY", help="The key it is bound to: ssh:SHA256:... or x5t:..."),
        click.option("--depth", type=click.IntRange(0, 32), help="How many generations of narrower leases may hang below it."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def read_scope(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `scope_options` were given as arguments of an operation. Raises `click.UsageError`."""
    return {
        "paths": read_list(given["paths"]),
        "actions": read_list(given["actions"]),
        "ttl": given["ttl"],
        "purpose": given["purpose"],
        "budgets": read_budgets(given["budgets"]) or None,
        "destinations": read_list(given["destinations"]),
        "doors": read_list(given["doors"]),
        "ceiling": given["ceiling"],
        "actors": list(given["actors"]) or None,
        "holder": given["holder"],
        "depth": given["depth"],
    }

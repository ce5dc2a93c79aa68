"""The tree of commands, found by being there.

1. ``verbs/init.py`` is ``nas init``; ``verbs/run/start.py`` is ``nas run start``; a noun's help is the docstring of its folder.
   Adding a verb is one more file and no edit elsewhere. A folder that has a ``command`` of its own is a verb too: ``nas mcp``.
2. Only the verb that runs is imported: what it costs to start `nas` does not grow with the number of verbs.
3. An underscore in a file name is a hyphen on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click


class Noun(click.Group):
    """A group whose verbs are the modules of a package; `own` is what it does when none of them is named."""

    def __init__(
        self, package: str, folder: Path, name: str | None = None, help: str | None = None, own: click.Command | None = None
    ) -> None:
        """Find verbs in `folder`, importable as `package`."""
        super().__init__(name, help=help, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=own is not None)
        self._package = package
        self._folder = folder
        self.own = own
        if own is not None:
            self.params, self.callback, self.epilog, self.help = own.params, _alone(own), own.epilog, own.help

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs and nouns here, in order."""
        return sorted(_command_name(entry) for entry in os.scandir(self._folder) if _is_command(entry))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` begin with. Raises `click.exceptions.NoSuchCommand`, naming those that look alike."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb or a noun by its name, None when there is none."""
        module_name = cmd_name.replace("-", "_")
        if not module_name.isidentifier() or module_name.startswith("_"):
            return None
        path = self._folder / module_name
        if (path / "__init__.py").exists():
            return _load_noun(f"{self._package}.{module_name}", path, cmd_name)
        return _load_verb(f"{self._package}.{module_name}", cmd_name) if path.with_suffix(".py").exists() else None


def make_root() -> Noun:
    """Return the command ``nas``."""
    package = import_module("nasd.cli.verbs")
    return Noun(package.__name__, Path(str(package.__file__)).parent, "nas", package.__doc__)


def _load_noun(module: str, folder: Path, name: str) -> Noun:
    loaded = import_module(module)
    return Noun(module, folder, name, loaded.__doc__, getattr(loaded, "command", None))


def _alone(own: click.Command) -> Callable[..., Any]:
    """Return what runs a noun's own command unless one of its verbs is about to run."""

    def run(**arguments: Any) -> Any:
        context = click.get_current_context()
        return context.invoke(own, **arguments) if context.invoked_subcommand is None else None

    return run


def _load_verb(module: str, name: str) -> click.Command:
    command = import_module(module).command
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}.command is not a command")
    command.name = name
    return command


def _is_command(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith("_"):
        return False
    return entry.name.endswith(".py") if entry.is_file() else (Path(entry.path) / "__init__.py").exists()


def _command_name(entry: os.DirEntry[str]) -> str:
    return entry.name.removesuffix(".py").replace("_", "-")

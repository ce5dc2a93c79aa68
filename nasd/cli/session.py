"""What every verb has in common: its credential, its client, its way of answering.

1. A verb says what to ask and how a person reads the answer; ``--json`` prints the document itself, unchanged.
2. The environment is read by `nasd.config` alone; a secret never comes from the command line.
3. What a verb does not need is not imported.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from interfaces.faults import Fault, Kind
from nasd.cli.failures import EXIT_CODES

if TYPE_CHECKING:
    from pathlib import Path

    from nasd.client import Client
    from nasd.config import Settings


class Session:
    """One invocation of a verb."""

    def __init__(self, *, as_json: bool = False, home: str | None = None, lease_file: str | None = None) -> None:
        """Answer as JSON or for people; `home` and `lease_file` are what the command line said."""
        self.as_json = as_json
        self._home = home
        self._lease_file = lease_file

    @functools.cached_property
    def settings(self) -> Settings:
        """Return the settings in force. Raises `nasd.errors.Misconfigured`."""
        return self.settings_with()

    def settings_with(self, **flags: Any) -> Settings:
        """Return the settings with further flags of the command line (None: not given)."""
        from nasd.config import read_settings

        return read_settings(os.environ, {"home": self._home, **flags})

    @functools.cached_property
    def client(self) -> Client:
        """Return the client with the credential in force: the lease file, the environment, or the owner's token."""
        return self.client_with(self.secret)

    @property
    def secret(self) -> str | None:
        """Return the credential in force, None when there is none."""
        from nasd.config import secret_of

        environment = {"NAS_LEASE_FILE": self._lease_file} if self._lease_file else os.environ
        return secret_of(environment, self.settings)

    @property
    def login_file(self) -> Path:
        """Return the file in which a login of this user is kept."""
        from nasd.config import login_file

        return login_file(os.environ)

    def offered_secret(self, source: str | None) -> str:
        """Return the secret that a verb works on without the server: one line of standard input (``-``), or the one in force (None).

        Raises `click.UsageError` when there is none.
        """
        if source not in (None, "-"):
            raise click.UsageError("without the server a lease is its secret: give - and the secret on standard input")
        secret = sys.stdin.readline().strip() if source else self.secret
        if not secret:
            raise click.UsageError("there is no secret: use --lease-file or NAS_LEASE, or give - and the secret on standard input")
        return secret

    @property
    def ssh_request(self) -> tuple[str, str]:
        """Return what an SSH client asked its server to run, and the git protocol it speaks."""
        from nasd.config import ssh_request

        return ssh_request(os.environ)

    @property
    def acts_with_lease(self) -> bool:
        """Tell whether the credential in force is a run's lease."""
        return (self.secret or "").startswith("anl1.")

    def client_with(self, secret: str | None) -> Client:
        """Return a client with another credential."""
        from nasd.client import Client

        return Client(self.settings.socket, self.settings.home, secret)

    def show(self, document: Mapping[str, Any] | list[Any], human: Callable[[], None]) -> None:
        """Answer with a document (in ASCII, which every locale can print), or for people with what `human` prints."""
        if self.as_json:
            print(json.dumps(document, indent=2 if sys.stdout.isatty() else None))
        else:
            human()

    def show_fields(self, document: Mapping[str, Any], *names: str) -> None:
        """Answer with a document; people see its members called `names`, one a line."""
        from nasd.cli.tables import print_fields

        self.show(document, lambda: print_fields(document, names))

    def show_table(self, items: Iterable[Mapping[str, Any]], *names: str, empty: str) -> None:
        """Answer with a list; people see a table of the members called `names`, or the sentence `empty`."""
        from nasd.cli.tables import print_table

        rows = list(items)
        self.show(list(rows), lambda: print_table(rows, names, empty))

    def say(self, text: str) -> None:
        """Tell a person something that is not data."""
        print(text, file=sys.stderr)


def require_secret(document: Mapping[str, Any], made: str, undo: str) -> Mapping[str, Any]:
    """Return a document that has a secret shown once.

    When the connection broke after the daemon had answered, the repeated request gets the answer without its secret. Then this
    raises `Kind.UNAVAILABLE`, naming what was `made` and how to `undo` it.
    """
    if "secret" not in document:
        raise Fault(
            Kind.UNAVAILABLE,
            f"{made} was made, but its secret was lost with the connection",
            hint=f"take it back with `{undo}`, then repeat",
        )
    return document


def verb(function: Callable[..., int | None]) -> click.Command:
    """Make a verb of a function that takes a `Session` and what its own click decorators declare, and returns an exit code or None.

    Its docstring is the help. Every verb has ``--json``, ``--home`` and ``--lease-file``.
    """

    @functools.wraps(function)
    def run(as_json: bool, home: str | None, lease_file: str | None, **arguments: Any) -> int | None:
        return function(Session(as_json=as_json, home=home, lease_file=lease_file), **arguments)

    command = click.command(epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})(run)
    command.params += [
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."),
        click.Option(["--home"], metavar="DIR", help="The data directory, instead of NAS_HOME."),
        click.Option(["--lease-file"], metavar="FILE", help="Act with the secret in FILE, instead of NAS_LEASE or the owner's token."),
    ]
    return command

"""Where ``nas`` begins and ends."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from interfaces.faults import Fault
from nasd.cli.failures import Exit, report_fault, report_os_error, report_start_error, report_usage
from nasd.cli.tree import make_root
from nasd.errors import StartError


def main() -> None:
    """Run the command line of this process and end it."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    as_json = "--json" in _own_part(arguments)
    _accept_any_text()
    try:
        code = make_root().main(list(arguments), prog_name="nas", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return report_usage(error, as_json=as_json)
    except click.Abort:
        print("nas: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except Fault as fault:
        return report_fault(fault, as_json=as_json)
    except StartError as error:
        return report_start_error(error, as_json=as_json)
    except BrokenPipeError:
        # Whoever reads us has enough; what Python would flush at its end has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except OSError as error:
        return report_os_error(error, as_json=as_json)
    return code if isinstance(code, int) else Exit.OK


def _accept_any_text() -> None:
    """Let a terminal that cannot show a character show its escape instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _own_part(arguments: Sequence[str]) -> Sequence[str]:
    """Return what is for ``nas``: everything before ``--``."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


if __name__ == "__main__":
    main()

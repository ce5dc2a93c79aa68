"""How failures end a command: the exit code and the words.

1. One total table from kinds to exit codes; a script never needs to read a message.
2. With ``--json`` an error is a document on standard output, as every other answer; without it, a few lines on standard error.
3. No traceback: what a person can act on is the message, the hint, the policy line and the gate.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from enum import IntEnum

import click

from interfaces.faults import Fault, Kind
from nasd.errors import AlreadyInitialised, AlreadyRunning, Misconfigured, StartError


class Exit(IntEnum):
    """The exit codes, the same for every verb."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    GATED = 4
    CONFLICT = 5
    NOT_FOUND = 6
    EXPIRED = 7
    LAPSED = 8
    WITHDRAWN = 9
    SUPERSEDED = 10
    INTERRUPTED = 130


EXITS: Mapping[Kind, Exit] = {
    Kind.INVALID: Exit.USAGE,
    Kind.UNAUTHENTICATED: Exit.DENIED,
    Kind.DENIED: Exit.DENIED,
    Kind.READ_ONLY: Exit.DENIED,
    Kind.GATED: Exit.GATED,
    Kind.NOT_FOUND: Exit.NOT_FOUND,
    Kind.EXISTS: Exit.CONFLICT,
    Kind.NOT_A_DIRECTORY: Exit.FAILED,
    Kind.IS_A_DIRECTORY: Exit.FAILED,
    Kind.NOT_EMPTY: Exit.CONFLICT,
    Kind.INTO_ITSELF: Exit.FAILED,
    Kind.NAME_TOO_LONG: Exit.USAGE,
    Kind.BUDGET: Exit.DENIED,
    Kind.NO_SPACE: Exit.FAILED,
    Kind.TOO_LARGE: Exit.FAILED,
    Kind.CONFLICT: Exit.CONFLICT,
    Kind.PRECONDITION: Exit.CONFLICT,
    Kind.KEY_REUSED: Exit.CONFLICT,
    Kind.EXPIRED: Exit.DENIED,
    Kind.REVOKED: Exit.DENIED,
    Kind.UNSUPPORTED: Exit.FAILED,
    Kind.NOT_PERMITTED: Exit.DENIED,
    Kind.NO_ATTRIBUTE: Exit.NOT_FOUND,
    Kind.STALE: Exit.CONFLICT,
    Kind.LOOP: Exit.FAILED,
    Kind.TOO_MANY_LINKS: Exit.FAILED,
    Kind.BUSY: Exit.CONFLICT,
    Kind.UNAVAILABLE: Exit.FAILED,
    Kind.THROTTLED: Exit.FAILED,
    Kind.CORRUPT: Exit.FAILED,
    Kind.INTERNAL: Exit.FAILED,
}

DECISIONS: Mapping[str, Exit] = {"merged": Exit.OK, "gated": Exit.GATED, "refused": Exit.DENIED, "conflict": Exit.CONFLICT}
"""How a proposal's decision ends the command that asked for it."""

GATE_EXITS: Mapping[str, Exit] = {
    "pending": Exit.GATED,
    "approved": Exit.OK,
    "rejected": Exit.DENIED,
    "expired": Exit.EXPIRED,
    "lapsed": Exit.LAPSED,
    "withdrawn": Exit.WITHDRAWN,
    "superseded": Exit.SUPERSEDED,
}
"""How what became of a gate ends the command that waited for it."""

EXIT_CODES = "Exit codes: 0 ok, 1 failed, 2 usage, 3 denied, 4 gated, 5 conflict, 6 not found."

_START_EXITS: Mapping[type[StartError], Exit] = {
    AlreadyInitialised: Exit.CONFLICT,
    AlreadyRunning: Exit.CONFLICT,
    Misconfigured: Exit.USAGE,
}


def report_fault(fault: Fault, *, as_json: bool) -> Exit:
    """Tell a fault and return how the command ends."""
    words = {"hint": fault.hint, "policy": fault.policy, "gate": fault.gate}
    _report(fault.kind.value, fault.message, words, as_json=as_json)
    return EXITS[fault.kind]


def report_start_error(error: StartError, *, as_json: bool) -> Exit:
    """Tell why there was no request at all, and return how the command ends."""
    code = "".join("-" + letter.lower() if letter.isupper() else letter for letter in type(error).__name__).lstrip("-")
    _report(code, error.message, {"hint": error.hint}, as_json=as_json)
    return _START_EXITS.get(type(error), Exit.FAILED)


def report_usage(error: click.ClickException, *, as_json: bool) -> Exit:
    """Tell what is wrong with a command line and return how the command ends."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return Exit.USAGE
    context = getattr(error, "ctx", None)
    hint = f"see `{context.command_path} --help`" if context else ""
    _report("usage", error.format_message(), {"hint": hint}, as_json=as_json)
    return Exit.USAGE


def report_os_error(error: OSError, *, as_json: bool) -> Exit:
    """Tell what the operating system refused and return how the command ends."""
    where = f"{error.filename}: " if error.filename else ""
    _report("system", f"{where}{error.strerror or error}", {"hint": "check the path and its permissions"}, as_json=as_json)
    return Exit.FAILED


def _report(code: str, message: str, words: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        optional = {name: text for name, text in words.items() if text and name != "hint"}
        print(json.dumps({"code": code, "message": message, "hint": words.get("hint", "")} | optional))
        return
    from nasd.cli.tables import plain

    lines = [f"nas: {plain(message)}", *(f"{name}: {plain(text)}" for name, text in words.items() if text)]
    print("\n".join(lines), file=sys.stderr)

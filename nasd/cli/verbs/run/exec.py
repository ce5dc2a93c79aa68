"""``nas run exec``."""

from __future__ import annotations

from typing import Any

import click

from nasd.cli.options import read_scope, scope_options
from nasd.cli.session import Session, verb


@verb
@click.argument("role")
@click.argument("program", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]...")
@scope_options
@click.option("-m", "--message", help="What is proposed, and why.")
@click.option("--env", "variables", multiple=True, metavar="NAME", help="Pass this variable of yours on to the command; repeatable.")
@click.option("--no-propose", is_flag=True, help="Commit, but propose nothing.")
def command(
    session: Session,
    role: str,
    program: tuple[str, ...],
    message: str | None,
    variables: tuple[str, ...],
    no_propose: bool,
    **scope: Any,
) -> int:
    """Run a command on a branch of its own.

    Starts a run of ROLE, mounts it, runs the command in it, commits, proposes, unmounts and ends. The command sees a clean
    environment (NAS_RUN, NAS_BRANCH, NAS_LEASE and NAS_HOME added) and the mounted branch as its working directory. When it
    fails, its exit code is the answer, its work is committed and nothing is proposed; else the answer is the decision's (0
    merged, 4 gated, 3 refused, 5 conflict).
    """
    from nasd.cli.execution import Execution

    request = {"role": role, **read_scope(scope)}
    execution = Execution(session, request, program, variables, message=message or " ".join(program), proposes=not no_propose)
    return execution.carry_out()

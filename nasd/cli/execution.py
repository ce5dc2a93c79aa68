"""A command on a branch of its own, from start to end.

1. What is started is ended, whatever happens between: the mount goes, the run ends, the scratch folder is removed.
2. The run's own lease commits and proposes, so that the work is the run's in every record; the caller only starts, mounts and ends.
3. The command gets its lease in its environment, never in an argument; it gets no other credential, and a home that is empty.
4. Work is never thrown away: a command that failed has its work committed on the branch, unproposed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from interfaces.port import Document
from nasd.cli.failures import DECISIONS, Exit
from nasd.cli.patience import patience
from nasd.cli.session import Session, require_secret
from nasd.cli.tables import plain
from nasd.client import place

_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "COLUMNS", "LINES")
_CANNOT_RUN = 127
_STANDARD_ERROR = 2


class Execution:
    """One command and the run around it."""

    def __init__(
        self,
        session: Session,
        request: Mapping[str, Any],
        program: Sequence[str],
        variables: Sequence[str],
        *,
        message: str,
        proposes: bool,
    ) -> None:
        """Run `program` as `request` asks, passing `variables` of the caller's environment on."""
        self._session = session
        self._request = request
        self._program = program
        self._variables = variables
        self._message = message
        self._proposes = proposes

    def carry_out(self) -> int:
        """Do all of it, show what came of it, and return the exit code."""
        run = self._session.client.post("/v1/runs", self._request)
        self._session.say(f"{run['run']}: on {run['branch']}")
        document: Document = {name: run[name] for name in ("run", "branch", "lease")}
        try:
            require_secret(run, run["run"], f"nas run end {run['run']}")
            document |= self._work(run)
        finally:
            self._session.client.post(place("/v1/runs/{run}/end", run=run["run"]))
        self._session.show(document, lambda: _print_outcome(document))
        return _exit_code(document)

    def _work(self, run: Document) -> Document:
        own = self._session.client_with(run["secret"])
        with tempfile.TemporaryDirectory(prefix="nas-run-") as scratch, self._mounted(run, Path(scratch) / "tree") as tree:
            code = self._run_program(run, tree, Path(scratch) / "home")
            committed = own.post(place("/v1/branches/{branch}/commits", branch=run["branch"]), {"message": self._message})
        outcome: Document = {"exit": code, "commit": committed["commit"], "changed": committed["changed"], "proposal": None}
        if code == 0 and self._proposes and committed["changed"]:
            with patience("Checking and judging"):
                outcome["proposal"] = own.post("/v1/proposals", {"run": run["run"], "message": self._message})
        return outcome

    @contextmanager
    def _mounted(self, run: Document, directory: Path) -> Iterator[Path]:
        directory.mkdir(mode=0o700)
        self._session.client.post("/v1/mounts", {"target": run["run"], "mountpoint": str(directory)})
        try:
            yield directory
        finally:
            self._session.client.post("/v1/mounts/remove", {"mountpoint": str(directory)})

    def _run_program(self, run: Document, tree: Path, home: Path) -> int:
        home.mkdir(mode=0o700)
        # With --json our standard output is one document; what the command prints is talk then.
        output = _STANDARD_ERROR if self._session.as_json else None
        try:
            with (
                subprocess.Popen(self._program, cwd=tree, env=self._environment(run, home), stdout=output) as child,
                _passing_signals_to(child),
            ):
                return _wait(child)
        except OSError as error:
            self._session.say(f"{plain(self._program[0])}: {error.strerror}")
            return _CANNOT_RUN

    def _environment(self, run: Document, home: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in (*_KEPT, *self._variables) if name in os.environ}
        ours = {
            "NAS_RUN": run["run"],
            "NAS_BRANCH": run["branch"],
            "NAS_LEASE": run["secret"],
            "NAS_HOME": str(self._session.settings.home),
        }
        return kept | {"HOME": str(home)} | ours


@contextmanager
def _passing_signals_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Let the child end first when we are told to: then there is still somebody to unmount and to end the run."""
    before = {number: signal.signal(number, lambda received, _: child.send_signal(received)) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a child as a shell does. An interrupt comes from the terminal, which tells the child as well: wait on."""
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            continue
        else:
            return code if code >= 0 else 128 - code


def _exit_code(document: Document) -> int:
    if document["exit"]:
        return int(document["exit"])
    proposal = document["proposal"]
    return DECISIONS.get(proposal["decision"], Exit.FAILED) if proposal else Exit.OK


def _print_outcome(document: Document) -> None:
    from nasd.cli.verbs.propose import print_decision

    print(f"{document['run']}  exit {document['exit']}  {document['commit'][:12]}  {document['changed'] or 'nothing'} changed")
    if document["proposal"]:
        print_decision(document["proposal"])
    elif document["exit"] and document["changed"]:
        print(f"not proposed: the command failed; look with `nas diff {document['run']}`, propose with `nas propose {document['run']}`")

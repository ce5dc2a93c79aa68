"""The broker's process: it alone resolves references and holds secrets, each for as long as one use of it takes.

1. It answers the daemon that started it and nobody else: the kernel says which process asks (``SO_PEERCRED``). It ends when the daemon
   does.
2. It opens neither store nor trust. What it is to do comes with the question, and it judges that again before a secret is fetched.
3. It cannot be traced or read by processes of its user (``PR_SET_DUMPABLE``), leaves no core, and its log tells where something failed
   but no message of an error that it did not write itself.
"""

from __future__ import annotations

import base64
import ctypes
import json
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.broker.calls import call, check
from nasd.broker.environment import read_sealed
from nasd.broker.references import Resolver
from nasd.broker.remotes import GitBounds, fetch, find_base, push
from nasd.broker.vault import VaultServer
from nasd.broker.wire import Bounds
from nasd.link import LinkServer
from nasd.processes import birth_of, report_to
from trust.accounts import Account, parse_account
from trust.requests import Request
from trust.secret import Secret

_PR_SET_DUMPABLE = 4
log = logging.getLogger("nasd.broker")


class Broker:
    """Answers what the daemon asks. Any thread may call."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Resolve references with these variables."""
        self._resolver = Resolver(variables, VaultServer(variables))
        self._acts: Mapping[str, Callable[[Account, Document], Document]] = {
            "test": self._test,
            "call": self._call,
            "fetch": self._fetch,
            "push": self._push,
        }

    def answer(self, question: Document) -> Document:
        """Do what is asked with an account. Raises `Fault`."""
        return self._acts[question["operation"]](parse_account(question["account"]), question)

    def _secret(self, account: Account) -> Secret:
        return self._resolver.resolve(account.reference)

    def _test(self, account: Account, _: Document) -> Document:
        self._secret(account)
        return {"resolves": True}

    def _call(self, account: Account, question: Document) -> Document:
        request, body = read_request(question["request"]), base64.b64decode(question["body"])
        check(account, request, body)
        return call(account, request, body, self._secret(account), Bounds(question["seconds"], question["largest"]))

    def _fetch(self, account: Account, question: Document) -> Document:
        bounds = GitBounds(question["seconds"], question["largest"])
        folder = Path(question["folder"])
        commit = fetch(account, folder, question["path"], question["branch"], self._secret(account), bounds)
        return {"commit": commit, "base": find_base(folder, commit, question["head"], bounds)}

    def _push(self, account: Account, question: Document) -> Document:
        bounds = GitBounds(question["seconds"])
        folder, commit = Path(question["folder"]), question["commit"]
        return {"told": push(account, folder, question["path"], commit, question["branch"], self._secret(account), bounds)}


def read_request(document: Mapping[str, Any]) -> Request:
    """Return the request of a document (`dataclasses.asdict`)."""
    pairs = tuple((str(name), str(value)) for name, value in document["query"])
    return Request(document["method"], document["path"], pairs, document["headers"], document["body_sha256"], document["size"])


class Reticent(logging.Formatter):
    """Writes where an error happened and of which class it was, not what it says: that may repeat what was sent."""

    def formatException(self, ei: Any) -> str:
        """Return the places of a traceback and the class of the error."""
        places, trace = [], ei[2]
        while trace is not None:
            places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
            trace = trace.tb_next
        return f"{ei[0].__name__} at {' < '.join(reversed(places))}"


def main() -> int:
    """Serve what standard input says until it closes. Returns the exit status."""
    _harden()
    logging.Formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Reticent("%(asctime)sZ %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    spec = json.loads(sys.stdin.buffer.readline())
    report = int(spec["report"])
    variables = {} if spec["variables"] is None else read_sealed(int(spec["variables"]))
    daemon, born = os.getppid(), birth_of(os.getppid())
    broker = Broker(variables)
    try:
        server = LinkServer(Path(spec["socket"]), broker.answer, hears=lambda pid: pid == daemon and birth_of(pid) == born)
    except OSError as error:
        log.error("cannot listen: %s", error.strerror)
        return 1
    report_to(report, {"ready": True})
    while os.read(sys.stdin.fileno(), 4096):
        continue
    server.close()
    return 0


def _harden() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise Fault(Kind.INTERNAL, "the broker cannot be closed to other processes", hint="look at the kernel's settings")


if __name__ == "__main__":
    sys.exit(main())

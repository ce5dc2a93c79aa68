"""A brokered HTTP request, from what a caller asks to what it is given back.

1. What is asked is judged by the account's rules, then by the policy; a body from a file of the branch is read as the caller reads it.
2. The caller gets the answer, or has it written into a file of its branch; a large answer only so. Either way the run is tainted first.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Access, Document, Workspace, walk
from nasd.authority import policy_in_force
from nasd.outward import Outward, OutwardAct
from nasd.paths import parse_path, render_path
from nasd.runs import Run
from nasd.sight import Sight
from nasd.workspaces import open_workspace
from trust.accounts import Account
from trust.errors import AccountInvalid
from trust.labels import DEFAULT, Label
from trust.model import Identity
from trust.requests import Request, check_request, holds_secret

MOST_SENT = 16 << 20
MOST_SHOWN = 1 << 20
MOST_KEPT = 64 << 20
LONGEST_WAIT = 300


class Calling:
    """Makes requests for callers. Any thread may call."""

    def __init__(self, sight: Sight, outward: Outward) -> None:
        """Ask through `outward`; what callers see is `sight`'s to say."""
        self._sight = sight
        self._outward = outward

    def call(self, identity: Identity, arguments: Mapping[str, Any], run: Run | None) -> Document:
        """Send one request and return what came back. Raises `Fault`."""
        account = self._outward.account(identity, arguments["account"])
        body, sent = self._body(identity, arguments, run)
        request = _request(account, arguments, body)
        into = arguments.get("into")
        if into is not None:
            self._require_writable(identity, _needed(run), into)
        act = asdict(request) | {"query": [list(pair) for pair in request.query], "headers": dict(request.headers), "into": into or ""}
        what = f"{request.method} {account.destination}{request.path} as {account.name}"
        outward = OutwardAct(account, "http", act, what, sent, len(body))
        question = {
            "request": asdict(request),
            "body": base64.b64encode(body).decode(),
            "seconds": min(float(arguments.get("timeout", 60)), LONGEST_WAIT),
            "largest": MOST_SHOWN if into is None else MOST_KEPT,
        }
        with self._outward.acting(identity, outward) as outcome:
            answer = self._outward.ask(outward, "call", question)
            outcome |= {name: answer[name] for name in ("status", "size", "sha256", "removed")}
            self._outward.learn(identity, account, run.run if run else "")
        return self._give(identity, run, into, account, answer)

    def _body(self, identity: Identity, arguments: Mapping[str, Any], run: Run | None) -> tuple[bytes, Label]:
        """Return the body and its label; what a run knows is in its taint, whatever it gives as a body."""
        given = [name for name in ("body", "body_base64", "body_path") if name in arguments]
        if len(given) > 1:
            raise Fault(Kind.INVALID, f"{' and '.join(given)}: one body at a time", hint="name one of them")
        if "body_path" in arguments:
            return self._read(identity, _needed(run), arguments["body_path"])
        if "body_base64" in arguments:
            try:
                return base64.b64decode(arguments["body_base64"], validate=True), DEFAULT
            except binascii.Error:
                raise Fault(Kind.INVALID, "body_base64 is no Base64", hint="encode the body, or give text as body") from None
        return str(arguments.get("body", "")).encode("utf-8", "surrogateescape"), DEFAULT

    def _read(self, identity: Identity, run: Run, path: str) -> tuple[bytes, Label]:
        with closing(self._open(identity, run)) as workspace:
            found = walk(workspace, _path(path))
            if found.size > MOST_SENT:
                raise Fault(Kind.TOO_LARGE, f"{path} has more than {MOST_SENT} bytes", hint="send less at once")
            trust = self._sight.appliance.trust
            label = trust.ledger.label(policy_in_force(trust), _path(path), found.content)
            with closing(workspace.open(found.node, Access())) as handle:
                return handle.read(0, MOST_SENT), label

    def _require_writable(self, identity: Identity, run: Run, into: str) -> None:
        with closing(self._open(identity, run)) as workspace:
            directory, _, name = _path(into).rpartition(b"/")
            workspace.require_writable(walk(workspace, directory).node if directory else ROOT, name)

    def _give(self, identity: Identity, run: Run | None, into: str | None, account: Account, answer: Document) -> Document:
        body = base64.b64decode(answer.pop("body"))
        document = answer | {"account": account.name, "label": str(account.label), "into": into}
        if into is not None:
            with closing(self._open(identity, _needed(run))) as workspace:
                directory, _, name = _path(into).rpartition(b"/")
                workspace.publish(walk(workspace, directory).node if directory else ROOT, name, 0o644, io.BytesIO(body))
            return document
        try:
            return document | {"body": body.decode()}
        except UnicodeDecodeError:
            return document | {"body_base64": base64.b64encode(body).decode()}

    def _open(self, identity: Identity, run: Run) -> Workspace:
        runs, appliance = self._sight.runs, self._sight.appliance
        return open_workspace(appliance, identity, run.branch, lambda message: runs.commit(run, identity, message))


def _request(account: Account, arguments: Mapping[str, Any], body: bytes) -> Request:
    query = tuple((str(name), str(value)) for name, value in arguments.get("query", []))
    headers = {str(name): str(value) for name, value in arguments.get("headers", {}).items()}
    digest = hashlib.sha256(body).hexdigest()
    request = Request(arguments.get("method", "GET"), arguments["path"], query, headers, digest, len(body))
    if len(body) > MOST_SENT:
        raise Fault(Kind.TOO_LARGE, f"the body has more than {MOST_SENT} bytes", hint="send less at once")
    if holds_secret(body):
        raise Fault(Kind.DENIED, "the body carries a secret of this appliance, which goes nowhere", hint="take it out")
    try:
        check_request(account, request)
    except AccountInvalid as error:
        raise Fault(Kind.INVALID, str(error), hint=f"`nas account show {account.name}` shows what it lets") from None
    return request


def _path(text: str) -> bytes:
    try:
        path = parse_path(text)
    except ValueError as error:
        raise Fault(Kind.INVALID, str(error), hint="write names joined by '/'") from error
    if not path:
        raise Fault(Kind.INVALID, f"{render_path(path)} is no file", hint="name a file of the branch")
    return path


def _needed(run: Run | None) -> Run:
    if run is None:
        raise Fault(Kind.INVALID, "a file of which run?", hint="name the run, or give and take the content itself")
    return run

"""Acts through accounts: a request, a fetch from a git remote, a push to one."""

from __future__ import annotations

from interfaces.port import Document
from nasd.calling import LONGEST_WAIT, Calling
from nasd.desk import Desk
from nasd.operations.operation import COUNT, MAYBE_TEXT, NAME, TEXT, TEXTS, Arguments, Operation, gives, takes
from nasd.remotes import Remotes
from nasd.runs import Run
from trust.accounts import METHODS
from trust.model import Identity


def _http(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return Calling(desk, desk.outward).call(identity, arguments, _run(desk, identity, arguments))


def _fetch(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return Remotes(desk, desk.outward).fetch(identity, desk.run(identity, arguments["run"]), arguments)


def _push(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return Remotes(desk, desk.outward).push(identity, desk.run(identity, arguments["run"]), arguments)


def _run(desk: Desk, identity: Identity, arguments: Arguments) -> Run | None:
    """Return the run that a request is made for: the lease's own, or (a person) the one that is named."""
    if identity.lease is not None:
        return desk.own_run(identity, arguments.get("run", identity.lease.run), None)
    return desk.own_run(identity, arguments["run"], None) if "run" in arguments else None


_PAIRS = {"type": "array", "maxItems": 64, "items": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}}
_HEADERS = {"type": "object", "additionalProperties": TEXT, "maxProperties": 64}
_BODY = {"type": "string", "maxLength": 32 << 20}
_REMOTE = {"account": NAME, "run": NAME, "repository": TEXT}

OPERATIONS = (
    Operation(
        "egress.http",
        "POST",
        "/v1/accounts/{account}/call",
        "Have the broker send one HTTP request with an account; the answer comes back, or into a file of the run's branch",
        _http,
        takes(
            {"account": NAME, "path": TEXT},
            method={"enum": list(METHODS)},
            query=_PAIRS,
            headers=_HEADERS,
            body=_BODY,
            body_base64=_BODY,
            body_path=TEXT,
            into=TEXT,
            run=NAME,
            timeout={"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_WAIT},
        ),
        gives(account=NAME, status=COUNT, headers={"type": "array"}, size=COUNT, sha256=NAME, removed=COUNT, label=NAME, into=MAYBE_TEXT),
        effect=True,
    ),
    Operation(
        "egress.fetch",
        "POST",
        "/v1/accounts/{account}/fetch",
        "Have the broker fetch a branch of a git remote into a run's branch, which it continues or is merged with",
        _fetch,
        takes(_REMOTE, branch=NAME),
        gives(account=NAME, run=NAME, branch=NAME, fetched=NAME, commit=NAME, commits=COUNT, label=NAME, notices=TEXTS),
        effect=True,
    ),
    Operation(
        "egress.push",
        "POST",
        "/v1/accounts/{account}/push",
        "Have the broker push a run's branch to a git remote, forward only",
        _push,
        takes(_REMOTE, branch=NAME),
        gives(account=NAME, branch=NAME, commit=NAME, commits=COUNT, told=TEXT),
        effect=True,
    ),
)

"""Accounts: the owner's to add, try and remove; whoever one is for may see that it is there and what it lets."""

from __future__ import annotations

import hashlib
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.faults import as_fault
from nasd.operations.operation import COUNT, FLAG, NAME, TEXT, TEXTS, Arguments, Operation, gives, gives_list, takes
from nasd.views import page
from trust.accounts import Account, AccountKind, parse_account
from trust.errors import AccountInvalid
from trust.model import Action, Identity
from trust.requests import Request, check_request

_FOR_OWNERS = ("secret", "authorities", "principals")


def _add(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "add an account")
    try:
        account = parse_account(arguments)
    except AccountInvalid as error:
        raise as_fault(error) from None
    with recorded(desk.appliance.trust, desk.appliance.clock, "account.add", identity, {"account": account.document()}):
        desk.outward.accounts.add(account)
    return _view(desk, account, whole=True)


def _list(desk: Desk, identity: Identity, _: Arguments) -> Document:
    whole = _administers(desk, identity)
    accounts = [each for each in desk.outward.accounts.all() if whole or desk.outward.is_for(identity, each)]
    return page(_view(desk, each, whole=whole) for each in accounts)


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    whole = _administers(desk, identity)
    name = arguments["account"]
    account = desk.outward.accounts.find(name) if whole else desk.outward.account(identity, name)
    return _view(desk, account, whole=whole)


def _remove(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "remove an account")
    account = desk.outward.accounts.find(arguments["account"])
    with recorded(desk.appliance.trust, desk.appliance.clock, "account.remove", identity, {"account": account.name}):
        desk.outward.accounts.remove(account.name)
    return {"account": account.name, "removed": True}


def _test(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    """Have the broker fetch the secret, and (with a path) ask the server something."""
    desk.require(identity, Action.ADMINISTER, "try an account")
    account = desk.outward.accounts.find(arguments["account"])
    path = arguments.get("path")
    if path is not None and account.kind is AccountKind.GIT:
        raise Fault(Kind.INVALID, f"{account.name} is an account for git", hint="leave the path out; a fetch shows the rest")
    body = {"account": account.name, "path": path or ""}
    with recorded(desk.appliance.trust, desk.appliance.clock, "account.test", identity, body) as outcome:
        question: Document = {"operation": "test", "account": account.document()}
        if path is not None:
            empty = {"method": "GET", "path": path, "query": [], "headers": {}, "body_sha256": hashlib.sha256(b"").hexdigest(), "size": 0}
            question |= {"operation": "call", "request": empty, "body": "", "seconds": 30.0, "largest": 1 << 20}
            _check(account, path)
        answer = desk.outward.broker.ask(question)
        outcome["status"] = answer.get("status")
    return {"account": account.name, "resolves": True, "status": answer.get("status")}


def _check(account: Account, path: str) -> None:
    try:
        check_request(account, Request("GET", path))
    except AccountInvalid as error:
        raise as_fault(error) from None


def _administers(desk: Desk, identity: Identity) -> bool:
    return identity.lease is None and desk.allows(identity, Action.ADMINISTER)


def _view(desk: Desk, account: Account, *, whole: bool) -> dict[str, Any]:
    """Return the document of an account; only who administers is shown where its secret is kept."""
    document = account.document()
    shown = document if whole else {name: value for name, value in document.items() if name not in _FOR_OWNERS}
    return {"account": account.name, **shown, "uses_today": desk.outward.accounts.uses(account, desk.appliance.now())}


_KINDS = {"enum": [kind.value for kind in AccountKind]}
_ACCOUNT = {"account": NAME, "kind": NAME, "url": TEXT, "origin": NAME, "sensitivity": NAME, "rules": TEXTS, "daily": COUNT}

OPERATIONS = (
    Operation(
        "account.add",
        "POST",
        "/v1/accounts",
        "Add an account: a destination, how its secret is presented, and where the broker finds it",
        _add,
        takes(
            {"name": NAME, "kind": _KINDS, "url": TEXT, "secret": TEXT},
            origin={"enum": ["owner", "internal", "external"]},
            sensitivity={"enum": ["public", "internal", "sensitive"]},
            rules=TEXTS,
            username=TEXT,
            header=TEXT,
            headers=TEXTS,
            principals=TEXTS,
            daily=COUNT,
            authorities=TEXT,
        ),
        gives(**_ACCOUNT),
        effect=True,
        status=201,
    ),
    Operation("account.list", "GET", "/v1/accounts", "List the accounts that are for the caller", _list, takes(), gives_list(**_ACCOUNT)),
    Operation("account.show", "GET", "/v1/accounts/{account}", "Show an account", _show, takes({"account": NAME}), gives(**_ACCOUNT)),
    Operation(
        "account.remove",
        "POST",
        "/v1/accounts/{account}/remove",
        "Forget an account",
        _remove,
        takes({"account": NAME}),
        gives(account=NAME, removed=FLAG),
        effect=True,
    ),
    Operation(
        "account.test",
        "POST",
        "/v1/accounts/{account}/test",
        "Have the broker fetch an account's secret, and with a path have it ask the server",
        _test,
        takes({"account": NAME}, path=TEXT),
        gives(account=NAME, resolves=FLAG, status={"type": ["integer", "null"]}),
        effect=True,
    ),
)

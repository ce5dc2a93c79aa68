"""Nothing is decided about somebody who was not let in: who makes an identity, the facts about it, or a caller of it, is listed here.

A decision takes `Facts`; facts are gathered from an `Identity` (`nasd.authority.gather`, by its type); and an identity comes from
recognising a credential, or from rows that a recognised one named. A door cannot import any of the three: an import contract proves that.
"""

from __future__ import annotations

import ast
import inspect
import typing
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.authority import gather
from nasd.entrance import identity_behind
from trust.model import Identity

ROOT = Path(__file__).resolve().parents[2]
MAKERS = {
    "Identity": {
        "nasd/identities/doorkeeper.py": "certificates, app passwords and issuers were recognised there",
        "nasd/jobs.py": "the appliance itself, by its own name",
        "nasd/offline.py": "asks what the policy would say; nothing is carried out",
        "nasd/proposals.py": "whom a merge is for, by the row of the run",
        "nasd/runs.py": "what the role of a run would be, to judge a request before there is a run",
        "nasd/workspaces.py": "by the rows that a caller who was let in named, in another process",
        "trust/service.py": "tokens and leases were recognised there",
    },
    "Facts": {
        "nasd/authority.py": "gathers them from an identity",
        "trust/facts.py": "reads back what was recorded, to decide it again without effect",
        "trust/policy/abstraction.py": "asks what the policy could say; nothing is carried out",
        "trust/policy/who_can.py": "asks what the policy would say; nothing is carried out",
    },
    "IdentifiedCaller": {
        "nasd/control.py": "a gateway named whom it let in, over a socket that only the appliance's user opens",
        "nasd/entrance.py": "the doorkeeper let somebody in",
        "nasd/ssh_session.py": "the SSH server checked the key",
    },
}


def makers_of(name: str) -> set[str]:
    """Return the modules that call a class."""
    found = set()
    for package in ("nasd", "trust", "interfaces", "store"):
        for path in sorted((ROOT / package).rglob("*.py")):
            calls = (node.func for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))
            if any(
                (isinstance(call, ast.Name) and call.id == name) or (isinstance(call, ast.Attribute) and call.attr == name)
                for call in calls
            ):
                found.add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_identities_facts_and_callers_are_made_where_somebody_was_let_in(name: str) -> None:
    assert makers_of(name) == set(MAKERS[name])


def test_facts_are_gathered_from_an_identity_and_from_nothing_less() -> None:
    first = next(iter(inspect.signature(gather).parameters))
    assert typing.get_type_hints(gather)[first] is Identity


def test_a_caller_that_no_door_let_in_is_nobody() -> None:
    class Pretender:
        principal = "owner"
        lease = run = ""
        actions = None
        paths = ("**",)

    with pytest.raises(Fault) as caught:
        identity_behind(Pretender())
    assert caught.value.kind is Kind.UNAUTHENTICATED

"""The accounts of an appliance, kept among trust's documents: names, destinations and references, never a secret.

1. An account is added, changed and removed by the owner; what a reference leads to is the broker's alone.
2. What is spent of a daily budget is counted before the use, by compare-and-set, so that no crash and no race gives more than the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from interfaces.faults import Fault, Kind
from trust.accounts import Account, parse_account
from trust.errors import Outdated, Taken, Unknown
from trust.service import Trust

_KIND = "account"
_USES = "account-uses"
_DAY = 86400


class Accounts:
    """The known accounts. Any thread may call."""

    def __init__(self, trust: Trust) -> None:
        """Keep them among the documents of trust."""
        self._trust = trust

    def add(self, account: Account) -> None:
        """Add an account. Raises `Kind.EXISTS`."""
        try:
            self._trust.put_document(_KIND, account.name, account.document(), 0)
        except Taken:
            raise Fault(
                Kind.EXISTS, f"there is an account {account.name}", hint=f"`nas account remove {account.name}` first, or take another name"
            ) from None

    def find(self, name: str) -> Account:
        """Return an account. Raises `Kind.NOT_FOUND`."""
        try:
            return parse_account(self._trust.document(_KIND, name).body)
        except Unknown:
            raise missing(name) from None

    def all(self) -> Sequence[Account]:
        """Return every account, ordered by name."""
        return [parse_account(document.body) for document in self._trust.documents(_KIND)]

    def remove(self, name: str) -> None:
        """Forget an account. Raises `Kind.NOT_FOUND`."""
        try:
            self._trust.remove_document(_KIND, name, self._trust.document(_KIND, name).version)
        except Unknown:
            raise missing(name) from None

    def uses(self, account: Account, now: int) -> int:
        """Return how often an account was used today (UTC)."""
        return self._counted(account, now)[1]

    def spend(self, account: Account, now: int) -> None:
        """Count one use. Raises `Kind.BUDGET` when today's are spent."""
        while True:
            version, used = self._counted(account, now)
            if account.daily and used >= account.daily:
                raise Fault(
                    Kind.BUDGET,
                    f"the account {account.name} was used {used} times today, which is its budget",
                    hint="wait until tomorrow (UTC)",
                )
            try:
                self._trust.put_document(_USES, account.name, {"day": now // _DAY, "uses": used + 1}, version)
            except (Taken, Outdated):
                continue
            return

    def _counted(self, account: Account, now: int) -> tuple[int, int]:
        try:
            found = self._trust.document(_USES, account.name)
        except Unknown:
            return 0, 0
        return found.version, int(found.body["uses"]) if found.body["day"] == now // _DAY else 0


def missing(name: str) -> Fault:
    """Return the fault of an account that does not exist, or not for the caller: the same words."""
    return Fault(Kind.NOT_FOUND, f"{name}: no such account", hint="`nas account list` shows them")

"""What may still be spent.

1. A charge is against a lease and every lease it descends from: all of them, or none.
2. A budget that is missing is unlimited; what was used is counted all the same.
3. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trust.errors import BudgetSpent, ScopeInvalid
from trust.leases import LARGEST_AMOUNT
from trust.model import BudgetKind, LeaseId


@dataclass(frozen=True, slots=True)
class Account:
    """One kind of one lease: its limit (None: none) and what was used."""

    lease: LeaseId
    kind: BudgetKind
    limit: int | None
    used: int


def check_amounts(amounts: Mapping[BudgetKind, int]) -> None:
    """Refuse amounts that are not whole numbers from 0 on. Raises `ScopeInvalid`."""
    for kind, amount in amounts.items():
        if not 0 <= amount <= LARGEST_AMOUNT:
            raise ScopeInvalid(kind.value, f"{amount} is no amount")


def check_charge(accounts: Iterable[Account], amounts: Mapping[BudgetKind, int]) -> None:
    """Raise `BudgetSpent` when one account of the lease's chain does not cover its amount."""
    for account in accounts:
        amount = amounts.get(account.kind, 0)
        over = account.used + amount > LARGEST_AMOUNT if account.limit is None else account.used + amount > account.limit
        if amount and over:
            raise BudgetSpent(account.kind.value, f"{amount} is needed and lease {account.lease} has {_left(account)} left")


def left_of(accounts: Iterable[Account]) -> dict[BudgetKind, int]:
    """Return what is left of each limited budget: the least over the chain."""
    left: dict[BudgetKind, int] = {}
    for account in accounts:
        if account.limit is not None:
            left[account.kind] = min(_left(account), left.get(account.kind, account.limit))
    return left


def _left(account: Account) -> int:
    return max(0, (LARGEST_AMOUNT if account.limit is None else account.limit) - account.used)

"""The promises of the contract, one check each; the numbers in the docstrings are the contract's rules.

1. A check gets a fresh store and raises `BrokenPromise` or the engine's own error when the promise does not hold.
"""

from __future__ import annotations

from store.conformance.bench import Check
from store.conformance.promises import branches, commits, contents, histories, layers, merges, placing

CHECKS: tuple[Check, ...] = (
    *branches.CHECKS,
    *commits.CHECKS,
    *layers.CHECKS,
    *contents.CHECKS,
    *placing.CHECKS,
    *histories.CHECKS,
    *merges.CHECKS,
)
"""Every promise, in the order in which a person would try them."""

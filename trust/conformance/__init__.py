"""The contract of trust, executable: an engine that passes is an engine.

1. `CHECKS` are functions of a `Bench`, each named after what it proves; a broken promise is a `BrokenPromise`.
2. A check opens the same state as often as it likes: as another process would, `Bench.other` opens it once more.
"""

from trust.conformance.bench import Bench, BrokenPromise, Check
from trust.conformance.labels import CHECKS as LABEL_CHECKS
from trust.conformance.rows import CHECKS as ROW_CHECKS
from trust.conformance.transactions import CHECKS as TRANSACTION_CHECKS

CHECKS: tuple[Check, ...] = (*TRANSACTION_CHECKS, *ROW_CHECKS, *LABEL_CHECKS)
"""Everything an engine must pass."""

__all__ = ["CHECKS", "Bench", "BrokenPromise", "Check"]

"""What a verification found, for people and for programs.

Exit codes: 0 everything that was looked at is right, 1 something is wrong, 2 what was asked cannot be looked at.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

RIGHT, WRONG, UNREADABLE = 0, 1, 2
CHECKS = {
    "files": "every file is the one that the manifest names",
    "chain": "no record is missing, and each has the hash of what it says and of all before it",
    "canonical": "each record is written in its one form",
    "tree": "the tree over the records has the roots that were signed",
    "signatures": "checkpoints are signed by the log, the last one over the last record",
    "memory": "the record continues what this verifier saw before",
    "witnesses": "witnesses cosigned",
    "time": "time goes forward",
    "intents": "every outcome has its intent, every intent its outcome",
    "leases": "nobody acted under a revoked lease",
    "gates": "each question was approved, and used once, for what was asked",
}
_SHOWN = 20


@dataclass(slots=True)
class Report:
    """The verdicts so far."""

    records: int = 0
    first_bad: int | None = None
    head: str = ""
    origin: str = ""
    wrong: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def complain(self, check: str, why: str, sequence: int | None = None) -> None:
        """Note that a check failed, at a record where that can be told."""
        self.wrong.setdefault(check, []).append(f"record {sequence}: {why}" if sequence is not None else why)
        if sequence is not None and (self.first_bad is None or sequence < self.first_bad):
            self.first_bad = sequence

    @property
    def exit_code(self) -> int:
        """Return the exit code that says it."""
        return WRONG if self.wrong else RIGHT

    def render_json(self) -> str:
        """Return it as one JSON document."""
        checks = {name: {"says": says, "verdict": self._verdict(name), "why": self._why(name)} for name, says in CHECKS.items()}
        document = {
            "version": 1,
            "ok": not self.wrong,
            "exit_code": self.exit_code,
            "origin": self.origin,
            "records": self.records,
            "head": self.head,
            "first_bad": self.first_bad,
            "checks": checks,
            "notes": self.notes,
        }
        return json.dumps(document, indent=2)

    def render_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"{self._verdict(name):8} {name}: {says}" for name, says in CHECKS.items()]
        lines += [f"         {name}: {why}" for name in CHECKS for why in self._why(name)]
        lines += [f"note     {note}" for note in self.notes]
        verdict = f"WRONG, first at record {self.first_bad}" if self.first_bad is not None else "WRONG" if self.wrong else "right"
        return "\n".join([*lines, f"{self.records} records of {self.origin or 'an unknown log'}: {verdict}", f"head {self.head}"])

    def _verdict(self, name: str) -> str:
        return "WRONG" if name in self.wrong else "skipped" if name in self.skipped else "right"

    def _why(self, name: str) -> list[str]:
        why = self.wrong.get(name, [])
        if len(why) > _SHOWN:
            why = [*why[:_SHOWN], f"and {len(why) - _SHOWN} more"]
        return why or ([self.skipped[name]] if name in self.skipped else [])

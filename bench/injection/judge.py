#!/usr/bin/env python3
"""Asks AgentDojo itself what came of the attacks when exactly the steps that the decider held back are held back.

Runs inside the environment that `run` makes. Reads what `measure` wrote, prints for each row how many attacks succeed and how many pairs
`replay` judged otherwise from the table that `extract` made.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import dojo


def judge(held: dict[str, list[list[int]]], said: dict[str, list[int]]) -> tuple[int, int]:
    """Return how many attacks succeed, and on how many pairs the table said otherwise."""
    through = differ = 0
    for name, suite in dojo.suites().items():
        pairs: list[Any] = [(user, attack) for user in suite.user_tasks.values() for attack in suite.injection_tasks.values()]
        for (user, attack), blocked, success in zip(pairs, held[name], said[name], strict=True):
            succeeded = dojo.play(suite, user, attack, frozenset(blocked)).succeeded
            through += succeeded
            differ += succeeded != bool(success)
    return through, differ


def main() -> None:
    """Judge every row of the file named on the command line."""
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)
    for row in rows:
        through, differ = judge(row["held"], row["success"])
        print(f"{row['name']}: AgentDojo's own judges count {through} attacks through; {differ} pairs differ from the table")


if __name__ == "__main__":
    main()

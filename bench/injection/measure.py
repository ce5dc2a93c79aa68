#!/usr/bin/env python3
"""Prints the curve of `replay`: rules against attacks that get through and honest tasks that wait for a person."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.injection.replay import CURVE, DEFAULT_POLICY, OTHERS, Count, Variant, load, measure


def report(counts: Sequence[Count]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield "| rules | attacks through | honest tasks that ask | workspace | travel | banking | slack |"
    yield "|---|---|---|---|---|---|---|"
    for count in counts:
        suites = " | ".join(f"{through} of {attacks}, {asked} of {tasks}" for through, attacks, asked, tasks in count.suites.values())
        yield f"| {count.variant.name} | {count.through} of {count.attacks} | {count.asked} of {count.tasks} | {suites} |"
    for count in counts:
        yield ""
        yield count.variant.name.strip("*")
        yield f"  honest tasks that ask, by rule: {_listed(count.rules)}"
        yield f"  attacks through, by attack: {_listed(count.passed)}"


def _listed(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items())) or "none"


def main() -> None:
    """Measure every row; with ``--held``, write what was held back in the rows that `judge` looks at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held", type=Path, help="where to write the steps that were held back")
    arguments = parser.parse_args()
    data = load()
    counts: list[Count] = []
    variants: tuple[Variant, ...] = CURVE + OTHERS
    for variant in variants:
        with tempfile.TemporaryDirectory() as folder:
            counts.append(measure(variant, Path(folder), data))
    print("\n".join(report(counts)))
    if arguments.held:
        judged = [count for count in counts if count.variant in {CURVE[0], DEFAULT_POLICY}]
        rows = [{"name": count.variant.name.strip("*"), "held": count.held, "success": count.success} for count in judged]
        arguments.held.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()

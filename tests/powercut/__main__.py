"""Cut the power by hand: ``python -m tests.powercut [--scenario MODULE:NAME] [--cuts N] [--seed N]``.

Prints what was wrong after each bad cut and a line with the figures; ends with 1 when anything was lost.
"""

from __future__ import annotations

import argparse
import sys

from tests.powercut.machine import cut_power, recorded, why_not_here


def main() -> int:
    """Run one scenario and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.powercut")
    parser.add_argument("--scenario", default="tests.powercut.git_store:STORE", help="MODULE:NAME of a Scenario")
    parser.add_argument("--cuts", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    why = why_not_here()
    if why is not None:
        sys.stderr.write(f"{why}\n")
        return 1
    with recorded(chosen.scenario) as recording:
        outcome = cut_power(recording, chosen.scenario, cuts=chosen.cuts, seed=chosen.seed)
        acknowledged = len(recording.acknowledged(len(recording.records)))
    for place, problems in outcome.problems.items():
        sys.stdout.write(f"record {place}: {'; '.join(problems)}\n")
    sys.stdout.write(f"{chosen.scenario}: {acknowledged} acknowledged, {outcome.cuts} cuts, {outcome.clean} clean\n")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())

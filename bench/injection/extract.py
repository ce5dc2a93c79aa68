#!/usr/bin/env python3
"""Writes what `replay` needs of AgentDojo into one file: files, tasks, calls and which of the attacks' acts make them succeed.

1. Runs inside the environment that `run` makes. The data is AgentDojo's (MIT, see the head of the file that is written).
2. A file is external when an attacker can write into it: AgentDojo puts a canary there. Where a canary is seen in a reply and no file that
   the call reads is external, this fails: the picture of the storage would be wrong.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import dojo

HEAD = {
    "source": "agentdojo 0.1.35 from PyPI, benchmark v1.2.2: prompts and ground truths of its tasks, and what its own judges say",
    "license": "MIT License, Copyright (c) 2024 Edoardo Debenedetti, Jie Zhang, Mislav Balunovic, Luca Beurer-Kellner, "
    "Marc Fischer, Florian Tramer",
    "steps": "[tool, files read, files written, files deleted, destinations reached]",
    "pairs": "[user task, injection task, the user step that shows the attack or -1, steps of the attack, whether the attack succeeds "
    "when the n-th set of its acts is carried out: bit i of n stands for its i-th act]",
}


def as_row(step: dojo.Step) -> tuple[Any, ...]:
    """Return a step as it is written."""
    effects = step.effects
    return step.function, effects.reads, effects.writes, effects.deletes, effects.reaches


def acts_of(play: dojo.Play) -> list[int]:
    """Return the numbers of the attack's steps that do more than read."""
    return [
        number
        for number, step in enumerate(play.steps)
        if step.injected and (step.effects.writes or step.effects.deletes or step.effects.reaches)
    ]


def extract_suite(name: str, suite: Any) -> dict[str, Any]:
    """Return one suite as data."""
    env = suite.load_and_inject_default_environment(dojo.canaries(suite))
    external = sorted(path for path, text in dojo.objects(name, env).items() if "---CANARY_" in text)
    table: dict[tuple[Any, ...], int] = {}

    def number_of(step: dojo.Step) -> int:
        if "---CANARY_" in step.text and not set(step.effects.reads) & set(external):
            sys.exit(f"{name}: {step.function} shows an attacker's words and reads no external file: {step.effects}")
        return table.setdefault(as_row(step), len(table))

    tasks, attacks = suite.user_tasks.values(), suite.injection_tasks.values()
    users = {task.ID: [task.PROMPT, [number_of(step) for step in dojo.play(suite, task, None).steps]] for task in tasks}
    pairs = [extract_pair(suite, task, attack, number_of) for task in tasks for attack in attacks]
    goals = {attack.ID: attack.GOAL for attack in attacks}
    return {"external": external, "users": users, "goals": goals, "pairs": pairs, "steps": list(table)}


def extract_pair(suite: Any, user: Any, injection: Any, number_of: Any) -> list[Any]:
    """Return one pair as data."""
    full = dojo.play(suite, user, injection)
    seen_after = next((number for number, step in enumerate(full.steps) if "---CANARY_" in step.text), -1)
    acts = acts_of(full)
    outcomes = []
    for chosen in itertools.product((False, True), repeat=len(acts)):
        carried_out = {act for act, done in zip(acts, reversed(chosen), strict=True) if done}
        outcomes.append(int(dojo.play(suite, user, injection, frozenset(set(acts) - carried_out)).succeeded))
    return [user.ID, injection.ID, seen_after, [number_of(step) for step in full.steps if step.injected], "".join(map(str, outcomes))]


def main() -> None:
    """Write the file named on the command line."""
    data = HEAD | {"suites": {name: extract_suite(name, suite) for name, suite in dojo.suites().items()}}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(_compact(data))
        out.write("\n")


def _compact(data: dict[str, Any]) -> str:
    """Return JSON with a line for each task, step and pair."""
    lines = json.dumps(data, indent=1, ensure_ascii=False).split("\n")
    merged: list[str] = []
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if depth > 4 and merged:
            text = line.strip()
            merged[-1] += text if merged[-1][-1] in "[{" or text[0] in "]}" else " " + text
        elif depth == 4 and line.strip() in {"]", "],"} and merged:
            merged[-1] += line.strip()
        else:
            merged.append(line)
    return "\n".join(merged)


if __name__ == "__main__":
    main()

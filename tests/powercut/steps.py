"""One step of a scenario, alone in its process: ``python -m tests.powercut.steps MODULE:NAME prepare|work|check ROOT [FILE]``.

`work` acknowledges into FILE (the disk's ``mark``); `check` reads the acknowledgements from FILE as JSON and prints what is wrong as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from tests.powercut.machine import Scenario


def main(reference: str, step: str, root: Path, file: str = "") -> None:
    """Take the step."""
    module, _, name = reference.partition(":")
    scenario: Scenario = getattr(importlib.import_module(module), name)
    if step == "prepare":
        scenario.prepare(root)
    elif step == "work":
        mark = os.open(file, os.O_WRONLY | os.O_APPEND)
        scenario.work(root, lambda text: _acknowledge(mark, text))
        os.close(mark)
    else:
        json.dump(scenario.check(root, json.loads(Path(file).read_text())), sys.stdout)


def _acknowledge(mark: int, text: str) -> None:
    os.write(mark, text.encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])

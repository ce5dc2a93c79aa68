"""A child process for `test_processes`: it does what standard input says."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from interfaces.faults import Fault, Kind
from nasd.processes import describe_failure, report_to


def main() -> None:
    spec = json.loads(sys.stdin.buffer.readline())
    if "pid_file" in spec:
        Path(spec["pid_file"]).write_text(str(os.getpid()))
    match spec["does"]:
        case "fail":
            report_to(spec["report"], describe_failure(Fault(Kind.BUSY, "no room")))
        case "hang":
            time.sleep(60)
        case "wait":
            report_to(spec["report"], {"ready": True, "pid": os.getpid()})
            time.sleep(60)
        case "hold":
            report_to(spec["report"], {"ready": True, "pid": os.getpid()})
            sys.stdin.buffer.read()


if __name__ == "__main__":
    main()

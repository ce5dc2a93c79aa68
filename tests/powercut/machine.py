"""A machine whose power can fail at any moment: record a program's work on a disk once, then look at many cuts of it.

1. The work runs once, on ext4 over a loop device over the recording disk. What the program acknowledges goes to the disk's ``mark``.
2. A cut at some record keeps everything up to the last flush before it, and of what was written since, each page of 4 KiB with a
   probability of 0, 0.3, 0.7 or 1: that is what a disk with a write cache may do.
3. For each cut the file system is mounted (it replays its journal), and the scenario's check says what of the acknowledged is missing.
4. Steps of a scenario run in processes of their own, so nothing of one cut lives on in memory during the next.
5. Cuts are chosen from a seed; a failure names its record, and the same seed repeats it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.powercut.disk import FLUSH, HEADER, MARK, WRITE

Acknowledge = Callable[[str], None]
"""Says, where the recording disk hears it, that something is now durable."""

DISK_BYTES = 1 << 30
_PAGE = 4096
_KEEP = (0.0, 0.3, 0.7, 1.0)
_MEMORY = Path("/dev/shm")
_TOOLS = ("mkfs.ext4", "losetup", "mount", "umount")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a program does and promises: `prepare` before the first cut, `work` while power may fail, `check` after it came back.

    `check` gets the acknowledgements that came before the cut and returns what is wrong, one line each.
    """

    prepare: Callable[[Path], None]
    work: Callable[[Path, Acknowledge], None]
    check: Callable[[Path, Sequence[str]], list[str]]


class Record(NamedTuple):
    """One record of the log; `start` is where its bytes are."""

    what: int
    offset: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that reached the disk, and when work began and ended."""

    log: Path
    records: list[Record]
    marks: dict[int, str]

    def span(self) -> range:
        """Return the records between the beginning and the end of the work."""
        named = {text: place for place, text in self.marks.items()}
        return range(named["begin"], named["end"])

    def acknowledged(self, before: int) -> list[str]:
        """Return what had been acknowledged before a record arrived."""
        return [text for place, text in self.marks.items() if place < before and text not in ("begin", "end")]


@dataclass(slots=True)
class Outcome:
    """How many cuts were looked at, and for each bad one its record and what was wrong."""

    cuts: int = 0
    problems: dict[int, list[str]] = field(default_factory=dict)

    @property
    def clean(self) -> int:
        """Return the number of cuts after which everything was as promised."""
        return self.cuts - len(self.problems)


class StepFailed(Exception):
    """A command of the machine, or a step of a scenario, ended with an error."""


def why_not_here() -> str | None:
    """Return what this machine lacks for power cuts, or None."""
    if os.geteuid() != 0:
        return "power cuts need root (loop devices and mounts)"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"power cuts need {', '.join(missing)}"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not Path("/dev/loop-control").exists():
        return "power cuts need /dev/fuse and loop devices"
    return None


@contextmanager
def recorded(scenario: str) -> Iterator[Recording]:
    """Run a scenario (``module:name``) once and yield the recording, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="powercut-", dir=_MEMORY) as memory, tempfile.TemporaryDirectory(prefix="powercut-") as places:
        log = Path(memory) / "log"
        _record(scenario, Path(memory) / "image", log, Path(places))
        yield _read_log(log)


def cut_power(recording: Recording, scenario: str, *, cuts: int, seed: int) -> Outcome:
    """Cut the power at `cuts` moments of a recording and return what the scenario's check found."""
    chance = random.Random(seed)
    span = recording.span()
    outcome = Outcome()
    with ExitStack() as cleanup:
        memory, places = (Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="powercut-", dir=at))) for at in (_MEMORY, None))
        replay = cleanup.enter_context(closing(_Replay(recording, memory)))
        for place in sorted(chance.sample(span, min(cuts, len(span)))):
            image = replay.cut(place, chance)
            outcome.cuts += 1
            if found := _check(scenario, image, places, recording.acknowledged(place)):
                outcome.problems[place] = found
    return outcome


class _Replay:
    """Images of the disk at growing moments."""

    def __init__(self, recording: Recording, folder: Path) -> None:
        self._records = recording.records
        self._log = os.open(recording.log, os.O_RDONLY)
        self._base = folder / "base"
        self._cut = folder / "cut"
        with open(self._base, "wb") as file:
            file.truncate(DISK_BYTES)
        self._applied = 0

    def cut(self, place: int, chance: random.Random) -> Path:
        """Return an image as the disk may look when power fails before the record at `place`."""
        flushes = [at for at in range(self._applied, place) if self._records[at].what == FLUSH]
        if flushes:
            with open(self._base, "r+b") as file:
                for record in self._records[self._applied : flushes[-1]]:
                    self._apply(file.fileno(), record, 1.0, chance)
            self._applied = flushes[-1]
        _run("cp", "--sparse=auto", str(self._base), str(self._cut))
        keep = chance.choice(_KEEP)
        with open(self._cut, "r+b") as file:
            for record in self._records[self._applied : place]:
                self._apply(file.fileno(), record, keep, chance)
        return self._cut

    def close(self) -> None:
        """Release the log."""
        os.close(self._log)

    def _apply(self, image: int, record: Record, keep: float, chance: random.Random) -> None:
        if record.what != WRITE:
            return
        data = os.pread(self._log, record.length, record.start)
        for page in range(0, record.length, _PAGE):
            if keep == 1.0 or chance.random() < keep:
                os.pwrite(image, data[page : page + _PAGE], record.offset + page)


def _record(scenario: str, image: Path, log: Path, places: Path) -> None:
    device, root = places / "device", places / "root"
    device.mkdir()
    with ExitStack() as cleanup:
        cleanup.enter_context(_recording_disk(device, image, log))
        loop = cleanup.enter_context(_loop_device(device / "disk"))
        _run("mkfs.ext4", "-q", loop)
        cleanup.enter_context(_mounted(loop, root))
        mark = str(device / "mark")
        _step(scenario, "prepare", root)
        _run("sync", "-f", str(root))
        Path(mark).write_text("begin")
        _step(scenario, "work", root, mark)
        Path(mark).write_text("end")


def _check(scenario: str, image: Path, places: Path, acknowledged: list[str]) -> list[str]:
    given = places / "acknowledged"
    given.write_text(json.dumps(acknowledged))
    try:
        with _loop_device(image) as loop, _mounted(loop, places / "root") as root:
            return list(json.loads(_step(scenario, "check", root, str(given))))
    except StepFailed as failure:
        return [f"the check came to no end: {failure}"]


def _read_log(path: Path) -> Recording:
    records: list[Record] = []
    marks: dict[int, str] = {}
    with open(path, "rb") as log:
        while header := log.read(HEADER.size):
            what, offset, length = HEADER.unpack(header)
            if what == MARK:
                marks[len(records)] = log.read(length).decode()
                log.seek(-length, os.SEEK_CUR)
            records.append(Record(what, offset, log.tell(), length))
            log.seek(length, os.SEEK_CUR)
    return Recording(path, records, marks)


@contextmanager
def _recording_disk(mountpoint: Path, image: Path, log: Path) -> Iterator[None]:
    arguments = [str(mountpoint), str(image), str(log), str(DISK_BYTES)]
    serving = subprocess.Popen([sys.executable, "-m", "tests.powercut.disk", *arguments])
    try:
        _wait_until((mountpoint / "disk").exists, serving)
        yield
    finally:
        _run("umount", "--lazy", str(mountpoint))
        serving.wait(30)


def _wait_until(ready: Callable[[], bool], serving: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while not ready():
        if serving.poll() is not None or time.monotonic() > deadline:
            raise StepFailed("the recording disk did not come up")
        time.sleep(0.02)


@contextmanager
def _loop_device(path: Path) -> Iterator[str]:
    device = _run("losetup", "--find", "--show", str(path)).strip()
    try:
        yield device
    finally:
        _run("losetup", "--detach", device)


@contextmanager
def _mounted(device: str, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    _run("mount", "-t", "ext4", device, str(place))
    try:
        yield place
    finally:
        _run("umount", str(place))


def _step(scenario: str, *arguments: object) -> str:
    """Run one step of a scenario in a process of its own and return what it printed."""
    return _run(sys.executable, "-m", "tests.powercut.steps", scenario, *map(str, arguments))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise StepFailed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout

"""What the store's benchmarks share: trees of a given size, medians, and a line for each figure.

1. Trees are made from a seed: directories hang below random others, at most ten deep, twelve files each on average, about a kilobyte each.
2. A figure is the median of its rounds, in wall and in CPU milliseconds; compare ratios of one run, machines differ.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from store.engines.git import open_engine
from store.engines.git.engine import GitEngine
from store.model import ROOT, Access, CommitId, Note, Provenance

SMALL, LARGE = 1_000, 100_000
_PER_DIRECTORY = 12
_DEPTH = 10
_WRITING = Access(write=True, truncate=True)


def grow_paths(files: int) -> list[bytes]:
    """Return the paths of a tree of `files` files."""
    chance = random.Random(files)
    directories = [b""]
    for number in range(files // _PER_DIRECTORY):
        above = chance.choice(directories)
        if above.count(b"/") < _DEPTH - 1:
            directories.append(above + b"d%d/" % number)
    return [chance.choice(directories) + b"file%d.txt" % number for number in range(files)]


def grow_repository(folder: Path, paths: list[bytes]) -> Path:
    """Make a git repository whose one commit holds a small text at every path."""
    repository = folder / "source.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(repository)], check=True)
    stream = io.BytesIO()
    stream.write(b"commit refs/heads/main\ncommitter bench <bench@bench.invalid> 1700000000 +0000\ndata 5\nfirst\n")
    for number, path in enumerate(paths):
        text = (b"line %d of a file that has some length\n" % number) * 25
        stream.write(b'M 100644 inline "%s"\ndata %d\n%s\n' % (path, len(text), text))
    subprocess.run(["git", f"--git-dir={repository}", "fast-import", "--quiet"], input=stream.getvalue(), check=True)
    return repository


@contextmanager
def grown_store(files: int) -> Iterator[tuple[GitEngine, CommitId, list[bytes]]]:
    """Yield a store whose branch ``main`` holds a tree of `files` files, its head, and the paths."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    try:
        paths = grow_paths(files)
        engine = open_engine(folder / "store", clock=time.time_ns)
        report = engine.import_git(str(grow_repository(folder, paths)), "main", 1_700_000_000, lambda stage, done, total: None)
        try:
            yield engine, report.commit, paths
        finally:
            engine.close()
    finally:
        shutil.rmtree(folder)


def make_note(text: str) -> Note:
    """Return a note for a commit of a benchmark."""
    return Note(text, Provenance("bench"), 1_700_000_001)


def write_paths(engine: GitEngine, branch: str, paths: list[bytes], text: bytes) -> None:
    """Replace the content of files on a branch."""
    working = engine.working(branch)
    for path in paths:
        node = ROOT
        for name in path.split(b"/"):
            node = working.lookup(node, name).node
        handle = working.open(node, _WRITING)
        handle.write(0, text + path)
        handle.close()
    working.close()


def measure(task: Callable[[int], object], rounds: int, prepare: Callable[[int], object] = lambda number: None) -> tuple[float, float]:
    """Return the medians of wall and CPU milliseconds of `task`; `prepare` runs before each round and does not count."""
    walls, cpus = [], []
    for number in range(rounds):
        prepare(number)
        wall, cpu = time.perf_counter(), time.process_time()
        task(number)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return statistics.median(walls), statistics.median(cpus)


def show(figure: str, wall: float, cpu: float, must: str = "") -> None:
    """Print one figure."""
    print(f"{figure:<58} {wall:>10.2f} ms wall {cpu:>10.2f} ms CPU   {must}", flush=True)

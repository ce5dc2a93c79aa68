"""Threads and processes that work on one store at once.

1. Compare-and-set never loses, no acknowledged write is lost, no reader sees half of a commit.
2. Threads share one engine. Processes are gateways of their own beside one owner; engines that do not outlive their process
   (`Capability.DURABLE`) have no such processes.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from store.conformance.bench import (
    APPENDING,
    REPLACING,
    Bench,
    BrokenPromise,
    Check,
    Subject,
    find,
    make_note,
    put_file,
    read_file,
    same,
    see_files,
)
from store.contract import Engine, Working
from store.errors import Exists, Moved, Stale
from store.model import ROOT, Attributes, Capability, CommitId, NodeId

_THREADS = 4
_ROUNDS = 12
_RECORD = 16
_PATIENCE = 120


def _at_once(tasks: list[Callable[[], object]]) -> None:
    """Run tasks in threads of their own, started together, and raise what any of them raises."""
    barrier = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> None:
        barrier.wait(_PATIENCE)
        task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(run, task) for task in tasks]:
            future.result(_PATIENCE)


def branches_do_not_disturb_each_other(bench: Bench) -> None:
    """Rule 10: forks and commits of many branches at once."""
    _, first = bench.grow({b"shared": b"0"})

    def work(name: str) -> None:
        bench.engine.create_branch(name, first, 1)
        working = bench.engine.working(name)
        for number in range(_ROUNDS):
            put_file(working, b"d/%d" % number, name.encode())
            same(bench.engine.commit(name, make_note(name, number)) is not None, True, "a commit")

    names = [f"agent/r{number}" for number in range(_THREADS)]
    _at_once([partial(work, name) for name in names])
    for name in names:
        head = bench.engine.branch(name).head
        expected = {b"shared": b"0"} | {b"d/%d" % number: name.encode() for number in range(_ROUNDS)}
        same(see_files(bench.engine.view(head)), expected, f"the files of {name}")
        same(len(list(bench.engine.log(head))) - len(list(bench.engine.log(first))), _ROUNDS, f"the commits of {name}")


def one_name_is_made_once(bench: Bench) -> None:
    """Of many who make the same branch or file, one wins."""
    working = bench.start()
    won: list[str] = []

    def attempt(kind: str, make: Callable[[], object]) -> None:
        try:
            make()
        except Exists:
            return
        won.append(kind)

    for number in range(_ROUNDS):
        branch = [partial(attempt, "branch", partial(bench.engine.create_branch, f"b{number}", None, 1))] * _THREADS
        file = [partial(attempt, "file", partial(working.create, ROOT, b"f%d" % number, 0o644))] * _THREADS
        _at_once([*branch, *file])
    same((won.count("branch"), won.count("file")), (_ROUNDS, _ROUNDS), "how many won")


def conditions_lose_no_update(bench: Bench) -> None:
    """Of many who replace one file under the condition that it is as they saw it, each one's change is there in the end."""
    working = bench.start()
    put_file(working, b"sum", b"0")
    gateway = bench.subject.open("gateway") if bench.declares(Capability.DURABLE) else bench.engine

    def add(engine: Engine) -> None:
        mine = engine.working("main")
        done = 0
        while done < _ROUNDS:
            seen = find(mine, b"sum")
            total = int(_read_node(mine, seen.node) or b"0")
            with contextlib.suppress(_Changed, Stale):
                mine.place(ROOT, b"sum", 0o644, io.BytesIO(b"%d" % (total + 1)), condition=partial(_expect, seen.content))
                done += 1
        mine.close()

    _at_once([partial(add, engine) for engine in (bench.engine, gateway) for _ in range(_THREADS // 2)])
    same(read_file(working, b"sum"), b"%d" % (_THREADS * _ROUNDS), "the sum")
    if gateway is not bench.engine:
        gateway.close()


class _Changed(Exception):
    """What a condition raises when the file is another one than was seen."""


def _expect(content: bytes, found: Attributes | None) -> None:
    if found is None or found.content != content:
        raise _Changed


def _read_node(working: Working, node: NodeId) -> bytes:
    """Return a small content, nothing when the file was replaced meanwhile."""
    try:
        handle = working.open(node)
    except Stale:
        return b""
    try:
        return handle.read(0, 100)
    finally:
        handle.close()


def merges_into_one_branch_all_arrive(bench: Bench) -> None:
    """Rule 3: everyone merges into a protected branch, and tries again when somebody was quicker."""
    _, first = bench.grow({b"start": b"0"}, "start")
    bench.engine.create_branch("main", first, 1, protected=True)

    def work(name: str) -> None:
        working = bench.start(name, first)
        for number in range(_ROUNDS):
            put_file(working, b"%s/%d" % (name.encode(), number), b"x")
            committed = bench.engine.commit(name, make_note(name, number))
            if committed is None:
                raise BrokenPromise("a commit found no change")
            _merge_until_won(bench.engine, committed.id)

    names = [f"r{number}" for number in range(_THREADS)]
    _at_once([partial(work, name) for name in names])
    head = bench.engine.branch("main").head
    expected = {b"start"} | {b"%s/%d" % (name.encode(), number) for name in names for number in range(_ROUNDS)}
    same(set(see_files(bench.engine.view(head))), expected, "the merged files")
    merges = [commit for commit in bench.engine.log(head) if len(commit.parents) == 2]
    same(len(merges), _THREADS * _ROUNDS, "the number of merges")


def _merge_until_won(engine: Engine, source: CommitId) -> None:
    while True:
        try:
            merged = engine.merge("main", engine.branch("main").head, source, make_note("merge", 1))
        except Moved:
            continue
        same(merged.conflicts, (), "conflicts of merges that do not touch each other")
        return


def a_reader_never_sees_half_a_commit(bench: Bench) -> None:
    """Rule 1: two files that are always committed together."""
    working, _ = bench.grow({b"one": b"0", b"d/two": b"0"})
    over = threading.Event()

    def write() -> None:
        for number in range(_ROUNDS * 2):
            for path in (b"one", b"d/two"):
                put_file(working, path, b"%d" % number * 1_000)
            bench.engine.commit("main", make_note("both", number))
        over.set()

    def read() -> None:
        while not over.is_set():
            files = see_files(bench.engine.view(bench.engine.branch("main").head))
            same(files[b"one"], files[b"d/two"], "two files of one commit")

    _at_once([write, read, read])


def a_commit_holds_what_was_written_before_it(bench: Bench) -> None:
    """Writers append records while commits run: none is lost, none is torn, and each commit has all acknowledged before it."""
    working = bench.start()
    node = working.create(ROOT, b"log", 0o644).node
    acknowledged = [0] * _THREADS
    over = threading.Event()

    def write(writer: int) -> None:
        handle = bench.engine.working("main").open(node, APPENDING)
        for number in range(_ROUNDS * 4):
            handle.write(0, _record(writer, number))
            acknowledged[writer] = number + 1
        handle.close()

    def commit() -> None:
        while not over.is_set():
            before = list(acknowledged)
            committed = bench.engine.commit("main", make_note("log", 1))
            if committed is not None:
                _check_log(read_file(bench.engine.view(committed.id), b"log"), before)

    committer = threading.Thread(target=commit)
    committer.start()
    try:
        _at_once([partial(write, writer) for writer in range(_THREADS)])
    finally:
        over.set()
        committer.join(_PATIENCE)
    _check_log(read_file(working, b"log"), acknowledged, exact=True)


def _record(writer: int, number: int) -> bytes:
    return b"%03d %010d\n" % (writer, number) + b"\n"


def _check_log(content: bytes, acknowledged: list[int], *, exact: bool = False) -> None:
    """See that the records of each writer are whole, in order, and as many as acknowledged, or more."""
    records = [content[start : start + _RECORD] for start in range(0, len(content), _RECORD)]
    for writer, least in enumerate(acknowledged):
        mine = [record for record in records if record.startswith(b"%03d " % writer)]
        same(mine, [_record(writer, number) for number in range(len(mine))], f"the records of writer {writer}")
        if len(mine) < least or (exact and len(mine) != least):
            raise BrokenPromise(f"writer {writer}: {len(mine)} records, {least} acknowledged")
    same(sum(len(record) for record in records), len(content), "nothing but records")


def processes_share_a_working_layer(bench: Bench) -> None:
    """Rule 6: gateways append to one file and make files beside it while the owner commits; nothing is lost."""
    if not bench.declares(Capability.DURABLE):
        return
    working = bench.start()
    working.create(ROOT, b"log", 0o644)
    working.create(ROOT, b"shared", 0o644)
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work_as_gateway, args=(bench.subject, number)) for number in range(2)]
    for child in children:
        child.start()
    while any(child.is_alive() for child in children):
        committed = bench.engine.commit("main", make_note("log", 1))
        if committed is not None:
            _check_log(read_file(bench.engine.view(committed.id), b"log"), [0, 0])
    for child in children:
        child.join(_PATIENCE)
    same([child.exitcode for child in children], [0, 0], "how the gateways ended")
    bench.engine.commit("main", make_note("last", 2))
    files = see_files(bench.engine.view(bench.engine.branch("main").head))
    _check_log(files[b"log"], [_ROUNDS * 4] * 2, exact=True)
    own = {b"gateway%d/%d" % (number, each) for number in range(2) for each in range(_ROUNDS)}
    same(set(files) - {b"log", b"shared"}, own, "the files of both gateways")
    same(files[b"shared"] in {b"%d" % number * 5_000 for number in range(2)}, True, "a file that both replaced")


def work_as_gateway(subject: Subject, number: int) -> None:
    """Work on the branch ``main`` of a store that another process owns; the body of a child process."""
    engine = subject.open("gateway")
    working = engine.working("main")
    handle = working.open(find(working, b"log").node, APPENDING)
    for step in _steps_of(working, number):
        handle.write(0, _record(number, step))
    handle.close()
    engine.close()


def _steps_of(working: Working, number: int) -> Iterator[int]:
    """Yield the numbers of the records, doing something else between them."""
    for step in range(_ROUNDS * 4):
        if step % 4 == 0:
            put_file(working, b"gateway%d/tmp" % number, b"%d" % step)
            directory = find(working, b"gateway%d" % number).node
            working.rename(directory, b"tmp", directory, b"%d" % (step // 4))
            shared = working.open(find(working, b"shared").node, REPLACING)
            shared.write(0, b"%d" % number * 5_000)
            shared.close()
        yield step


CHECKS: tuple[Check, ...] = (
    branches_do_not_disturb_each_other,
    one_name_is_made_once,
    conditions_lose_no_update,
    merges_into_one_branch_all_arrive,
    a_reader_never_sees_half_a_commit,
    a_commit_holds_what_was_written_before_it,
    processes_share_a_working_layer,
)
"""What must hold while others work."""

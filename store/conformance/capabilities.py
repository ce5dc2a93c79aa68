"""Optional powers: a declared one must work, an undeclared one must raise `Unsupported`.

1. Each check tries one capability and does what `expects` says for an engine without it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from store.conformance.bench import (
    WRITING,
    Bench,
    Check,
    find,
    make_directory,
    move,
    put_file,
    read_file,
    refused,
    same,
    see_files,
    see_tree,
    write_node,
)
from store.errors import Exists, ImportFailed, NotFound, NotPermitted, TooLarge, Unsupported
from store.exchange import Limits, Selection
from store.model import ROOT, AttributeChange, Capability

SPARSE_SIZE = 1 << 24


def _silent(stage: str, done: int, total: int) -> None:
    """Hear of progress and say nothing."""


def _expects(bench: Bench, capability: Capability, *calls: Callable[[], object]) -> bool:
    """Tell whether the capability is declared; when it is not, see that every call refuses."""
    if bench.declares(capability):
        return True
    for call in calls:
        with refused(Unsupported):
            call()
    return False


def extended_attributes(bench: Bench) -> None:
    """`user.*` attributes of files and directories, through commits; the documented refusals."""
    working = bench.start()
    node, link = put_file(working, b"f", b"1"), working.symlink(ROOT, b"l", b"t").node
    if not _expects(bench, Capability.XATTRS, lambda: working.set_xattr(node, b"user.a", b"1")):
        return
    working.set_xattr(node, b"user.a", b"1\0\xff")
    working.set_xattr(node, b"user.empty", b"")
    working.set_xattr(node, b"user.gone", b"2")
    working.set_xattr(node, b"user.gone", None)
    working.set_xattr(make_directory(working, b"d"), b"user.d", b"3" * 1000)
    bench.commit()
    again = bench.engine.working("main")
    same(again.xattrs(node), {b"user.a": b"1\0\xff", b"user.empty": b""}, "the attributes of a file")
    same(again.xattrs(find(again, b"d").node), {b"user.d": b"3" * 1000}, "the attributes of a directory")
    with refused(NotFound):
        working.set_xattr(node, b"user.gone", None)
    with refused(NotPermitted):
        working.set_xattr(node, b"security.x", b"1")
    with refused(NotPermitted):
        working.set_xattr(link, b"user.x", b"1")
    with refused(TooLarge):
        working.set_xattr(node, b"user.large", b"x" * 65_537)


def hard_links(bench: Bench) -> None:
    """Two names of one file: one content, one identity, counted, each committed."""
    working = bench.start()
    node = put_file(working, b"d/f", b"1")
    if not _expects(bench, Capability.HARD_LINKS, lambda: working.link(node, ROOT, b"g")):
        return
    same(working.link(node, ROOT, b"g").links, 2, "the number of names")
    with refused(Exists):
        working.link(node, ROOT, b"g")
    with refused(NotPermitted):
        working.link(find(working, b"d").node, ROOT, b"e")
    write_node(working, node, b"2", 1, WRITING)
    same((read_file(working, b"g"), find(working, b"g").node), (b"12", node), "the other name")
    move(working, b"g", b"d/f")
    same(sorted(see_files(working)), [b"d/f", b"g"], "a rename of one name onto the other")
    committed = bench.commit()
    same(see_files(bench.engine.view(committed.id)), {b"d/f": b"12", b"g": b"12"}, "the committed names")
    working.unlink(ROOT, b"g")
    same(working.attributes(node).links, 1, "the names left")
    write_node(working, node, b"3", 2, WRITING)
    same(read_file(working, b"d/f"), b"123", "the content of the name left")


def names_part_when_a_commit_tells_them_apart(bench: Bench) -> None:
    """Two names of one file, and a head, merged, moved to or restored, that holds different content under them."""
    working = bench.start()
    node = put_file(working, b"one", b"same")
    if not _expects(bench, Capability.HARD_LINKS, lambda: working.link(node, ROOT, b"two")):
        return
    working.link(node, ROOT, b"two")
    linked = bench.commit().id
    side = bench.start("apart", linked)
    put_file(side, b"two", b"else")
    write_node(side, find(side, b"one").node, b"same")
    parted = bench.commit("apart").id
    for name in ("moved", "merged", "restored"):
        layer = bench.start(name, linked)
        layer.unlink(ROOT, b"two")
        layer.link(find(layer, b"one").node, ROOT, b"two")
        if name == "moved":
            bench.engine.move_branch(name, linked, parted)
        elif name == "merged":
            bench.engine.merge(name, linked, parted, bench.note())
        else:
            bench.engine.restore(name, parted, [])
        same((name, see_files(layer)), (name, {b"one": b"same", b"two": b"else"}), "the names")
        same(find(layer, b"one").links, 1, "the number of names")


def sparse_files(bench: Bench) -> None:
    """A hole reads as zeros, and what is written beyond it stays where it is."""
    working = bench.start()
    node = put_file(working, b"f", b"start")
    if not _expects(bench, Capability.SPARSE, lambda: working.set_attributes(node, AttributeChange(size=SPARSE_SIZE))):
        return
    working.set_attributes(node, AttributeChange(size=SPARSE_SIZE))
    write_node(working, node, b"end", SPARSE_SIZE, WRITING)
    for tree in (working, bench.engine.view(bench.commit().id)):
        handle = tree.open(find(tree, b"f").node)
        parts = (handle.read(0, 6), handle.read(SPARSE_SIZE // 2, 4), handle.read(SPARSE_SIZE - 1, 9))
        handle.close()
        same(parts, (b"start\0", b"\0" * 4, b"\0end"), "a sparse file")


def descriptors(bench: Bench) -> None:
    """A descriptor reads the file as it is now, before and after the file is written."""
    working, _ = bench.grow({b"f": b"committed"})
    node = find(working, b"f").node
    handle = working.open(node)
    if _expects(bench, Capability.DESCRIPTORS, handle.fileno):
        same(os.pread(handle.fileno(), 20, 0), b"committed", "an inherited file")
        write_node(working, node, b"C", 0, WRITING)
        same(os.pread(handle.fileno(), 20, 0), b"Committed", "a written file")
    handle.close()


def durability(bench: Bench) -> None:
    """Everything is there after closing and opening again; without it, nothing is."""
    working, first = bench.grow({b"d/f": b"1"})
    put_file(working, b"d/f", b"unsaved")
    move(working, b"d", b"e")
    bench.engine.create_snapshot("v1", first, 5)
    seen, version = see_tree(working), working.version()
    bench.reopen()
    if not bench.declares(Capability.DURABLE):
        same(list(bench.engine.branches()), [], "branches of an engine that keeps nothing")
        return
    after = bench.engine.working("main")
    same(see_tree(after), seen, "the working layer")
    same(after.version() >= version, True, "the version did not go back")
    same([each.origin for each in after.changes()], [b"d/f"], "the recorded rename")
    same(bench.engine.resolve("v1"), first, "the snapshot")
    same(see_files(bench.engine.view(first)), {b"d/f": b"1"}, "the commit")
    put_file(after, b"more", b"2")
    same(see_files(bench.engine.view(bench.commit().id)), {b"e/f": b"unsaved", b"more": b"2"}, "the next commit")


def plain_git(bench: Bench) -> None:
    """An export is a repository that git checks and clones, with trailers it reads; taking it over gives the same tree."""
    working, first = bench.grow({b"d/f": b"1\n", b"run": b"#!/bin/sh\n", b"\xff": b"bytes"})
    working.set_attributes(find(working, b"run").node, AttributeChange(mode=0o755))
    working.symlink(ROOT, b"link", b"d/f")
    head = bench.commit().id
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "exported.git"
        calls = (
            lambda: bench.engine.export_git("main", target, _silent),
            lambda: bench.engine.import_git(str(target), "taken", 5, _silent),
        )
        if not _expects(bench, Capability.GIT_EXPORT, *calls):
            return
        same(bench.engine.export_git("main", target, _silent) >= 2, True, "the exported commits")
        _git(target, "fsck", "--strict", "--no-dangling")
        trailers = _git(target, "log", "-1", "--format=%(trailers:key=Nas-Principal,valueonly)", "main")
        same(trailers.strip(), b"agent:conformance", "the trailer that git reads")
        _git(target, "clone", "--quiet", str(target), str(Path(folder) / "clone"))
        same((Path(folder) / "clone/d/f").read_bytes(), b"1\n", "a cloned file")
        report = bench.engine.import_git(str(target), "taken", bench.now(), _silent)
    same(see_tree(bench.engine.view(report.commit)), see_tree(bench.engine.view(head)), "the tree taken over")
    same(len(list(bench.engine.log(report.commit))), len(list(bench.engine.log(head))), "the history taken over")
    same(bench.engine.is_ancestor(first, head), True, "the history")


def _git(repository: Path, *arguments: str) -> bytes:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    command = ["git", "-c", f"safe.directory={repository}", "--git-dir", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60, env=environment)
    same((done.returncode, done.stderr[-500:] if done.returncode else b""), (0, b""), f"git {json.dumps(arguments)}")
    return done.stdout


class _Hides:
    """Keeps every path but those called ``hidden``."""

    def keeps(self, directory: bytes, name: bytes) -> bool:
        """Tell whether a file is kept."""
        return name != b"hidden"

    def keeps_all(self, directory: bytes) -> bool:
        """Say that nothing is known of a directory."""
        return False

    def keeps_none(self, directory: bytes) -> bool:
        """Say that nothing is known of a directory."""
        return False


def git_exchange(bench: Bench) -> None:
    """Git clones what is kept of a history; what it sends back becomes part of the branch, and what it did not see stays."""
    _, head = bench.grow({b"d/f": b"1\n", b"d/hidden": b"2\n"})
    with tempfile.TemporaryDirectory() as folder:
        if not _expects(bench, Capability.GIT_EXCHANGE, lambda: bench.engine.exchange(Path(folder))):
            return
        exchange, clone = bench.engine.exchange(Path(folder) / "work"), Path(folder) / "clone"
        exchange.publish()
        same(exchange.packed([head]), True, "what was published")
        shown = exchange.show({"refs/heads/main": head}, "refs/heads/main", Selection("hides", _Hides()))
        _git(shown.folder, "clone", "--quiet", "--no-local", str(shown.folder), str(clone))
        same(sorted(path.name for path in (clone / "d").iterdir()), ["f"], "the names that were cloned")
        sent = _change(clone)
        quarantine = exchange.open_quarantine(shown)
        pack = subprocess.run(
            ["git", f"--git-dir={clone / '.git'}", "pack-objects", "--revs", "--stdout", "--quiet"],
            input=f"{sent}\n^{shown.refs['refs/heads/main']}\n".encode(),
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        subprocess.run(
            ["git", f"--git-dir={quarantine}", "index-pack", "--stdin", "--fix-thin"], input=pack, capture_output=True, check=True
        )
        arrival = exchange.examine(quarantine.name, shown, "main", sent, Limits())
        same([(each.path, each.entry is None) for each in arrival.introduced], [(b"d/f", False)], "what the push touches")
        accepted = arrival.accept({})
        exchange.discard(quarantine.name)
        same(bench.engine.branch("main").head, accepted, "the branch after the push")
        same(see_files(bench.engine.view(accepted)), {b"d/f": b"3\n", b"d/hidden": b"2\n"}, "the files after the push")
        again = exchange.show({"refs/heads/main": accepted}, "refs/heads/main", Selection("hides", _Hides()))
        same(again.refs["refs/heads/main"], sent, "the id that the sender sees")
        for each in (shown, again):
            each.close()


def _change(clone: Path) -> str:
    """Change the one file of a clone and return the commit."""
    (clone / "d/f").write_bytes(b"3\n")
    who = ("-c", "user.name=conformance", "-c", "user.email=conformance@example.invalid")
    _git(clone / ".git", f"--work-tree={clone}", *who, "commit", "--quiet", "--all", "--message=change")
    return _git(clone / ".git", "rev-parse", "HEAD").decode().strip()


def directories_in_and_out(bench: Bench) -> None:
    """Every engine imports and exports directories: links as they are, special files and ``.git`` passed over."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in", Path(folder) / "out"
        (source / "d/hollow").mkdir(parents=True)
        (source / ".git").mkdir()
        (source / ".git/config").write_bytes(b"theirs")
        (source / "d/f").write_bytes(b"1" * 100_000)
        (source / "run").write_bytes(b"#!")
        (source / "run").chmod(0o755)
        (source / "out").symlink_to("/etc/passwd")
        os.mkfifo(source / "pipe")
        report = bench.engine.import_directory(source, "main", bench.note("import"), _silent)
        same((report.files, report.bytes), (3, 100_000 + 2 + len("/etc/passwd")), "what came in")
        same(sorted(report.passed_over), [b".git", b"pipe"], "what was passed over")
        same(bench.engine.export_directory(report.commit, target, _silent), 3, "the files that went out")
        same(sorted(path.name for path in target.rglob("*")), ["d", "f", "hollow", "out", "run"], "the exported names")
        same((os.readlink(target / "out"), (target / "run").stat().st_mode & 0o111 != 0), ("/etc/passwd", True), "link and mode")
        with refused(Exists):
            bench.engine.export_directory(report.commit, target, _silent)
        with refused(Exists):
            bench.engine.import_directory(source, "main", bench.note(), _silent)
        with refused(ImportFailed):
            bench.engine.import_directory(source / "missing", "other", bench.note(), _silent)
        same([branch.name for branch in bench.engine.branches()], ["main"], "branches after refusals")


CHECKS: tuple[Check, ...] = (
    extended_attributes,
    hard_links,
    names_part_when_a_commit_tells_them_apart,
    sparse_files,
    descriptors,
    durability,
    plain_git,
    git_exchange,
    directories_in_and_out,
)
"""Each capability, and the ways in and out that every engine has."""

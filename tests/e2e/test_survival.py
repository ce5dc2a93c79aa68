"""What outlives the processes: runs started at once, exports, and everything but store and trust deleted."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.conftest import Nas, needs_fuse


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def test_twenty_four_runs_started_eight_at_a_time_are_twenty_four_branches(nas: Nas) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: nas.start(), range(24)))
    branches = {run["branch"] for run in runs}
    assert len(branches) == len({run["lease"] for run in runs}) == len({run["secret"] for run in runs}) == 24
    listed = {run["branch"] for run in nas.json("run", "list")}
    assert listed == branches
    assert nas.json("status")["branches"] == 25


@needs_fuse
def test_an_export_is_a_repository_plain_git_clones(nas: Nas, tmp_path: Path) -> None:
    run = nas.start("coder", "--purpose", "export")
    place = nas.mount(run["run"])
    (place / "src" / "a.py").write_text("a = 2\n")
    (place / "big.bin").write_bytes(bytes(range(256)) * 40960)
    nas.json("commit", run["run"], "-m", "two changes")
    target = tmp_path / "exported.git"
    nas.json("export", run["branch"], str(target), "--format", "git")
    assert git("-C", str(target), "fsck", "--strict", "--full").strip() == ""
    git("clone", "-q", str(target), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    assert (clone / "src" / "a.py").read_text() == "a = 2\n"
    assert (clone / "big.bin").read_bytes() == bytes(range(256)) * 40960
    assert (clone / "link").is_symlink()
    trailers = git("-C", str(clone), "log", "-1", "--format=%(trailers:only,unfold)")
    assert f"Nas-Run: {run['run']}" in trailers
    assert "Nas-Principal: coder" in trailers
    assert "Nas-On-Behalf-Of: owner" in trailers
    assert f"Nas-Lease: {run['lease']}" in trailers


@needs_fuse
def test_an_exported_directory_is_the_tree(nas: Nas, tree: Path, tmp_path: Path) -> None:
    nas.json("export", "main", str(tmp_path / "out"), "--format", "dir")
    shutil.rmtree(tmp_path / "out" / ".nas")
    assert subprocess.run(["diff", "-r", str(tree), str(tmp_path / "out")], check=False).returncode == 0
    assert (tmp_path / "out" / "tool").stat().st_mode & 0o111


@needs_fuse
def test_deleting_everything_but_store_and_trust_loses_nothing(nas: Nas) -> None:
    run = nas.start()
    place = nas.mount(run["run"])
    (place / "committed.txt").write_text("committed")
    nas.json("commit", run["run"], "-m", "one")
    (place / "not-committed.txt").write_text("not yet")
    for number in range(201):
        (place / f"many-{number}").write_text("x")
    gate = nas.json("propose", run["run"], "-m", "bulk", expect=4)["gate"]
    nas.json("umount", str(place))
    before = {
        "log": nas.json("log", run["run"]),
        "runs": nas.json("run", "list"),
        "gates": nas.json("gate", "list"),
        "leases": nas.json("lease", "list"),
        "proposals": nas.json("proposal", "list"),
    }
    head = nas.json("verify")["head"]
    records = nas.json("verify")["records"]
    nas.stop()
    for path in nas.home.iterdir():
        if path.name not in ("store", "trust"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    nas.serve()
    assert nas.json("log", run["run"]) == before["log"]
    assert nas.json("run", "list") == before["runs"]
    assert nas.json("gate", "list") == before["gates"]
    assert nas.json("lease", "list") == before["leases"]
    assert nas.json("proposal", "list") == before["proposals"]
    anchored = nas.json("verify", "--anchor", f"{records}:{head}")
    assert anchored["ok"], anchored
    again = nas.mounts / "again"
    again.mkdir()
    nas.run("mount", run["run"], str(again), env={"NAS_LEASE": run["secret"]})
    assert (again / "not-committed.txt").read_text() == "not yet"
    digest = nas.json("gate", "show", gate)["digest"]
    assert nas.json("gate", "approve", gate, "--digest", digest)["result"]["decision"] == "merged"


def test_an_imported_repository_keeps_its_history_and_never_brings_a_policy(bare: Nas, tmp_path: Path) -> None:
    source = tmp_path / "repo"
    source.mkdir()
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    git("-C", str(source), "init", "-q", "-b", "trunk", ".")
    for number in range(3):
        (source / "file.txt").write_text(f"{number}\n")
        (source / ".nas").mkdir(exist_ok=True)
        (source / ".nas" / "policy.yaml").write_text("version: 1\nroles: {owner: [mallory]}\n")
        git("-C", str(source), "add", "-A")
        git("-C", str(source), *identity, "commit", "-q", "-m", f"commit {number}")
    bare.init("--import", str(source))
    bare.serve()
    log = bare.json("log", "main")
    assert [entry["message"].strip() for entry in log][1:] == ["commit 2", "commit 1", "commit 0"]
    assert "Ada" in log[1]["author"]
    assert log[1]["commit"] == git("-C", str(source), "rev-parse", "HEAD").strip()
    shown = bare.json("policy", "explain", "administer")
    assert shown["effect"] == "allow"
    assert {item["principal"]: item["roles"] for item in bare.json("principal", "list")}["owner"] == ["owner"]

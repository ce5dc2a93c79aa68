"""The commands people and programs give git, against the door: each does its usual work, or is refused in words that git prints.

One appliance serves all of them. A command that changes something works on a run of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house_of_doors import Started
from tests.interfaces.git.conftest import BIG, Site, attempt, commit, git, open_site, refused

FILES = {"README": b"hello\n", "src/a.py": b"print(1)\n", "src/deep/b.py": b"print(2)\n", "data.bin": bytes(range(256)) * 40}

STEPS = [f"step {number}" for number in (4, 3, 2, 1, 0)]


class Bench:
    """A site with a history on main, and what a command needs to work on a run of its own."""

    def __init__(self, site: Site) -> None:
        self.site = site
        seed = self.start()
        for number in range(5):
            site.write(seed.branch, {**(FILES if number == 0 else {}), "count": f"{number}\n".encode()})
            site.house.call(site.house.owner, "commit.make", {"branch": seed.branch, "message": f"step {number}"})
        self.merge(seed)
        main = site.house.house.appliance.engine.branch("main").head
        site.house.house.appliance.engine.create_snapshot("v1", main, site.house.house.appliance.now())
        self.base = main
        self.commits = sum(1 for _ in site.house.house.appliance.engine.log(main))

    def start(self, **wanted: object) -> Started:
        return self.site.house.start_run(**wanted)  # type: ignore[arg-type]

    def merge(self, run: Started) -> None:
        done = self.site.house.call(run.secret, "proposal.make", {"run": run.run, "message": "merge it"})
        assert done["state"] == "merged", done

    def clone(self, folder: Path, run: Started, *options: str, branch: str | None = None, name: str = "clone", **extra: str) -> Path:
        target = folder / name
        git(folder, "clone", "--quiet", *options, self.address(run, branch), os.fspath(target), **extra)
        return target

    def address(self, run: Started, branch: str | None = None) -> str:
        return self.site.address(run.secret, branch or run.branch, run.lease)

    def head(self, branch: str) -> str:
        return self.site.house.house.appliance.engine.branch(branch).head


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with open_site(tmp_path_factory.mktemp("git")) as site:
        yield Bench(site)


def objects_of(clone: Path) -> str:
    return git(clone, "cat-file", "--batch-all-objects", "--batch-check")


# -- reading ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_clone_by_each_version_of_the_protocol(bench: Bench, tmp_path: Path, version: str) -> None:
    clone = bench.clone(tmp_path, bench.start(), "-c", f"protocol.version={version}")
    assert git(clone, "fsck", "--full", "--strict") == ""
    assert (clone / "src/deep/b.py").read_bytes() == FILES["src/deep/b.py"]
    assert [line for line in git(clone, "log", "--format=%s").splitlines() if line.startswith("step")] == STEPS


@pytest.mark.parametrize("version", ["0", "2"])
def test_ls_remote_names_what_the_caller_sees_and_nothing_else(bench: Bench, tmp_path: Path, version: str) -> None:
    run, _ = bench.start(), bench.start()
    listed = git(tmp_path, "-c", f"protocol.version={version}", "ls-remote", bench.address(run))
    assert {line.split("\t")[1] for line in listed.splitlines()} == {"HEAD", "refs/heads/main", f"refs/heads/{run.branch}", "refs/tags/v1"}


def test_ls_remote_tells_which_branch_a_clone_checks_out(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    assert git(tmp_path, "ls-remote", "--symref", bench.address(run), "HEAD").startswith(f"ref: refs/heads/{run.branch}\tHEAD")
    assert git(tmp_path, "ls-remote", "--symref", bench.address(run, "main"), "HEAD").startswith("ref: refs/heads/main\tHEAD")


def test_a_run_is_cloned_by_its_id_too(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    assert git(bench.clone(tmp_path, run, branch=run.run), "branch", "--show-current") == run.branch


def test_clone_with_a_depth_then_deeper_then_whole(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start(), "--depth=1")
    assert git(clone, "rev-list", "--count", "HEAD") == "1"
    git(clone, "fetch", "--quiet", "--deepen=1")
    assert int(git(clone, "rev-list", "--count", "HEAD")) > 1
    git(clone, "fetch", "--quiet", "--unshallow")
    assert int(git(clone, "rev-list", "--count", "HEAD")) == bench.commits
    assert git(clone, "fsck") == ""


def test_clone_since_a_time(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start(), "--shallow-since=2001-01-01")
    assert int(git(clone, "rev-list", "--count", "HEAD")) == bench.commits


def test_clone_without_a_commit_and_what_is_before_it(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    bench.site.write(run.branch, {"later": b"1"})
    clone = bench.clone(tmp_path, run, "--shallow-exclude=v1")
    assert git(clone, "rev-list", "--count", "HEAD") == "1"


def test_clone_of_a_single_branch(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start(), "--single-branch", "--branch=main", "--no-tags")
    assert git(clone, "for-each-ref", "--format=%(refname)", "refs/remotes") == "refs/remotes/origin/main"


def test_clone_of_a_snapshot(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start(), "--quiet", "--branch=v1")
    assert git(clone, "rev-parse", "HEAD") == bench.base


@pytest.mark.parametrize("wanted", ["blob:none", "blob:limit=1k", "tree:0"])
@pytest.mark.parametrize("version", ["0", "2"])
def test_partial_clone_fetches_what_it_lacks_when_it_is_needed(bench: Bench, tmp_path: Path, wanted: str, version: str) -> None:
    options = ("-c", f"protocol.version={version}", "--no-checkout", f"--filter={wanted}")
    clone = bench.clone(tmp_path, bench.start(), *options)
    missing = git(clone, "rev-list", "--objects", "--all", "--missing=print").count("\n?")
    assert missing > 0
    git(clone, "checkout", "--quiet", "HEAD")
    assert (clone / "data.bin").read_bytes() == FILES["data.bin"]


def test_sparse_checkout_of_a_partial_clone(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start(), "--filter=blob:none", "--sparse")
    git(clone, "sparse-checkout", "set", "src/deep")
    assert (clone / "src/deep/b.py").exists()
    git(clone, "sparse-checkout", "disable")
    assert (clone / "data.bin").read_bytes() == FILES["data.bin"]


def test_fetch_of_a_commit_by_its_id(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    older = git(bench.clone(tmp_path, run), "rev-parse", "HEAD^2~2")
    git(tmp_path, "init", "--quiet", "bare")
    git(tmp_path / "bare", "fetch", "--quiet", "--depth=1", bench.address(run), older)
    assert git(tmp_path / "bare", "rev-parse", "FETCH_HEAD") == older


def test_fetch_brings_only_what_is_new(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    bench.site.write(run.branch, {"new": b"1"})
    before = set(objects_of(clone).splitlines())
    git(clone, "fetch", "--quiet")
    assert len(set(objects_of(clone).splitlines()) - before) == 3
    git(clone, "merge", "--quiet", "--ff-only", "origin/HEAD")
    assert (clone / "new").read_bytes() == b"1"


def test_fetch_that_negotiates_from_a_tip(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    bench.site.write(run.branch, {"new": b"1"})
    git(clone, "fetch", "--quiet", "--negotiation-tip=refs/remotes/origin/main", "origin")
    assert git(clone, "cat-file", "-t", f"origin/{run.branch}:new") == "blob"


def test_pull_with_rebase(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    bench.site.write(run.branch, {"theirs": b"1"})
    commit(clone, {"ours": b"2"})
    git(clone, "pull", "--quiet", "--rebase")
    assert sorted(path.name for path in clone.iterdir() if path.name in ("ours", "theirs")) == ["ours", "theirs"]


def test_fetch_of_notes_finds_none(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start())
    assert "couldn't find remote ref" in refused(clone, "fetch", "origin", "refs/notes/commits").lower()


def test_mirror_and_prune(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    mirror = bench.clone(tmp_path, run, "--mirror")
    git(mirror, "update-ref", "refs/heads/gone", "HEAD")
    git(mirror, "remote", "update", "--prune")
    assert git(mirror, "for-each-ref", "--format=%(refname)").splitlines() == [
        f"refs/heads/{run.branch}",
        "refs/heads/main",
        "refs/tags/v1",
    ]


def test_remote_prune_and_show(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start())
    git(clone, "update-ref", "refs/remotes/origin/gone", "HEAD")
    git(clone, "remote", "prune", "origin")
    assert "gone" not in git(clone, "branch", "--remotes")
    assert "HEAD branch" in git(clone, "remote", "show", "origin")


def test_a_bundle_and_an_archive_come_from_a_clone(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone(tmp_path, bench.start(), "--bare")
    git(clone, "bundle", "create", "--quiet", "../all.bundle", "--all")
    assert git(clone, "bundle", "verify", "--quiet", "../all.bundle") == ""


def test_submodule_whose_address_is_a_branch(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    git(clone, "submodule", "--quiet", "add", bench.address(run, "main"), "vendor/main")
    git(clone, "config", "--file", ".gitmodules", "submodule.vendor/main.url", f"{bench.site.url}/git/main.git")
    git(clone, "add", "-A")
    git(clone, "commit", "--quiet", "-m", "submodule")
    git(clone, "push", "--quiet")
    assert bench.head(run.branch) == git(clone, "rev-parse", "HEAD")


# -- writing ------------------------------------------------------------------------------------------------------------


def test_push_to_the_runs_own_branch(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    pushed = commit(clone, {"new/file": b"1", "README": None})
    assert f"HEAD -> {run.branch}" in attempt(clone, "push", "origin", "HEAD").stderr
    assert bench.head(run.branch) == pushed


def test_push_by_version_1(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run, "-c", "protocol.version=1")
    pushed = commit(clone, {"new": b"1"})
    git(clone, "push", "--quiet", "origin", "HEAD")
    assert bench.head(run.branch) == pushed


def test_push_that_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    assert "Everything up-to-date" in attempt(bench.clone(tmp_path, bench.start()), "push").stderr


def test_push_to_main_is_refused_with_what_to_do(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    commit(clone, {"new": b"1"})
    said = refused(clone, "push", "origin", "HEAD:main")
    assert f"! [remote rejected] HEAD -> main (main moves by merges only: propose the run (nas propose {run.run}))" in said
    assert bench.head("main") == bench.base


@pytest.mark.parametrize("target", ["refs/heads/other", "refs/tags/v2", "refs/notes/commits", "refs/heads/coder/other"])
def test_push_to_anything_else_is_refused(bench: Bench, tmp_path: Path, target: str) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    commit(clone, {"new": b"1"})
    said = refused(clone, "push", "origin", f"HEAD:{target}")
    assert f"only the run's own branch takes a push: refs/heads/{run.branch}" in said


def test_push_to_the_branch_of_another_run_says_the_same_as_to_none(bench: Bench, tmp_path: Path) -> None:
    run, other = bench.start(), bench.start()
    clone = bench.clone(tmp_path, run)
    commit(clone, {"new": b"1"})
    there = refused(clone, "push", "origin", f"HEAD:refs/heads/{other.branch}").replace(other.branch, "X")
    nowhere = refused(clone, "push", "origin", f"HEAD:refs/heads/{other.branch}x").replace(f"{other.branch}x", "X")
    assert there == nowhere


def test_push_that_is_behind_is_refused_until_it_is_not(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    bench.site.write(run.branch, {"theirs": b"1"})
    commit(clone, {"ours": b"2"})
    assert "rejected" in refused(clone, "push")
    git(clone, "pull", "--quiet", "--no-rebase", "--no-edit")
    git(clone, "push", "--quiet")
    assert bench.head(run.branch) == git(clone, "rev-parse", "HEAD")


def test_a_forced_push_that_loses_commits_is_refused(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    kept = commit(clone, {"new": b"1"})
    git(clone, "push", "--quiet")
    git(clone, "commit", "--quiet", "--amend", "-m", "another")
    assert "remote rejected" in refused(clone, "push", "--force")
    assert bench.head(run.branch) == kept


def test_force_with_lease(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    pushed = commit(clone, {"new": b"1"})
    git(clone, "push", "--quiet", "--force-with-lease", "origin", "HEAD")
    assert bench.head(run.branch) == pushed
    bench.site.write(run.branch, {"theirs": b"1"})
    git(clone, "ls-remote", "--quiet", "origin")
    commit(clone, {"more": b"1"})
    assert "stale info" in refused(clone, "push", "--force-with-lease", "origin", "HEAD")


def test_an_atomic_push_is_all_or_nothing(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    before = bench.head(run.branch)
    commit(clone, {"new": b"1"})
    said = refused(clone, "push", "--atomic", "origin", f"HEAD:{run.branch}", "HEAD:main")
    assert said.count("[remote rejected]") == 2
    assert bench.head(run.branch) == before
    said = refused(clone, "push", "origin", f"HEAD:{run.branch}", "HEAD:main")
    assert said.count("[remote rejected]") == 1
    assert bench.head(run.branch) != before


def test_push_options_are_in_the_record(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    commit(clone, {"new": b"1"})
    git(clone, "push", "--quiet", "--push-option=ticket=7", "--push-option=why not")
    records = [record for record in bench.site.house.house.trust.records(run=run.run) if record.kind == "push"]
    assert records[0].body["options"] == ["ticket=7", "why not"]


def test_deleting_is_refused(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    said = refused(bench.clone(tmp_path, run), "push", "origin", "--delete", run.branch)
    assert "nothing is deleted by a push: end the run with `nas run end`" in said


def test_a_mirror_push_changes_its_own_branch_and_deletes_nothing(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    mirror = bench.clone(tmp_path, run, "--mirror")
    git(mirror, "update-ref", "refs/heads/extra", "HEAD")
    said = refused(mirror, "push", "--mirror")
    assert "extra" in said
    assert bench.head(run.branch) == bench.base


def test_a_large_push_is_streamed(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run, "-c", "http.postBuffer=65536", "-c", "core.compression=0")
    pushed = commit(clone, {"noise": os.urandom(1 << 20) * 30})
    git(clone, "push", "--quiet")
    assert bench.head(run.branch) == pushed
    again = bench.clone(tmp_path, run, name="again")
    assert (again / "noise").read_bytes() == (clone / "noise").read_bytes()


def test_a_push_of_many_files_and_commits(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    for number in range(5):
        pushed = commit(clone, {f"many/{number}/{file}": f"{file}".encode() for file in range(40)})
    git(clone, "push", "--quiet")
    assert bench.head(run.branch) == pushed


def test_a_push_from_a_shallow_clone(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run, "--depth=1")
    pushed = commit(clone, {"new": b"1"})
    git(clone, "push", "--quiet", "origin", "HEAD")
    assert bench.head(run.branch) == pushed


def test_a_push_from_a_partial_clone(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run, "--filter=blob:none")
    pushed = commit(clone, {"new": b"1", "README": b"other\n"})
    git(clone, "push", "--quiet", "origin", "HEAD")
    assert bench.head(run.branch) == pushed


def test_revert_and_cherry_pick_bring_back_what_was_there(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    commit(clone, {"README": None})
    git(clone, "push", "--quiet")
    git(clone, "revert", "--no-edit", "HEAD")
    git(clone, "push", "--quiet")
    assert bench.head(run.branch) == git(clone, "rev-parse", "HEAD")


def test_merging_main_into_the_run(bench: Bench, tmp_path: Path) -> None:
    run, other = bench.start(paths=("src/**", "docs/**")), bench.start()
    clone = bench.clone(tmp_path, run)
    bench.site.write(other.branch, {f"other-{other.run}": b"1"})
    bench.merge(other)
    commit(clone, {"src/mine": b"1"})
    git(clone, "pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main")
    git(clone, "push", "--quiet", "origin", "HEAD")
    bench.base = bench.head("main")
    again = bench.clone(tmp_path, run, name="again")
    assert git(again, "rev-parse", "HEAD") == git(clone, "rev-parse", "HEAD")
    assert {path.name for path in again.iterdir()} <= {".git", "src", "docs"}


def test_a_push_is_on_the_branch_as_files_at_once(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    control = bench.site.house.control
    workspace = control.workspace(control.authenticate(run.secret), run.branch)
    node = workspace.lookup(1, b"README").node
    clone = bench.clone(tmp_path, run)
    commit(clone, {"README": b"pushed\n", "new": b"1"})
    git(clone, "push", "--quiet")
    again = workspace.lookup(1, b"README")
    assert again.node == node
    assert again.size == 7
    assert workspace.lookup(1, b"new").size == 1
    workspace.close()


# -- other clients ------------------------------------------------------------------------------------------------------


def test_dulwich_clones(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    program = (
        "import sys; from dulwich import porcelain; "
        "porcelain.clone(sys.argv[1], sys.argv[2], username=sys.argv[3], password=sys.stdin.read(), errstream=open('/dev/null', 'wb'))"
    )
    url = f"{bench.site.url}/git/{run.branch}.git"
    arguments = [sys.executable, "-W", "ignore", "-c", program, url, os.fspath(tmp_path / "clone"), run.lease]
    subprocess.run(arguments, input=run.secret, text=True, check=True, timeout=60)
    assert (tmp_path / "clone/src/a.py").read_bytes() == FILES["src/a.py"]


def lfs_clone(bench: Bench, folder: Path, run: Started, name: str = "clone", **extra: str) -> Path:
    clone = bench.clone(folder, run, name=name, GIT_LFS_SKIP_SMUDGE="1", **extra)
    git(clone, "lfs", "install", "--local", "--skip-smudge")
    git(clone, "config", "lfs.locksverify", "true")
    return clone


def test_lfs_track_push_and_pull(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = lfs_clone(bench, tmp_path, run)
    git(clone, "lfs", "track", "*.big")
    content = os.urandom(3 << 20)
    commit(clone, {"a.big": content, "b.big": b"small"})
    git(clone, "push", "--quiet", "origin", "HEAD")
    control = bench.site.house.control
    workspace = control.workspace(control.authenticate(run.secret), run.branch)
    assert workspace.lookup(1, b"a.big").size == len(content)
    workspace.close()
    again = lfs_clone(bench, tmp_path, run, "again")
    assert (again / "a.big").stat().st_size < 200
    git(again, "lfs", "pull")
    assert (again / "a.big").read_bytes() == content
    assert (again / "b.big").read_bytes() == b"small"
    assert git(again, "status", "--porcelain") == ""


def test_lfs_gives_what_another_door_wrote(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    bench.site.write(run.branch, {"model.bin": BIG})
    clone = lfs_clone(bench, tmp_path, run)
    assert (clone / "model.bin").read_bytes().startswith(b"version https://git-lfs.github.com/spec/v1\n")
    answer = subprocess.run(
        ["curl", "-sf", "-u", f"{run.lease}:{run.secret}", f"{bench.site.url}/git/{run.branch}.git/info/attributes"],
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert answer.stdout == b'"/model.bin" filter=lfs diff=lfs merge=lfs -text\n'
    (clone / ".git/info/attributes").write_bytes(answer.stdout)
    git(clone, "lfs", "pull")
    assert (clone / "model.bin").read_bytes() == BIG
    assert git(clone, "status", "--porcelain") == ""


def test_lfs_locks(bench: Bench, tmp_path: Path) -> None:
    run, other = bench.start(), bench.start()
    clone, theirs = lfs_clone(bench, tmp_path, run), lfs_clone(bench, tmp_path, other, "theirs")
    git(clone, "lfs", "lock", "README")
    assert "README" in git(theirs, "lfs", "locks")
    assert "Locking README failed" in refused(theirs, "lfs", "lock", "README")
    assert "README" in refused(theirs, "lfs", "unlock", "README")
    git(clone, "lfs", "unlock", "README")
    assert git(theirs, "lfs", "locks") == ""


def test_lfs_migrate_then_push(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = lfs_clone(bench, tmp_path, run)
    commit(clone, {"m.iso": b"x" * 5000})
    git(clone, "lfs", "migrate", "import", "--include=*.iso", "--yes", "--exclude-ref=refs/remotes/origin/main")
    git(clone, "push", "--quiet", "origin", "HEAD")
    again = lfs_clone(bench, tmp_path, run, "again")
    git(again, "lfs", "pull")
    assert (again / "m.iso").read_bytes() == b"x" * 5000


def test_a_pointer_without_its_content_is_refused(bench: Bench, tmp_path: Path) -> None:
    run = bench.start()
    clone = bench.clone(tmp_path, run)
    commit(clone, {"p": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 7\n"})
    assert "was not uploaded" in refused(clone, "push")

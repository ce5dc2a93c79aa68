"""What a caller may not see: no reference, no object, no name, and the same words as for what never existed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house_of_doors import Started
from tests.interfaces.git.conftest import Site, attempt, commit, git, refused
from trust.policy import default_policy


@pytest.fixture
def narrow(site: Site) -> Started:
    """A run that may see `src` and nothing else, on a branch that holds more."""
    run = site.house.start_run(paths=("src/**",))
    site.write(run.branch, {"src/a.py": b"print(1)\n", "private/plan.txt": b"the plan\n", "notes": b"mine\n"})
    return run


def everything_in(clone: Path) -> str:
    return git(clone, "cat-file", "--batch-all-objects", "--batch")


def test_a_narrow_lease_clones_what_it_may_read_with_its_whole_history(site: Site, narrow: Started) -> None:
    clone = site.clone(narrow.secret, narrow.branch, user=narrow.lease)
    assert {path.partition("/")[0] for path in git(clone, "ls-files").split()} == {"src"}
    assert git(clone, "fsck", "--full", "--strict") == ""
    for secret in ("the plan", "plan.txt", "private", "notes", "mine"):
        assert secret not in everything_in(clone)


def test_a_narrow_lease_pushes_and_what_it_does_not_see_stays(site: Site, narrow: Started) -> None:
    clone = site.clone(narrow.secret, narrow.branch, user=narrow.lease)
    pushed = commit(clone, {"src/a.py": None, "src/b.py": b"print(2)\n"})
    git(clone, "push", "--quiet")
    assert git(clone, "ls-remote", "origin", "HEAD").split()[0] == pushed
    again = site.clone(narrow.secret, narrow.branch, user=narrow.lease, name="again")
    assert git(again, "rev-parse", "HEAD") == pushed
    whole = site.clone(site.house.owner, narrow.branch, user="owner", name="whole")
    assert (whole / "private/plan.txt").read_bytes() == b"the plan\n"
    assert not (whole / "src/a.py").exists()


def test_a_push_outside_of_the_lease_is_refused_with_the_path(site: Site, narrow: Started) -> None:
    clone = site.clone(narrow.secret, narrow.branch, user=narrow.lease)
    commit(clone, {"private/mine": b"1"})
    assert "write private/mine: the lease does not reach private/mine" in refused(clone, "push")


def test_a_path_that_was_written_and_removed_again_is_decided_too(site: Site, narrow: Started) -> None:
    clone = site.clone(narrow.secret, narrow.branch, user=narrow.lease)
    commit(clone, {"private/mine": b"1"})
    commit(clone, {"private/mine": None})
    assert "private/mine" in refused(clone, "push")


def test_credential_files_stay_out_of_every_copy(site: Site, run: Started) -> None:
    site.write(run.branch, {"a": b"1", "deploy/prod-key.pem": b"PRIVATE"})
    clone = site.clone(run.secret, run.branch, user=run.lease)
    assert (clone / "a").exists()
    assert "PRIVATE" not in everything_in(clone)
    assert "prod-key" not in everything_in(clone)
    commit(clone, {".env": b"TOKEN=1"})
    assert "private keys and credential files stay out of reach" in refused(clone, "push")


def test_a_lease_without_delete_cannot_push_a_deletion(site: Site) -> None:
    run = site.house.start_run(actions=["list", "read", "write"])
    site.write(run.branch, {"a": b"1"})
    clone = site.clone(run.secret, run.branch, user=run.lease)
    commit(clone, {"a": None})
    assert "delete a: the lease allows list, read, write, not delete" in refused(clone, "push")


def test_a_reading_lease_fetches_and_cannot_push(site: Site) -> None:
    run = site.house.start_run(actions=["list", "read"])
    clone = site.clone(run.secret, run.branch, user=run.lease)
    commit(clone, {"a": b"1"})
    assert "write a: the lease allows list, read, not write" in refused(clone, "push")
    assert [(body["action"], body["path"]) for body in site.house.house.records("denied")] == [("write", "a")]


@pytest.mark.parametrize("version", ["0", "2"])
def test_an_object_of_another_run_is_fetched_by_nobody_else(site: Site, run: Started, version: str) -> None:
    other = site.house.start_run()
    site.write(other.branch, {"theirs": b"secret of the other run\n"})
    theirs = site.clone(other.secret, other.branch, user=other.lease, name="theirs")
    ids = [git(theirs, "rev-parse", name) for name in ("HEAD", "HEAD^{tree}", "HEAD:theirs")]
    mine = site.clone(run.secret, run.branch, user=run.lease)
    for there, nowhere in zip(ids, ("1" * 40, "2" * 40, "3" * 40), strict=True):
        said, unknown = (attempt(mine, "-c", f"protocol.version={version}", "fetch", "origin", each) for each in (there, nowhere))
        assert said.returncode == unknown.returncode != 0
        assert said.stderr.replace(there, "X") == unknown.stderr.replace(nowhere, "X")
        assert f"not our ref {there}" in said.stderr


def test_a_partial_clone_cannot_ask_for_what_it_does_not_see(site: Site, narrow: Started) -> None:
    clone = site.clone(narrow.secret, narrow.branch, "--filter=blob:none", "--no-checkout", user=narrow.lease)
    hidden = git(site.folder, "hash-object", "--stdin", given=b"the plan\n")
    assert "not our ref" in refused(clone, "cat-file", "-p", hidden)
    git(clone, "checkout", "--quiet", "HEAD")
    assert (clone / "src/a.py").exists()


def test_a_filter_cannot_name_an_object(site: Site, run: Started) -> None:
    spec = git(site.folder, "hash-object", "--stdin", given=b"src\n")
    said = refused(site.folder, "clone", f"--filter=sparse:oid={spec}", site.address(run.secret, run.branch, run.lease), "out")
    assert "filter 'sparse:oid' not supported" in said


def test_saying_that_one_has_a_hidden_commit_changes_nothing(site: Site, run: Started) -> None:
    other = site.house.start_run()
    site.write(other.branch, {"theirs": b"1"})
    theirs = site.clone(other.secret, other.branch, user=other.lease, name="theirs")
    mine = site.clone(run.secret, run.branch, user=run.lease)
    git(mine, "fetch", "--quiet", "../theirs", "HEAD:refs/heads/have")
    site.write(run.branch, {"mine": b"1"})
    hidden = git(theirs, "rev-parse", "HEAD")
    traced = attempt(mine, "fetch", "origin", GIT_TRACE_PACKET="1")
    assert traced.returncode == 0
    assert f"have {hidden}" in traced.stderr
    assert f"ACK {hidden}" not in traced.stderr


def test_a_repository_that_is_hidden_and_one_that_never_was_are_refused_alike(site: Site, run: Started) -> None:
    other = site.house.start_run()
    there = refused(site.folder, "ls-remote", site.address(run.secret, other.branch, run.lease)).replace(other.branch, "X")
    nowhere = refused(site.folder, "ls-remote", site.address(run.secret, "coder/r0", run.lease)).replace("coder/r0", "X")
    assert there == nowhere
    assert "no such branch" in there


def test_snapshots_are_offered_where_they_are_reached(site: Site, run: Started) -> None:
    engine = site.house.house.appliance.engine
    engine.create_snapshot("shared", engine.branch("main").head, 1)
    other = site.house.start_run()
    site.write(other.branch, {"theirs": b"1"})
    site.house.call(site.house.owner, "commit.make", {"branch": other.branch})
    engine.create_snapshot("theirs", engine.branch(other.branch).head, 1)
    assert "refs/tags/theirs" not in git(site.folder, "ls-remote", site.address(run.secret, run.branch, run.lease))
    assert "refs/tags/theirs" in git(site.folder, "ls-remote", site.address(other.secret, other.branch, other.lease))
    assert "refs/tags/shared" in git(site.folder, "ls-remote", site.address(run.secret, run.branch, run.lease))


def test_a_person_reads_the_runs_they_started_and_pushes_to_none(site: Site, run: Started) -> None:
    site.write(run.branch, {"a": b"1"})
    clone = site.clone(site.house.owner, run.branch, user="owner")
    assert (clone / "a").exists()
    commit(clone, {"b": b"2"})
    assert "remote rejected" in refused(clone, "push")


def test_a_policy_that_changes_changes_what_is_shown(site: Site, run: Started) -> None:
    site.write(run.branch, {"open": b"1", "later/hidden": b"2"})
    before = site.clone(run.secret, run.branch, user=run.lease)
    assert (before / "later/hidden").exists()
    stricter = default_policy().replace('      - "**/id_rsa"\n', '      - "**/id_rsa"\n      - "later/**"\n', 1)
    site.house.house.trust.adopt_policy(stricter, "test", site.house.house.appliance.now())
    after = site.clone(run.secret, run.branch, user=run.lease, name="after")
    assert (after / "open").exists()
    assert not (after / "later").exists()
    assert "hidden" not in everything_in(after)

"""One authority's view of one branch: what it sees, what it may, what it spends."""

from __future__ import annotations

from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Access, AttributeChange, walk
from nasd.workspace import BranchWorkspace
from tests.nasd.conftest import House
from trust.model import Action, BudgetKind, LeaseId

READ = Access()
WRITE = Access(read=False, write=True)


def names(workspace: BranchWorkspace, path: bytes = b"") -> list[bytes]:
    return [name for name, _ in workspace.list(walk(workspace, path).node)]


def read(workspace: BranchWorkspace, path: bytes) -> bytes:
    handle = workspace.open(walk(workspace, path).node, READ)
    try:
        return handle.read(0, 1 << 20)
    finally:
        handle.close()


def refused(kind: Kind, act: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        act()
    assert caught.value.kind is kind, caught.value.message
    return caught.value


def test_a_lease_for_one_folder_sees_that_folder_and_the_way_to_it(house: House) -> None:
    run, secret = house.start(paths=("src/**",))
    workspace = house.workspace(run, secret)
    assert names(workspace) == [b"src"]
    assert names(workspace, b"src") == [b"a.py", b"b.py"]
    assert read(workspace, b"src/a.py") == b"a = 1\n"


def test_what_is_hidden_fails_in_the_same_words_as_what_never_existed(house: House) -> None:
    run, secret = house.start(paths=("src/**",))
    workspace = house.workspace(run, secret)
    hidden = refused(Kind.NOT_FOUND, lambda: workspace.lookup(ROOT, b"secret"))
    missing = refused(Kind.NOT_FOUND, lambda: workspace.lookup(ROOT, b"secreu"))
    assert hidden.message.replace("secret", "X") == missing.message.replace("secreu", "X")
    assert (hidden.hint, hidden.policy, hidden.gate) == (missing.hint, missing.policy, missing.gate)


def test_nothing_outside_the_lease_is_reached_by_creating_linking_or_renaming(house: House) -> None:
    run, secret = house.start(paths=("src/**",))
    workspace = house.workspace(run, secret)
    source = walk(workspace, b"src").node
    inside = walk(workspace, b"src/a.py").node
    refused(Kind.DENIED, lambda: workspace.create(ROOT, b"new.txt", 0o644))
    refused(Kind.DENIED, lambda: workspace.mkdir(ROOT, b"secret", 0o755))
    refused(Kind.DENIED, lambda: workspace.link(inside, ROOT, b"README.md"))
    refused(Kind.DENIED, lambda: workspace.rename(source, b"a.py", ROOT, b"README.md"))
    refused(Kind.NOT_FOUND, lambda: workspace.rename(ROOT, b"README.md", source, b"stolen"))
    refused(Kind.NOT_FOUND, lambda: workspace.unlink(ROOT, b"README.md"))
    assert names(workspace, b"src") == [b"a.py", b"b.py"]


def test_a_directory_moves_only_when_everything_that_can_be_below_it_is_covered(house: House) -> None:
    run, secret = house.start(paths=("src/*.py", "src/inner/**"))
    workspace = house.workspace(run, secret)
    source = walk(workspace, b"src").node
    workspace.mkdir(source, b"inner", 0o755)
    refused(Kind.DENIED, lambda: workspace.rename(ROOT, b"src", ROOT, b"moved"))
    workspace.mkdir(walk(workspace, b"src/inner").node, b"x", 0o755)
    workspace.rename(walk(workspace, b"src/inner").node, b"x", walk(workspace, b"src/inner").node, b"y")
    assert names(workspace, b"src/inner") == [b"y"]


def test_a_read_only_lease_reads_and_changes_nothing(house: House) -> None:
    run, secret = house.start(actions=frozenset({Action.LIST, Action.READ}))
    workspace = house.workspace(run, secret)
    node = walk(workspace, b"README.md").node
    assert read(workspace, b"README.md") == b"hello\n"
    for act in (
        lambda: workspace.open(node, WRITE),
        lambda: workspace.create(ROOT, b"x", 0o644),
        lambda: workspace.unlink(ROOT, b"README.md"),
        lambda: workspace.set_attributes(node, AttributeChange(mode=0o600)),
        lambda: workspace.symlink(ROOT, b"l", b"README.md"),
        lambda: workspace.set_xattr(node, b"user.x", b"1"),
    ):
        fault = refused(Kind.DENIED, act)
        assert fault.policy
        assert fault.hint


def test_a_lease_without_delete_keeps_every_file(house: House) -> None:
    run, secret = house.start(actions=frozenset({Action.LIST, Action.READ, Action.WRITE}))
    workspace = house.workspace(run, secret)
    refused(Kind.DENIED, lambda: workspace.unlink(ROOT, b"README.md"))
    refused(Kind.DENIED, lambda: workspace.rmdir(ROOT, b"docs"))
    assert b"README.md" in names(workspace)


def test_a_file_without_the_right_to_read_is_visible_and_closed(house: House) -> None:
    run, secret = house.start(actions=frozenset({Action.LIST}))
    workspace = house.workspace(run, secret)
    assert b"README.md" in names(workspace)
    refused(Kind.DENIED, lambda: workspace.open(walk(workspace, b"README.md").node, READ))


def test_a_spent_budget_of_written_bytes_is_refused_before_anything_is_stored(house: House) -> None:
    run, secret = house.start(budgets={BudgetKind.BYTES_WRITTEN: 10})
    workspace = house.workspace(run, secret)
    attributes, handle = workspace.create(ROOT, b"x", 0o644)
    handle.write(0, b"12345678")
    refused(Kind.BUDGET, lambda: handle.write(8, b"abc"))
    assert workspace.attributes(attributes.node).size == 8
    handle.write(8, b"90")
    handle.close()
    workspace.flush()
    assert house.trust.left(LeaseId(run.lease))[BudgetKind.BYTES_WRITTEN] == 0


def test_what_was_reserved_and_not_spent_comes_back(house: House) -> None:
    run, secret = house.start(budgets={BudgetKind.READS: 1000, BudgetKind.BYTES_WRITTEN: 1 << 30})
    workspace = house.workspace(run, secret)
    read(workspace, b"README.md")
    workspace.close()
    assert house.trust.left(LeaseId(run.lease))[BudgetKind.READS] == 999
    assert house.trust.left(LeaseId(run.lease))[BudgetKind.BYTES_WRITTEN] == 1 << 30


def test_reads_run_out(house: House) -> None:
    run, secret = house.start(budgets={BudgetKind.READS: 2, BudgetKind.BYTES_WRITTEN: 1 << 30})
    workspace = house.workspace(run, secret)
    read(workspace, b"README.md")
    read(workspace, b"README.md")
    refused(Kind.BUDGET, lambda: read(workspace, b"README.md"))


def test_revoking_ends_an_open_handle_at_its_next_call(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    _, handle = workspace.create(ROOT, b"x", 0o644)
    house.trust.revoke_lease(LeaseId(run.lease), "enough", house.appliance.now())
    fault = refused(Kind.REVOKED, lambda: handle.write(0, b"late"))
    assert "enough" in fault.message
    refused(Kind.REVOKED, lambda: handle.read(0, 1))
    refused(Kind.REVOKED, workspace.check)
    assert refused(Kind.REVOKED, lambda: workspace.create(ROOT, b"y", 0o644))


def test_a_lease_expires_in_the_middle_of_an_open_workspace(house: House) -> None:
    run, secret = house.start(ttl=60)
    workspace = house.workspace(run, secret)
    workspace.lookup(ROOT, b"README.md")
    house.pass_time(59)
    workspace.check()
    house.pass_time(1)
    refused(Kind.EXPIRED, workspace.check)
    refused(Kind.EXPIRED, lambda: workspace.open(2, READ) if False else workspace.create(ROOT, b"x", 0o644))


def test_main_can_be_read_and_not_written(house: House) -> None:
    from nasd.workspaces import open_workspace

    workspace = open_workspace(house.appliance, house.owner, "main", lambda _: {})
    assert read(workspace, b"README.md") == b"hello\n"
    refused(Kind.READ_ONLY, lambda: workspace.create(ROOT, b"x", 0o644))
    refused(Kind.READ_ONLY, lambda: workspace.open(walk(workspace, b"README.md").node, WRITE))


def test_credential_files_stay_closed_whatever_the_lease_says(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    fault = refused(Kind.DENIED, lambda: workspace.create(ROOT, b"id_rsa", 0o600))
    assert "credentials-refused" in fault.policy


def test_a_file_without_a_name_stays_usable_through_what_opened_it(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    attributes, handle = workspace.create(ROOT, b"temporary", 0o600)
    workspace.unlink(ROOT, b"temporary")
    handle.write(0, b"still here")
    assert handle.read(0, 100) == b"still here"
    workspace.set_attributes(attributes.node, AttributeChange(size=5))
    assert workspace.attributes(attributes.node).size == 5
    handle.close()
    refused(Kind.STALE, lambda: workspace.open(attributes.node, READ))


def test_a_file_that_a_rename_replaced_can_be_opened_for_a_moment_by_who_had_looked_it_up(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    former = workspace.lookup(ROOT, b"README.md")
    _, handle = workspace.create(ROOT, b"fresh", 0o644)
    handle.write(0, b"fresh")
    handle.close()
    workspace.rename(ROOT, b"fresh", ROOT, b"README.md")
    late = workspace.open(former.node, READ)
    assert late.read(0, 100) == b"hello\n"
    late.close()
    assert read(workspace, b"README.md") == b"fresh"


def test_a_symlink_that_a_rename_replaced_can_be_followed_for_a_moment_by_who_had_looked_it_up(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    former = workspace.symlink(ROOT, b"link", b"README.md")
    workspace.symlink(ROOT, b"fresh", b"src")
    workspace.rename(ROOT, b"fresh", ROOT, b"link")
    assert workspace.readlink(former.node) == b"README.md"
    assert workspace.readlink(workspace.lookup(ROOT, b"link").node) == b"src"


def test_a_replaced_file_is_as_closed_as_its_path_was(house: House) -> None:
    run, secret = house.start(actions=frozenset({Action.LIST, Action.WRITE}))
    workspace = house.workspace(run, secret)
    former = workspace.lookup(ROOT, b"README.md")
    _, handle = workspace.create(ROOT, b"fresh", 0o644)
    handle.close()
    workspace.rename(ROOT, b"fresh", ROOT, b"README.md")
    refused(Kind.DENIED, lambda: workspace.open(former.node, READ))


def test_a_denial_is_recorded_once_and_repeats_are_counted(house: House) -> None:
    run, secret = house.start(paths=("src/**",))
    workspace = house.workspace(run, secret)
    for _ in range(50):
        refused(Kind.DENIED, lambda: workspace.create(ROOT, b"x", 0o644))
    assert [body["count"] for body in house.records("denied")] == [1]
    workspace.close()
    assert [body["count"] for body in house.records("denied")] == [1, 49]


def test_reads_reach_the_record_in_one_batch(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    for _ in range(3):
        read(workspace, b"README.md")
    read(workspace, b"src/a.py")
    workspace.close()
    reads = [{read["path"]: read["times"] for read in body["reads"]} for body in house.records("reads")]
    assert reads == [{"README.md": 3, "src/a.py": 1}]


def test_publishing_a_file_needs_the_right_to_write_that_path_and_nothing_else(house: House) -> None:
    import io

    run, secret = house.start(paths=("src/a.py",), actions=frozenset({Action.WRITE, Action.READ, Action.LIST}))
    workspace = house.workspace(run, secret)
    source = walk(workspace, b"src").node
    workspace.publish(source, b"a.py", 0o644, io.BytesIO(b"new"))
    assert read(workspace, b"src/a.py") == b"new"
    refused(Kind.DENIED, lambda: workspace.publish(source, b"b.py", 0o644, io.BytesIO(b"new")))

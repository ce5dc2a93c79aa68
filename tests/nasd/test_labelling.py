"""Labels follow content through a run: into its taint when it reads, into what it writes, and onto main with a merge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import Access
from nasd.lineage import Histories
from nasd.runs import MAIN, Run
from nasd.workspace import BranchWorkspace
from store.model import ROOT
from tests.nasd.conftest import ENGINES, House, build_house
from trust.labels import DEFAULT, WORST, Label, Origin, Sensitivity
from trust.model import LEASABLE, Action, GateId
from trust.policy import default_policy

EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
SENSITIVE = Label(Origin.INTERNAL, Sensitivity.SENSITIVE)
LONG = b"words of a stranger that are long enough to be recognised elsewhere\n"


@pytest.fixture(params=ENGINES)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    policy = default_policy().replace(
        "actions: [list, read, write, delete, propose]", "actions: [list, read, write, delete, propose, egress]"
    )
    built = build_house(tmp_path / "home", request.param, policy)
    built.trust.ledger.mark("docs/**", EXTERNAL)
    built.trust.ledger.mark("secret/**", SENSITIVE)
    yield built
    built.appliance.close()


def node_of(workspace: BranchWorkspace, path: bytes) -> int:
    node = int(ROOT)
    for name in path.split(b"/"):
        node = workspace.lookup(node, name).node
    return node


def read(workspace: BranchWorkspace, path: bytes) -> bytes:
    handle = workspace.open(node_of(workspace, path), Access(read=True))
    try:
        return handle.read(0, 1 << 20)
    finally:
        handle.close()


def label_on_main(house: House, path: bytes) -> Label:
    tree = house.appliance.engine.view(house.appliance.engine.branch(MAIN).head)
    node = ROOT
    for name in path.split(b"/"):
        found = tree.lookup(node, name)
        node = found.node
    return house.trust.ledger.label(house.trust.policy(), path, found.content)


def taint(house: House, run: Run) -> Label:
    return house.trust.ledger.taint(run.run)


def test_reading_ordinary_files_taints_nobody(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"src/a.py"), read(workspace, b"README.md")
    workspace.list(int(ROOT)), workspace.list(node_of(workspace, b"docs"))
    workspace.close()
    assert taint(house, run) == DEFAULT and house.records("taint") == []


def test_what_was_read_stays_in_the_taint_and_is_recorded_once(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md"), read(workspace, b"docs/one.md"), read(workspace, b"src/a.py")
    workspace.close()
    assert taint(house, run) == EXTERNAL
    assert [(body["path"], body["label"]) for body in house.records("taint")] == [("docs/one.md", "external/internal")]
    again = house.workspace(run, secret)
    read(again, b"secret/plan.txt")
    again.close()
    assert taint(house, run) == WORST


@pytest.mark.parametrize("way", ["rename", "rename a directory", "link", "copy"])
def test_what_is_moved_or_copied_taints_as_if_it_was_read(house: House, way: str) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    docs, source = node_of(workspace, b"docs"), node_of(workspace, b"docs/one.md")
    if way == "rename":
        workspace.rename(docs, b"one.md", int(ROOT), b"clean.md")
    elif way == "rename a directory":
        workspace.rename(int(ROOT), b"docs", int(ROOT), b"clean")
    elif way == "link":
        workspace.link(source, int(ROOT), b"clean.md")
    else:
        workspace.copy(source, int(ROOT), b"clean.md")
    assert taint(house, run) == EXTERNAL
    workspace.close()


def test_what_a_tainted_run_writes_is_labelled_on_main_and_taints_the_next_reader(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md")
    house.write(run, {"src/summary.py": LONG})
    workspace.close()
    assert house.proposals.propose(run, house.owner, "sum up")["decision"] == "merged"
    assert label_on_main(house, b"src/summary.py") == EXTERNAL
    assert label_on_main(house, b"src/a.py") == DEFAULT
    other, second = house.start()
    reading = house.workspace(other, second)
    assert reading.xattrs(node_of(reading, b"src/summary.py"))[b"user.nas.origin"] == b"external"
    read(reading, b"src/summary.py")
    reading.close()
    assert taint(house, other) == EXTERNAL


def test_the_same_bytes_keep_their_label_under_another_name_whoever_writes_them(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md")
    house.write(run, {"src/summary.py": LONG})
    workspace.close()
    house.proposals.propose(run, house.owner, "sum up")
    unaware, _ = house.start()
    house.write(unaware, {"src/innocent.py": LONG, "src/own.py": b"something else that is just as long as those words of a stranger\n"})
    assert house.proposals.propose(unaware, house.owner, "mine")["decision"] == "merged"
    assert label_on_main(house, b"src/innocent.py") == EXTERNAL
    assert label_on_main(house, b"src/own.py") == DEFAULT


def test_a_write_into_labelled_content_keeps_its_label_though_nothing_was_read(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md")
    house.write(run, {"src/summary.py": LONG})
    workspace.close()
    house.proposals.propose(run, house.owner, "sum up")
    other, second = house.start()
    writing = house.workspace(other, second)
    handle = writing.open(node_of(writing, b"src/summary.py"), Access(read=False, write=True, append=True))
    handle.write(0, b"one more line\n")
    handle.close()
    writing.close()
    assert taint(house, other) == DEFAULT
    assert house.proposals.propose(other, house.owner, "append")["decision"] == "merged"
    assert house.read_main("src/summary.py") == LONG + b"one more line\n"
    assert label_on_main(house, b"src/summary.py") == EXTERNAL


def test_a_merge_of_both_sides_of_a_file_has_the_labels_of_both(house: House) -> None:
    first, _ = house.start()
    house.write(first, {"src/a.py": b"".join(b"line %d\n" % number for number in range(20))})
    house.proposals.propose(first, house.owner, "lines")
    tainted, secret = house.start()
    other, _ = house.start()
    workspace = house.workspace(tainted, secret)
    read(workspace, b"docs/one.md")
    workspace.close()
    lines = [b"line %d\n" % number for number in range(20)]
    house.write(tainted, {"src/a.py": b"".join([b"from outside\n", *lines])})
    house.write(other, {"src/a.py": b"".join([*lines, b"from inside\n"])})
    assert house.proposals.propose(other, house.owner, "inside")["decision"] == "merged"
    assert house.proposals.propose(tainted, house.owner, "outside")["decision"] == "merged"
    assert house.read_main("src/a.py").startswith(b"from outside\n") and house.read_main("src/a.py").endswith(b"from inside\n")
    assert label_on_main(house, b"src/a.py") == EXTERNAL


def test_the_third_of_the_three_is_asked_about_at_the_merge(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md"), read(workspace, b"secret/plan.txt")
    workspace.close()
    house.write(run, {"src/a.py": b"leak\n"})
    document = house.proposals.propose(run, house.owner, "both")
    assert document["decision"] == "gated" and "rule-of-two" in str(document["policy"])
    gate = house.trust.gate(GateId(str(document["gate"])))
    assert gate.card["taint"]["origin"] == "external" and gate.card["taint"]["sensitivity"] == "sensitive"
    assert {reason["path"] for reason in gate.card["taint"]["because"]} == {"docs/one.md", "secret/plan.txt"}
    assert {"docs/one.md", "secret/plan.txt"} <= set(gate.card["reads"]["paths"])
    house.gates.answer(gate.id, gate.digest, house.owner, "I looked", approve=True)
    assert house.read_main("src/a.py") == b"leak\n" and label_on_main(house, b"src/a.py") == WORST


def test_a_run_that_can_act_outside_is_asked_before_it_reads_the_third(house: House) -> None:
    run, secret = house.start(actions=LEASABLE - {Action.DELETE}, paths=("README.md", "docs/**", "src/**"))
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md")
    house.trust.ledger.mark("src/b.py", SENSITIVE)
    with pytest.raises(Fault) as caught:
        read(workspace, b"src/b.py")
    assert caught.value.kind is Kind.GATED and caught.value.gate
    assert taint(house, run) == EXTERNAL
    with pytest.raises(Fault) as again:
        read(workspace, b"src/b.py")
    assert again.value.gate == caught.value.gate, "one question, however often it is tried"
    gate = house.trust.gate(GateId(caught.value.gate))
    house.gates.answer(gate.id, gate.digest, house.owner, "go on", approve=True)
    assert read(workspace, b"src/b.py") == b"b = 1\n" and taint(house, run) == WORST
    workspace.close()


def test_a_lease_that_could_combine_all_three_is_asked_about_before_it_exists(house: House) -> None:
    with pytest.raises(Fault) as caught:
        house.start(actions=LEASABLE)
    assert caught.value.kind is Kind.GATED and "combine untrusted input, sensitive data and outward effects" in caught.value.message


def test_labels_are_shown_and_never_taken_from_attributes(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    node = node_of(workspace, b"docs/one.md")
    assert workspace.xattrs(node) == {b"user.nas.origin": b"external", b"user.nas.sensitivity": b"internal"}
    assert workspace.xattrs(node_of(workspace, b"src/a.py")) == {}
    for value in (b"owner", None):
        with pytest.raises(Fault) as caught:
            workspace.set_xattr(node, b"user.nas.origin", value)
        assert caught.value.kind is Kind.NOT_PERMITTED
    workspace.set_xattr(node, b"user.nas.origin", b"external")
    assert workspace.xattrs(node)[b"user.nas.origin"] == b"external"
    workspace.close()


def test_a_history_is_labelled_by_what_it_once_had(house: House) -> None:
    head = house.appliance.engine.branch(MAIN).head
    histories = Histories(house.appliance)
    assert histories.label(head, [], None) == WORST, "docs and secret are there"
    house.trust.ledger.unmark("docs/**"), house.trust.ledger.unmark("secret/**")
    assert histories.label(head, [], None) == DEFAULT
    run, secret = house.start()
    house.trust.ledger.mark("README.md", EXTERNAL)
    workspace = house.workspace(run, secret)
    read(workspace, b"README.md")
    house.trust.ledger.unmark("README.md")
    house.write(run, {"src/x.py": LONG})
    workspace.close()
    house.runs.commit(run, None, "with it")
    house.write(run, {"src/x.py": None, "src/y.py": b"y\n"})
    assert house.proposals.propose(run, house.owner, "without it")["decision"] == "merged"
    moved = house.appliance.engine.branch(MAIN).head
    assert histories.label(head, [], None) == DEFAULT
    assert histories.label(moved, [], None) == EXTERNAL
    assert Histories(house.appliance).label(head, [moved], None) == EXTERNAL


def test_reads_that_have_changed_since_are_facts_of_the_merge(house: House) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"src/a.py"), read(workspace, b"src/b.py")
    workspace.close()
    other, _ = house.start()
    house.write(other, {"src/a.py": b"a = 3\n"})
    house.proposals.propose(other, house.owner, "meanwhile")
    house.write(run, {"src/c.py": b"c = 1\n"} | MANY)
    document = house.proposals.propose(run, house.owner, "built on what was")
    gate = house.trust.gate(GateId(str(document["gate"])))
    assert gate.card["stale_reads"] == ["src/a.py"]
    assert gate.card["reads"]["files"] == 2


MANY: dict[str, bytes | None] = {f"many/{number}.txt": b"x" for number in range(201)}


def test_a_commit_that_a_crash_left_unlabelled_is_labelled_at_the_next_start(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, secret = house.start()
    workspace = house.workspace(run, secret)
    read(workspace, b"docs/one.md")
    workspace.close()
    house.write(run, {"src/summary.py": LONG})
    expected = house.appliance.engine.branch(run.branch).head
    house.trust.intend("commit", None, {"run": run.run, "branch": run.branch, "expected": expected, "message": ""}, house.appliance.now())
    with monkeypatch.context() as patched:
        patched.setattr("nasd.labelling.Labelling.label_commit", lambda *_: None)
        house.runs.commit(run, None, "before the crash")
    content = house.appliance.engine.diff(expected, house.appliance.engine.branch(run.branch).head)[0].new
    assert content is not None
    key = (b"src/summary.py", content.content.encode())
    assert house.trust.ledger.label(house.trust.policy(), *key) == DEFAULT
    house.reconciliation.finish()
    assert house.trust.ledger.label(house.trust.policy(), *key) == EXTERNAL

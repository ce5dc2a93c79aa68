"""The pages about a run say what it did, to whom may know."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from interfaces.port import Access
from nasd.activity import LINES, Chronicle, line
from tests.house_of_doors import HouseOfDoors, Started, open_house
from trust.model import Record, RecordPhase


def record(sequence: int, kind: str, phase: RecordPhase, body: dict[str, object], refers: int | None = None) -> Record:
    return Record(sequence, 1_800_000_000 + sequence, phase, kind, "coder", "r1", "l1", body, refers, "", "")  # type: ignore[arg-type]


def work(house: HouseOfDoors, run: Started) -> None:
    """Read, write, be refused, commit and propose."""
    workspace = house.control.workspace(house.control.authenticate(run.secret), run.branch)
    source = workspace.lookup(1, b"src")
    handle = workspace.open(workspace.lookup(source.node, b"a.py").node, Access())
    handle.read(0, 100)
    handle.close()
    _, handle = workspace.create(source.node, b"made.py", 0o644)
    handle.write(0, b"made = 1\n")
    handle.close()
    house.call(run.secret, "commit.make", {"branch": run.branch, "message": "two\nlines"})
    house.call(run.secret, "proposal.make", {"run": run.run, "message": "please"})
    workspace.flush(everything=True)  # type: ignore[attr-defined]


def pages(house: HouseOfDoors, secret: str, run: str) -> dict[str, str]:
    shown = house.call(secret, "activity.show", {"run": run})
    return {file["name"]: file["text"] for file in shown["files"]}


def test_the_pages_tell_what_a_run_did_read_changed_and_asked(tmp_path: Path) -> None:
    with open_house(tmp_path) as house:
        run = house.start_run(paths=("src/**",))
        work(house, run)
        told = pages(house, house.owner, run.run)
    assert "commit" in told["Did.txt"]
    assert "propose" in told["Did.txt"]
    assert told["Did.txt"].index("commit") < told["Did.txt"].index("propose")
    assert "      1  src/a.py" in told["Read.txt"]
    assert "added        src/made.py  9 bytes" in told["Changed.txt"]
    assert "please" in told["Asked.txt"]
    assert "nothing" in told["Refused.txt"]
    assert f"run       {run.run}" in told["Summary.txt"]


def test_what_a_message_contains_stays_on_its_line(tmp_path: Path) -> None:
    with open_house(tmp_path) as house:
        run = house.start_run(paths=("src/**",))
        work(house, run)
        told = pages(house, house.owner, run.run)
    assert "message two\\nlines" in told["Did.txt"]


def test_a_run_of_somebody_else_is_in_nobody_elses_list(tmp_path: Path) -> None:
    with open_house(tmp_path) as house:
        house.start_run()
        stranger = house.issue_token("ana")
        assert house.call(stranger, "activity.list")["items"] == []
        assert len(house.call(house.owner, "activity.list")["items"]) == 1


def test_a_lease_is_told_about_its_own_run(tmp_path: Path) -> None:
    with open_house(tmp_path) as house:
        run, other = house.start_run(), house.start_run()
        assert [item["run"] for item in house.call(run.secret, "activity.list")["items"]] == [run.run]
        assert "Summary.txt" in pages(house, other.secret, other.run)


def test_an_act_without_outcome_is_told_as_that() -> None:
    chronicle = Chronicle(lambda _: True)
    chronicle.add(record(1, "merge", RecordPhase.INTENT, {"target": "main"}))
    chronicle.finish()
    assert "no outcome" in chronicle.acts[1]


def test_acts_stand_in_the_order_they_began() -> None:
    chronicle = Chronicle(lambda _: True)
    chronicle.add(record(1, "propose", RecordPhase.INTENT, {"message": "m"}))
    chronicle.add(record(2, "merge", RecordPhase.INTENT, {"target": "main"}))
    chronicle.add(record(3, "merge", RecordPhase.OUTCOME, {"result": "done"}, 2))
    chronicle.add(record(4, "propose", RecordPhase.OUTCOME, {"result": "done"}, 1))
    chronicle.finish()
    assert list(sorted(chronicle.acts)) == [1, 2]
    assert chronicle.last == 1_800_000_004


def reads(**times: int) -> list[dict[str, object]]:
    return [{"path": path, "times": count} for path, count in times.items()]


def test_a_refusal_that_is_about_no_path_is_told() -> None:
    chronicle = Chronicle(lambda _: False)
    chronicle.add(record(1, "denied", RecordPhase.FACT, {"action": "merge", "rule": "credentials-refused"}))
    chronicle.add(record(2, "denied", RecordPhase.FACT, {"action": "egress", "account": "mail", "rule": "default"}))
    assert chronicle.refusals == {("merge", "", "credentials-refused"): 1, ("egress", "mail", "default"): 1}


def test_paths_that_do_not_exist_for_the_reader_are_not_told() -> None:
    chronicle = Chronicle(lambda path: path != "secret")
    chronicle.add(record(1, "reads", RecordPhase.FACT, {"reads": reads(secret=1, open=2), "beyond": 0}))
    chronicle.add(record(2, "denied", RecordPhase.FACT, {"action": "read", "path": "secret", "rule": "lease", "count": 1}))
    assert chronicle.reads == {"open": 2}
    assert chronicle.refusals == {}


def test_a_page_has_an_end_and_counts_the_rest() -> None:
    chronicle = Chronicle(lambda _: True)
    chronicle.add(record(1, "reads", RecordPhase.FACT, {"reads": reads(**{str(number): 1 for number in range(LINES + 7)}), "beyond": 3}))
    assert len(chronicle.reads) == LINES
    assert chronicle.beyond["reads"] == 10


@given(st.text())
def test_a_line_is_a_line(text: str) -> None:
    assert len(line(text).splitlines()) <= 1

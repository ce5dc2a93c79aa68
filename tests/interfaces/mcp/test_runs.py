"""The run: its status, its history and differences, and how work gets to main."""

from __future__ import annotations

import threading
import time

import pytest

from tests.house_of_doors import HouseOfDoors
from tests.interfaces.mcp.rooms import Desk, text_of


def test_a_run_learns_its_branch_its_lease_and_what_is_not_committed(house: HouseOfDoors) -> None:
    run = house.start_run(paths=["src/**"], budgets={"reads": 100})
    desk = Desk(house, run.secret)
    desk.call("write", path="src/new.py", content="1")
    status = desk.call("status")
    assert (status["run"], status["branch"], status["principal"]) == (run.run, run.branch, "coder")
    assert status["lease"]["paths"] == ["src/**"]
    assert status["lease"]["budgets"]["reads"] == {"limit": 100, "used": 0}
    assert [change["path"] for change in status["uncommitted"]] == ["src/new.py"]
    assert (status["uncommitted_count"], status["truncated"]) == (1, False)


def test_a_person_gets_the_active_runs_and_must_name_one(house: HouseOfDoors) -> None:
    run = house.start_run()
    desk = Desk(house, house.owner)
    assert run.run in [item["run"] for item in desk.call("status")["runs"]]
    assert desk.call("status", run=run.run)["branch"] == run.branch
    assert desk.refused("commit", message="x")[0] == "invalid"
    assert desk.call("list")["branch"] == "main"
    assert desk.call("list", branch=run.run)["branch"] == run.branch


def test_another_run_does_not_exist(house: HouseOfDoors, desk: Desk) -> None:
    other = house.start_run()
    hidden, missing = desk.refused("status", run=other.run), desk.refused("status", run=other.run[:-1] + "!")
    assert hidden[0] == missing[0] == "not-found"
    assert desk.refused("list", branch=other.branch)[0] == "not-found"
    assert desk.refused("propose", run=other.run, message="x")[0] == "not-found"


def test_history_and_differences_come_in_pages(desk: Desk) -> None:
    for number in range(3):
        desk.call("write", path=f"h/{number}", content=f"{number}\n" * 300)
        desk.call("commit", message=f"commit {number}")
    page = desk.call("history", limit=2)
    assert [commit["message"] for commit in page["items"]] == ["commit 2", "commit 1"]
    assert [commit["message"] for commit in desk.call("history", cursor=page["cursor"], limit=1)["items"]] == ["commit 0"]
    assert [commit["message"] for commit in desk.call("history", path="h/1")["items"]] == ["commit 1"]
    paths, cursor = [], {}
    while True:
        result = desk.result("diff", max_tokens=400, **cursor)
        assert len(text_of(result).encode()) < 400 * 3 + 200
        document = result.structured_content
        paths += [change["path"] for change in document["items"]]
        if not document["truncated"]:
            break
        cursor = {"cursor": document["cursor"]}
    assert paths == ["h/0", "h/1", "h/2"]


def test_a_patch_that_is_too_large_is_cut_and_says_so(desk: Desk) -> None:
    desk.call("write", path="big", content="line\n" * 5000)
    document = desk.call("diff", uncommitted=True, max_tokens=300)
    assert document["items"][0]["patch_cut"]
    assert "this patch is cut" in desk.told("diff", uncommitted=True, max_tokens=300)
    assert "patch" not in desk.call("diff", uncommitted=True, patch=False)["items"][0]


def test_two_commits_are_compared(desk: Desk) -> None:
    desk.call("write", path="c/1", content="1")
    first = desk.call("commit", message="1")["commit"]
    desk.call("write", path="c/2", content="2")
    second = desk.call("commit", message="2")["commit"]
    assert [change["path"] for change in desk.call("diff", **{"from": first, "to": second})["items"]] == ["c/2"]
    assert [change["path"] for change in desk.call("diff", **{"from": first})["items"]] == ["c/2"]


def test_a_proposal_is_decided_and_can_be_looked_at(desk: Desk) -> None:
    desk.call("write", path="p/file", content="1")
    made = desk.call("propose", message="add a file")
    assert made["decision"] == "merged"
    [shown] = desk.call("proposals", proposal=made["proposal"])["items"]
    assert shown["state"] == "merged"
    assert [item["proposal"] for item in desk.call("proposals")["items"]] == [made["proposal"]]
    assert desk.call("gates") == {"items": [], "cursor": None, "truncated": False}
    assert desk.refused("gates", gate="nothing")[0] == "not-found"
    assert desk.refused("gates", state="nonsense")[0] == "invalid"


def test_a_proposal_that_a_person_must_see_names_its_gate(house: HouseOfDoors) -> None:
    desk = Desk(house, house.start_run(paths=["**"]).secret)
    desk.call("write", path=".nas/policy.yaml", content=desk.call("read", path=".nas/policy.yaml")["text"] + "\n# more\n")
    result = desk.result("propose", message="change the policy")
    assert result.structured_content["decision"] == "gated", text_of(result)
    gate = result.structured_content["gate"]
    assert gate in text_of(result)
    [listed] = desk.call("gates")["items"]
    assert (listed["gate"], listed["state"]) == (gate, "pending")
    [shown] = desk.call("gates", gate=gate)["items"]
    assert shown["card"]


@pytest.mark.parametrize(("verdict", "state"), [("approve", "approved"), ("reject", "rejected")])
def test_a_model_that_waits_for_a_person_learns_the_end_at_once(house: HouseOfDoors, verdict: str, state: str) -> None:
    desk = Desk(house, house.start_run(paths=["**"]).secret)
    desk.call("write", path=".nas/policy.yaml", content=desk.call("read", path=".nas/policy.yaml")["text"] + f"\n# {verdict}\n")
    gate = desk.call("propose", message="change the policy")["gate"]
    [waiting] = desk.call("gates", gate=gate, wait=1)["items"]
    assert waiting["state"] == "pending"
    digest = waiting["digest"]
    answer = threading.Timer(0.5, lambda: house.call(house.owner, f"gate.{verdict}", {"gate": gate, "digest": digest}))
    began = time.monotonic()
    answer.start()
    [ended] = desk.call("gates", gate=gate, wait=20)["items"]
    answer.join()
    assert (ended["state"], ended["phase"]) == (state, "closed") and time.monotonic() - began < 5


def test_a_narrowed_lease_is_told_what_it_may_itself(house: HouseOfDoors) -> None:
    run = house.start_run()
    child = house.call(run.secret, "lease.narrow", {"lease": run.lease, "paths": ["src/**"], "actions": ["list", "read"]})
    lease = Desk(house, child["secret"]).call("status")["lease"]
    assert (lease["lease"], lease["paths"], lease["actions"]) == (child["lease"], ["src/**"], ["list", "read"])


def test_what_a_file_was_is_read_listed_searched_and_restored(desk: Desk) -> None:
    desk.call("write", path="past/file", content="before\n")
    commit = desk.call("commit", message="before")["commit"]
    desk.call("delete", path="past", recursive=True)
    desk.call("commit", message="gone")
    assert desk.refused("read", path="past/file")[0] == "not-found"
    assert desk.call("read", path="past/file", commit=commit)["text"] == "before\n"
    assert [item["path"] for item in desk.call("list", path="past", commit=commit)["items"]] == ["past/file"]
    assert [item["path"] for item in desk.call("search", text="before", path="past", commit=commit)["items"]] == ["past/file"]
    restored = desk.call("restore", commit=commit, paths=["past/file"])
    assert desk.call("read", path="past/file")["text"] == "before\n"
    assert restored["changed"] == 1
    assert desk.refused("restore", commit="0" * 40, paths=["past"])[0] == "not-found"
    assert desk.refused("read", path="past/file", commit="nonsense")[0] == "not-found"

"""What a person meets first: init, serve, a run, a proposal, a question, a refusal, the record."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.e2e.conftest import NAS, Nas, needs_fuse, wait_until


def fill(place: Path, count: int) -> None:
    for number in range(count):
        (place / f"many-{number}.txt").write_text("x")


@needs_fuse
def test_everyday_work_merges_by_policy(nas: Nas) -> None:
    run = nas.start("coder", "--purpose", "edit")
    assert {"run", "branch", "lease", "secret"} <= set(run)
    place = nas.mount(run["run"])
    assert subprocess.run([str(place / "tool")], capture_output=True, text=True, check=True).stdout == "ran\n"
    assert (place / "link").read_text() == "hello\n"
    assert (place / "empty").is_dir()
    (place / "src" / "a.py").write_text("a = 2\n")
    answer = nas.json("propose", run["run"], "-m", "better")
    assert {"proposal", "decision", "gate", "reason", "policy"} <= set(answer)
    assert answer["decision"] == "merged"
    assert nas.json("log", "main")[0]["run"] == run["run"]
    verdict = nas.json("verify")
    assert {"ok", "records", "first_bad", "completeness"} <= set(verdict)
    assert (verdict["ok"], verdict["first_bad"]) == (True, None)
    assert "completeness unknown" in verdict["completeness"]


@needs_fuse
def test_a_question_is_exit_four_and_an_approval_merges_what_was_shown(nas: Nas) -> None:
    run = nas.start()
    place = nas.mount(run["run"])
    fill(place, 201)
    answer = nas.json("propose", run["run"], "-m", "bulk", expect=4)
    assert answer["decision"] == "gated"
    (gate,) = nas.json("gate", "list")
    assert {"gate", "state", "digest", "deadline", "required_role"} <= set(gate)
    assert (gate["gate"], gate["state"]) == (answer["gate"], "pending")
    nas.json("gate", "approve", gate["gate"], "--digest", "0" * 64, expect=5)
    approved = nas.json("gate", "approve", gate["gate"], "--digest", gate["digest"])
    assert approved["result"]["decision"] == "merged"
    nas.json("gate", "approve", gate["gate"], "--digest", gate["digest"], expect=5)


@needs_fuse
def test_a_refusal_is_exit_three_with_the_line_and_the_hint(nas: Nas) -> None:
    run = nas.start("coder", "--actions", "list", "--actions", "read", "--actions", "write")
    (nas.mount(run["run"]) / "src" / "a.py").write_text("a = 3\n")
    secret = {"NAS_LEASE": run["secret"]}
    answer = nas.json("propose", run["run"], "-m", "no", expect=3, env=secret)
    assert {"code", "message", "hint"} <= set(answer)
    assert "propose" in answer["message"]


def test_errors_tell_what_and_what_next(nas: Nas) -> None:
    missing = nas.json("run", "show", "r-nothing", expect=6)
    assert {"code", "message", "hint"} <= set(missing)
    assert nas.run("run", "start", expect=2).stdout == ""
    printed = nas.run("run", "show", "r-nothing", expect=6)
    assert printed.stdout == ""
    assert "hint:" in printed.stderr
    assert "Traceback" not in printed.stderr


def test_a_second_daemon_names_the_first(nas: Nas) -> None:
    done = nas.run("serve", "--background", expect=5)
    assert str(nas.pid()) in done.stderr


def test_a_secret_is_needed_and_not_shown_again(nas: Nas) -> None:
    run = nas.start()
    shown = (
        nas.run("lease", "list", "--json").stdout
        + nas.run("run", "show", run["run"], "--json").stdout
        + nas.run("record", "list", "--json").stdout
    )
    assert run["secret"] not in shown
    tail = run["secret"].rpartition(".")[2]
    files = [path for path in nas.home.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if tail.encode() in path.read_bytes()]
    (nas.home / "owner.token").unlink()
    assert nas.json("status", expect=None)["code"] == "unauthenticated"


@needs_fuse
def test_exec_does_it_all_in_one_go(nas: Nas) -> None:
    done = nas.run("run", "exec", "coder", "-m", "by a program", "--", "sh", "-c", "echo new > made.txt; mkdir sub; mv README.md sub/")
    assert "merged" in done.stdout + done.stderr
    names = {item["path"]: item["kind"] for item in nas.json("show", "main")["changes"]}
    assert names["made.txt"] == "added"
    assert names["sub/README.md"] == "renamed"
    assert not nas.json("status")["mounts"]


@needs_fuse
def test_a_failing_program_fails_the_exec_and_keeps_its_work(nas: Nas) -> None:
    done = nas.run("run", "exec", "coder", "--", "sh", "-c", "echo half > half.txt; exit 7", expect=7)
    assert "Traceback" not in done.stderr
    (run,) = nas.json("run", "list")
    assert run["state"] == "ended"
    assert [item["path"] for item in nas.json("diff", run["run"])] == ["half.txt"]


@needs_fuse
def test_changes_are_committed_after_a_quiet_moment(nas: Nas) -> None:
    run = nas.start()
    place = nas.mount(run["run"])
    base = nas.json("run", "show", run["run"])["head"]
    (place / "quiet.txt").write_text("written and left alone")
    wait_until(lambda: nas.json("run", "show", run["run"])["head"] != base)
    (commit, *_) = nas.json("log", run["run"])
    assert (commit["principal"], commit["run"], commit["lease"]) == ("coder", run["run"], run["lease"])
    assert nas.json("run", "show", run["run"])["uncommitted"] == []


@needs_fuse
def test_a_restore_is_one_more_commit(nas: Nas) -> None:
    run = nas.start()
    place = nas.mount(run["run"])
    before = nas.json("run", "show", run["run"])["head"]
    (place / "README.md").unlink()
    gone = nas.json("commit", run["run"], "-m", "remove")["commit"]
    restored = nas.json("restore", run["run"], before, "--", "README.md")["commit"]
    assert restored not in (before, gone)
    wait_until(lambda: (place / "README.md").exists())
    assert (place / "README.md").read_text() == "hello\n"


def test_version_and_completion_need_no_daemon(bare: Nas) -> None:
    assert bare.run("version").stdout.strip()
    script = bare.run("completion", "bash").stdout
    assert "_NAS_COMPLETE" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_an_unknown_setting_is_an_error_with_a_suggestion(bare: Nas, tmp_path: Path) -> None:
    config = tmp_path / "nas.toml"
    config.write_text("quiet_dalay = '5s'\n")
    done = bare.run("status", expect=2, env={"NAS_CONFIG": str(config)})
    assert "quiet_delay" in done.stderr


def test_the_installed_program_is_what_runs() -> None:
    assert os.access(NAS, os.X_OK)

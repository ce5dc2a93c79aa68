"""What a client of a door needs, ready to paste: real shells and parsers read it back."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from nasd.pasting import basic_settings, mcp_settings, s3_settings

DOORS = {"git": "http://127.0.0.1:8420/git/", "webdav": "http://127.0.0.1:8420/dav/"}


def test_a_shell_reads_the_s3_settings_back() -> None:
    settings = s3_settings("http://127.0.0.1:8420", "r1", "ANLKEY", "se'cret $x", "anl1.e30")
    shown = subprocess.run(
        ["sh", "-c", settings["text"] + "env"], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    )
    exported = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
    assert {name: exported[name] for name in settings["settings"] if name != "bucket"} == {
        name: value for name, value in settings["settings"].items() if name != "bucket"
    }


def test_a_key_pair_without_session_token_sets_none() -> None:
    assert "AWS_SESSION_TOKEN" not in s3_settings("http://h", "r1", "a", "b", "")["text"]


def test_the_mcp_settings_are_the_json_that_clients_read() -> None:
    settings = mcp_settings("http://127.0.0.1:8420/mcp", "anl1.a.b")
    assert json.loads(settings["text"])["mcpServers"]["agent-nas"] == settings["settings"]
    assert settings["settings"]["headers"] == {"Authorization": "Bearer anl1.a.b"}


def test_git_takes_the_credential_from_standard_input_and_not_from_an_argument() -> None:
    settings = basic_settings("git", DOORS, "coder/r1", "l1", "pass")
    assert settings["url"] == "http://127.0.0.1:8420/git/coder/r1.git"
    lines = settings["text"].splitlines()
    fed = subprocess.run(["sh", "-c", lines[1].partition(" | ")[0]], capture_output=True, text=True, check=True)
    assert fed.stdout == "protocol=http\nhost=127.0.0.1:8420\nusername=l1\npassword=pass\n"
    assert all("pass" not in shlex.split(line) for line in lines[2:])


@pytest.mark.parametrize("branch", ["main", "coder/r1"])
def test_webdav_names_the_branch_as_a_collection(branch: str) -> None:
    assert basic_settings("webdav", DOORS, branch, "l1", "pass")["url"] == f"http://127.0.0.1:8420/dav/{branch}/"

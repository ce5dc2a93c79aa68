"""``nas mcp`` and ``nas mcp config``: what a client is given, and that no secret is ever in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nasd.cli.main import run

SECRET = "anl1.a-secret.of-a-lease"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NAS_HOME", str(tmp_path))
    monkeypatch.setenv("NAS_LEASE", SECRET)


def test_a_configuration_is_data_and_where_it_belongs_is_talk(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config"]) == 0
    printed = capsys.readouterr()
    entry = json.loads(printed.out)["mcpServers"]["agent-nas"]
    assert entry["url"] == "http://127.0.0.1:8420/mcp"
    assert ".mcp.json" in printed.err
    assert SECRET not in printed.out + printed.err


def test_a_program_is_configured_with_the_file_of_its_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", "cursor", "--secret-file", "lease.txt", "--url", "https://nas.example/mcp", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    entry = json.loads(document["text"])["mcpServers"]["agent-nas"]
    assert document["transport"] == "stdio"
    assert entry["args"] == ["mcp", "--url", "https://nas.example/mcp", "--lease-file", str(Path("lease.txt").absolute())]


def test_an_unknown_client_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", "nobody"]) == 2
    assert "claude" in capsys.readouterr().err


def test_a_request_without_a_daemon_is_answered_and_the_program_ends_with_its_input(tmp_path: Path) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    done = subprocess.run(
        [sys.executable, "-m", "nasd.cli.main", "mcp", "--url", "http://127.0.0.1:9/mcp"],
        input=line + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"NAS_LEASE": SECRET},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["id"], answer["error"]["code"]) == (1, -32000)
    assert SECRET not in done.stdout + done.stderr


def test_without_a_credential_it_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("NAS_LEASE")
    assert run(["mcp"]) == 2
    assert "NAS_LEASE" in capsys.readouterr().err

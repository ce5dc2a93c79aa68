"""Commands are found by being there, and cost only what they use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from interfaces.faults import Kind
from nasd.cli.failures import EXIT_CODES, EXITS
from nasd.cli.main import run
from nasd.cli.reference import walk_commands
from nasd.cli.tree import Noun, make_root

ROOT = Path(__file__).parents[3]
ADVERTISED = """
init serve stop status doctor mount umount commit log diff show restore propose verify gc export completion version
principal-add principal-list principal-disable token-issue token-list token-revoke
run-start run-list run-show run-exec run-checkout run-end proposal-list proposal-show proposal-diff proposal-withdraw
gate-list gate-show gate-approve gate-reject gate-wait gate-withdraw gate-bypass
lease-list lease-show lease-narrow lease-revoke lease-credentials
key-add key-list key-remove key-authorized ssh login logout
app-password-create app-password-list app-password-revoke certificate-add certificate-list certificate-remove
mcp mcp-config
account-add account-list account-show account-remove account-test account-call account-fetch account-push
label-show label-list label-mark label-unmark label-endorse
policy-validate policy-explain policy-show policy-who-can policy-diff policy-schema policy-replay record-list record-export
record-status record-keys record-checkpoint record-prove record-seal record-redact record-accept
"""


def commands() -> dict[str, click.Command]:
    root = make_root()
    return dict(walk_commands(root, "nas", click.Context(root)))


def test_every_advertised_verb_is_there() -> None:
    assert {path.removeprefix("nas ").replace(" ", "-") for path in commands()} == set(ADVERTISED.split())


def test_a_verb_is_added_by_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "added_verbs"
    (package / "moon").mkdir(parents=True)
    (package / "__init__.py").write_text('"""More verbs."""\n')
    (package / "moon" / "__init__.py").write_text('"""The moon."""\n')
    body = '    """Land."""\n    session.show({"landed": True}, lambda: print("landed"))\n'
    source = "from nasd.cli.session import verb\n@verb\ndef command(session):\n" + body
    (package / "moon" / "land_softly.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    root = Noun("added_verbs", package, "nas")
    assert root.list_commands(click.Context(root)) == ["moon"]
    assert root.main(["moon", "land-softly", "--json"], standalone_mode=False) is None
    assert "Land." in dict(walk_commands(root, "nas", click.Context(root)))["nas moon land-softly"].get_help(click.Context(root))


def test_a_folder_with_a_command_of_its_own_is_a_verb_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "own_verbs"
    (package / "sea").mkdir(parents=True)
    (package / "__init__.py").write_text('"""More verbs."""\n')
    source = "import click\nfrom nasd.cli.session import verb\n@verb\n@click.option('--far', is_flag=True)\ndef command(session{0}):\n"
    own = '    """Look at the sea."""\n    print("far" if far else "near")\n'
    (package / "sea" / "__init__.py").write_text(source.format(", far") + own)
    (package / "sea" / "cross.py").write_text(source.format(", far") + '    """Cross it."""\n    print("crossed")\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    root = Noun("own_verbs", package, "nas")
    assert root.main(["sea", "--far"], standalone_mode=False) is None
    assert root.main(["sea", "cross"], standalone_mode=False) is None
    assert capsys.readouterr().out == "far\ncrossed\n"
    assert [path for path, _ in walk_commands(root, "nas", click.Context(root))] == ["nas sea", "nas sea cross"]


def test_every_verb_has_json_and_says_how_it_can_end() -> None:
    for path, command in commands().items():
        names = {name for parameter in command.params for name in parameter.opts}
        assert {"--json", "--home", "--lease-file"} <= names, path
        assert command.epilog == EXIT_CODES, path
        assert command.help, path
        assert len(command.get_short_help_str(60).removesuffix("...")) == len(command.get_short_help_str(60)), path
        assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option)), path


def test_no_option_takes_a_secret() -> None:
    for path, command in commands().items():
        for parameter in command.params:
            assert not {"--secret", "--token", "--password"} & set(parameter.opts), path


def test_every_kind_of_failure_has_an_exit_code() -> None:
    assert set(EXITS) == set(Kind)
    assert 0 not in EXITS.values()


def test_starting_a_run_imports_nothing_it_does_not_use() -> None:
    program = (
        "import sys; from nasd.cli.main import run; run(['run', 'start', 'x', '--home', '/nonexistent/home']);"
        "import json; json.dump(sorted(sys.modules), sys.stdout)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    modules = set(json.loads(done.stdout))
    assert {name for name in modules if name.startswith("nasd.cli.verbs.")} == {"nasd.cli.verbs.run", "nasd.cli.verbs.run.start"}
    assert not modules & {
        "rich",
        "starlette",
        "uvicorn",
        "apsw",
        "pygit2",
        "yaml",
        "jsonschema",
        "asyncio",
        "store",
        "trust",
        "interfaces.http",
    }
    assert "no daemon is running" in done.stderr


def test_a_mistyped_word_names_the_likely_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "strat"]) == 2
    assert capsys.readouterr().err == "nas: No such command 'strat'. Did you mean 'start'?\nhint: see `nas run --help`\n"
    assert run(["gate", "list", "--stat", "x"]) == 2
    assert "--state" in capsys.readouterr().err
    assert run(["rnu"]) == 2
    assert "'run'" in capsys.readouterr().err
    assert run(["__init__"]) == 2
    assert run(["run/start"]) == 2


def test_help_and_nothing_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "Commands:" in capsys.readouterr().out
    assert run([]) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_NAS_COMPLETE" in capsys.readouterr().out


def test_completion_completes_nouns_verbs_and_options() -> None:
    for words, position, expected in (("nas ru", 1, "run"), ("nas run sta", 2, "start"), ("nas run start --pur", 3, "--purpose")):
        environment = {"_NAS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [sys.executable, "-m", "nasd.cli.main"], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
        assert f"plain,{expected}" in done.stdout.split()

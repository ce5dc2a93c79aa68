"""The file of targets: what it says, and what is wrong with it, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasd.config import Settings
from nasd.doctor import examine
from nasd.errors import Misconfigured
from nasd.notices.targets import EVENTS, read_targets


def write(folder: Path, text: str) -> str:
    path = folder / "notify.toml"
    path.write_text(text)
    return str(path)


def test_no_file_is_nobody_to_tell() -> None:
    assert read_targets("") == ()


def test_targets_are_read_with_paths_beside_the_file(tmp_path: Path) -> None:
    mail, hook = read_targets(
        write(
            tmp_path,
            '[[target]]\nname = "mail"\nurl_file = "mail"\nroles = ["owner"]\nevents = ["asked"]\n'
            '[[target]]\nname = "hook"\nwebhook = "https://hooks.example.net/nas"\nkey_file = "/etc/hook.key"\n',
        )
    )
    assert (mail.url_file, mail.events) == (str(tmp_path / "mail"), {"asked"})
    assert (hook.webhook, hook.key_file, hook.events) == ("https://hooks.example.net/nas", "/etc/hook.key", EVENTS)
    assert mail.wants("asked", "owner") and not mail.wants("asked", "reviewer") and not mail.wants("expired", "owner")
    assert hook.wants("expired", "anybody") and mail.wants("asked", "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("target = 3", "expected .*target"),
        ("[[target]]\n", "needs a name"),
        ('[[target]]\nname = "a"\n', "name one of"),
        ('[[target]]\nname = "a"\nurl_file = "x"\nwebhook = "http://y"\n', "name one of"),
        ('[[target]]\nname = "a"\nurl_fle = "x"\n', "unknown key 'url_fle'"),
        ('[[target]]\nname = "a"\nurl_file = "x"\nkey_file = "y"\n', "key_file"),
        ('[[target]]\nname = "a"\nwebhook = "http://y"\n', "key_file"),
        ('[[target]]\nname = "a"\nwebhook = "ftp://y"\nkey_file = "k"\n', "http or https"),
        ('[[target]]\nname = "a"\nwebhook = "https://u:p@y"\nkey_file = "k"\n', "file of its own"),
        ('[[target]]\nname = "a"\nwebhook = "https://y/?token=z"\nkey_file = "k"\n', "file of its own"),
        ('[[target]]\nname = "a"\nurl_file = "x"\nevents = ["maybe"]\n', "'maybe' is not known"),
        ('[[target]]\nname = "a"\nurl_file = 3\n', "expected text"),
        ('[[target]]\nname = "a"\nurl_file = "x"\nroles = "owner"\n', "expected a list"),
        ('[[target]]\nname = "a"\nurl_file = "x"\n[[target]]\nname = "a"\nurl_file = "y"\n', "same name"),
        ("[[target]\n", "cannot read"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(Misconfigured, match=why) as caught:
        read_targets(write(tmp_path, text))
    assert caught.value.hint


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot read"):
        read_targets(str(tmp_path / "none.toml"))


def test_the_doctor_says_which_secret_is_missing_or_can_be_read_by_others(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[[target]]\nname = "mail"\nurl_file = "mail"\n[[target]]\nname = "hook"\nwebhook = "http://y"\nkey_file = "key"\n'
        '[[target]]\nname = "good"\nurl_file = "good"\n',
    )
    for name, mode in (("key", 0o644), ("good", 0o600)):
        (tmp_path / name).write_text("secret")
        (tmp_path / name).chmod(mode)
    found = {item["check"]: item for item in examine(Settings(home=tmp_path, notify=path))["items"] if item["check"].startswith("notify")}
    assert {check: item["ok"] for check, item in found.items()} == {"notify mail": False, "notify hook": False, "notify good": True}
    assert found["notify hook"]["detail"] == str(tmp_path / "key") and "0600" in found["notify hook"]["hint"]
    (wrong,) = [item for item in examine(Settings(home=tmp_path, notify="/none"))["items"] if item["check"] == "notify"]
    assert not wrong["ok"] and wrong["hint"]

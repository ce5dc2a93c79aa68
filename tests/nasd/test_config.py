"""Settings: flag over environment over file over default, unknown keys named, secrets never settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasd.config import DEFAULT_LISTEN, read_settings, secret_of
from nasd.errors import Misconfigured


def configured(tmp_path: Path, text: str) -> dict[str, str]:
    (tmp_path / "nas.toml").write_text(text)
    return {"NAS_CONFIG": str(tmp_path / "nas.toml"), "HOME": str(tmp_path)}


def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    environ = configured(tmp_path, 'quiet_delay = "5s"\nbranch_ttl = "3d"\ntrash_period = "1h"\n')
    settings = read_settings(environ | {"NAS_QUIET_DELAY": "7s", "NAS_BRANCH_TTL": "4d"}, {"quiet_delay": "9s", "branch_ttl": None})
    assert (settings.quiet_delay, settings.branch_ttl, settings.trash_period) == (9, 4 * 86400, 3600)
    assert settings.listen == DEFAULT_LISTEN


def test_an_unknown_key_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as caught:
        read_settings(configured(tmp_path, "quiet_dalay = 5\n"))
    assert "quiet_dalay" in caught.value.message
    assert "quiet_delay" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('quiet_delay = "soon"', "quiet_delay"),
        ("listen = 8420", "listen"),
        ('listen = "0.0.0.0:8420"', "loopback"),
        ('listen = "127.0.0.1:http"', "HOST:PORT"),
        ('listen = ":8420"', "HOST:PORT"),
        ('tls_certificate = "c.pem"', "belong together"),
        ('workers = "many"', "workers"),
        ("workers = 0", "workers"),
        ("workers = 65", "workers"),
        ('allow_other = "perhaps"', "allow_other"),
        ("not toml at all", "cannot read"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_it(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(Misconfigured, match=word) as caught:
        read_settings(configured(tmp_path, text + "\n"))
    assert caught.value.hint


def test_nas_home_selects_the_data_directory(tmp_path: Path) -> None:
    settings = read_settings({"NAS_HOME": str(tmp_path / "x"), "HOME": str(tmp_path)})
    assert settings.store == tmp_path / "x" / "store"
    assert settings.trust == tmp_path / "x" / "trust"
    assert settings.socket == tmp_path / "x" / "run" / "nasd.sock"


def test_the_secret_comes_from_the_environment_a_file_or_the_owner(tmp_path: Path) -> None:
    settings = read_settings({"NAS_HOME": str(tmp_path), "HOME": "/"})
    assert secret_of({}, settings) is None
    settings.owner_token_file.write_text("owner-secret\n")
    assert secret_of({}, settings) == "owner-secret"
    (tmp_path / "lease").write_text("lease-secret\n")
    assert secret_of({"NAS_LEASE_FILE": str(tmp_path / "lease")}, settings) == "lease-secret"
    assert secret_of({"NAS_LEASE": "direct", "NAS_LEASE_FILE": "/nowhere"}, settings) == "direct"
    with pytest.raises(Misconfigured):
        secret_of({"NAS_TOKEN_FILE": str(tmp_path / "missing")}, settings)


@pytest.mark.parametrize("cover", ['tls_certificate = "c.pem"\ntls_key = "k.pem"', 'proxies = "10.0.0.1, 10.0.0.2"'])
def test_a_public_address_needs_tls_or_a_declared_proxy(tmp_path: Path, cover: str) -> None:
    settings = read_settings(configured(tmp_path, f'listen = "[::]:8420"\n{cover}\n'))
    assert settings.address == ("::", 8420)


def test_names_and_proxies_are_lists(tmp_path: Path) -> None:
    settings = read_settings(configured(tmp_path, 'names = "NAS.example, files.example,"\nproxies = "10.0.0.1"\nworkers = 3\n'))
    assert settings.host_names == {"nas.example", "files.example"}
    assert settings.proxy_addresses == {"10.0.0.1"}
    assert settings.workers == 3

"""Settings: the only reader of the environment and of configuration files.

1. A flag wins over the environment (``NAS_…``), the environment over the file, the file over the default.
2. The file is TOML: ``$NAS_CONFIG``, else ``$XDG_CONFIG_HOME/agent-nas/nas.toml``, else ``/etc/agent-nas/nas.toml``.
3. An unknown key is an error that suggests the nearest known one. A secret is never a setting.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from nasd.durations import parse_duration
from nasd.errors import Misconfigured
from nasd.identities.issuers import Issuer, read_issuers

DEFAULT_LISTEN = "127.0.0.1:8420"
MOST_WORKERS = 64
SHORTEST_PROXY_SECRET = 32
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. Durations are in seconds, sizes in bytes."""

    home: Path
    listen: str = DEFAULT_LISTEN
    quiet_delay: float = 2.0
    branch_ttl: float = 14 * 86400
    trash_period: float = 7 * 86400
    check_timeout: float = 300.0
    notify: str = ""
    record_age: float = 0.0
    record_kept: float = 0.0
    witnesses: str = ""
    anchors: str = ""
    telemetry_endpoint: str = ""
    allow_other: bool = False
    log_level: str = "info"
    workers: int = 2
    names: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    proxies: str = ""
    proxy_secret_file: str = ""
    issuers: tuple[Issuer, ...] = ()

    @property
    def host_names(self) -> frozenset[str]:
        """Return the names under which requests may ask for this server, beside those of the loopback."""
        return frozenset(name.lower() for name in _listed(self.names))

    @property
    def proxy_addresses(self) -> frozenset[str]:
        """Return the addresses of the proxies that are believed what they say of a client."""
        return frozenset(_listed(self.proxies))

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port to listen on."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def store(self) -> Path:
        """Return the folder of trees, branches and content."""
        return self.home / "store"

    @property
    def trust(self) -> Path:
        """Return the folder of the trust database and its keys."""
        return self.home / "trust"

    @property
    def run(self) -> Path:
        """Return the folder of sockets, locks and process ids; it can be deleted while nothing runs."""
        return self.home / "run"

    @property
    def checkpoints(self) -> Path:
        """Return the folder of signed checkpoints of the record."""
        return self.home / "checkpoints"

    @property
    def anchor_folders(self) -> tuple[Path, ...]:
        """Return the folders elsewhere in which the last checkpoint is kept too."""
        return tuple(Path(folder) for folder in _listed(self.anchors))

    @property
    def witness_pairs(self) -> tuple[tuple[str, str], ...]:
        """Return address and public key of each witness."""
        return tuple((url, key) for url, key in (pair.split() for pair in _listed(self.witnesses)))

    @property
    def log(self) -> Path:
        """Return the folder of log files."""
        return self.home / "log"

    @property
    def socket(self) -> Path:
        """Return the Unix socket of the API."""
        return self.run / "nasd.sock"

    @property
    def link(self) -> Path:
        """Return the Unix socket at which gateway processes ask the daemon."""
        return self.run / "gateways.sock"

    @property
    def broker_socket(self) -> Path:
        """Return the Unix socket at which the daemon asks the broker."""
        return self.run / "broker.sock"

    @property
    def owner_token_file(self) -> Path:
        """Return the file with the owner's own token, readable by nobody else."""
        return self.home / "owner.token"


KEPT_NAMES = frozenset(
    {
        "HOME",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "NOTIFY_SOCKET",
        "PATH",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
    }
)
"""The variables that a daemon keeps beside those of `KEPT_PREFIXES`; every other one is the broker's."""
KEPT_PREFIXES = ("LC_", "LISTEN_", "NAS_", "PYTHON", "XDG_")
_CREDENTIAL_VARIABLES = frozenset({"NAS_LEASE", "NAS_TOKEN"})
_DURATIONS = frozenset({"quiet_delay", "branch_ttl", "trash_period", "check_timeout", "record_age", "record_kept"})
_KNOWN = tuple(field.name for field in fields(Settings))


def read_settings(environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings in force.

    `flags` holds what the command line said; None values count as not said. Raises `Misconfigured` for a file that
    cannot be read, an unknown key or a value of the wrong form.
    """
    values: dict[str, Any] = {}
    values.update(_from_file(_config_file(environ)))
    values.update({name: environ[_variable(name)] for name in _KNOWN if _variable(name) in environ})
    values.update({name: value for name, value in (flags or {}).items() if value is not None})
    values.setdefault("home", _default_home(environ))
    settings = Settings(**{name: _checked(name, value) for name, value in values.items()})
    _check_exposure(settings)
    return settings


def split_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a daemon keeps of its environment, and what it has no use for and hands to the broker, since it may be a secret."""
    kept = {name for name in environ if name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)} - _CREDENTIAL_VARIABLES
    return {name: environ[name] for name in kept}, {name: value for name, value in environ.items() if name not in kept}


def ssh_request(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what an SSH client asked its server to run, and the git protocol it speaks; empty where it said nothing."""
    return environ.get("SSH_ORIGINAL_COMMAND", ""), environ.get("GIT_PROTOCOL", "")


def secret_of(environ: Mapping[str, str], settings: Settings) -> str | None:
    """Return the secret to present to the daemon: a lease, a token, or the owner's own; None when there is none.

    ``NAS_LEASE_FILE`` and ``NAS_TOKEN_FILE`` name files; ``NAS_LEASE`` and ``NAS_TOKEN`` hold the secret itself.
    """
    for variable in ("NAS_LEASE", "NAS_TOKEN"):
        if secret := environ.get(variable):
            return secret.strip()
        if path := environ.get(variable + "_FILE"):
            return read_secret(Path(path))
    if settings.owner_token_file.exists():
        return read_secret(settings.owner_token_file)
    return None


def proxy_secret_of(settings: Settings) -> bytes:
    """Return the secret by which declared proxies prove themselves, empty where none was agreed. Raises `Misconfigured`."""
    if not settings.proxy_secret_file:
        return b""
    secret = read_secret(Path(settings.proxy_secret_file)).encode()
    if len(secret) < SHORTEST_PROXY_SECRET:
        raise Misconfigured(
            f"the secret in {settings.proxy_secret_file} is shorter than {SHORTEST_PROXY_SECRET} characters", hint="openssl rand -hex 32"
        )
    return secret


def login_file(environ: Mapping[str, str]) -> Path:
    """Return the file in which a login of this user is kept."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/")) / ".config")
    return Path(base) / "agent-nas" / "login.token"


def read_secret(path: Path) -> str:
    """Return the secret that a file holds. Raises `Misconfigured`."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"cannot read the secret in {path}: {error}", hint="name a readable file that holds one secret") from error


def _variable(name: str) -> str:
    return "NAS_" + name.upper()


def _default_home(environ: Mapping[str, str]) -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/nas")
    data = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "share")
    return Path(data) / "agent-nas"


def _config_file(environ: Mapping[str, str]) -> Path | None:
    if named := environ.get("NAS_CONFIG"):
        return Path(named)
    folder = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/")) / ".config")
    candidates = (Path(folder) / "agent-nas" / "nas.toml", Path("/etc/agent-nas/nas.toml"))
    return next((path for path in candidates if path.exists()), None)


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Misconfigured(f"cannot read {path}: {error}", hint="fix the file or name another with NAS_CONFIG") from error
    for key in values:
        if key not in _KNOWN:
            near = difflib.get_close_matches(key, _KNOWN, n=1)
            raise Misconfigured(
                f"{path}: unknown setting {key!r}", hint=f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_KNOWN)}"
            )
    return values


def _checked(name: str, value: Any) -> Any:
    if name == "home":
        return Path(value).absolute()
    if name == "notify":
        return value and str(Path(value).absolute())
    if name in _DURATIONS:
        try:
            return parse_duration(value)
        except ValueError as error:
            raise Misconfigured(f"{name}: {error}", hint="write a duration such as 90s, 15m, 24h or 7d") from error
    if name == "allow_other":
        return _checked_flag(name, value)
    if name == "workers":
        return _checked_workers(value)
    if name == "issuers":
        return read_issuers(_parsed(name, value))
    if not isinstance(value, str):
        raise Misconfigured(f"{name}: expected text, found {value!r}", hint="put the value in quotes")
    if name == "listen":
        _check_address(value)
    if name == "witnesses":
        _check_witnesses(value)
    if name == "anchors" and not all(folder.startswith("/") for folder in _listed(value)):
        raise Misconfigured(f"anchors: expected absolute paths, found {value!r}", hint="name folders outside of the data directory")
    return value


def _parsed(name: str, value: Any) -> Any:
    """Return a value that the environment or another process gave as JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise Misconfigured(f"{name}: expected JSON, found {value!r}", hint="write it in the configuration file") from error


def _checked_flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in {"1", "true", "yes", "on"}:
        return True
    if str(value).lower() in {"0", "false", "no", "off", ""}:
        return False
    raise Misconfigured(f"{name}: expected true or false, found {value!r}", hint="write true or false")


def _checked_workers(value: Any) -> int:
    if not str(value).isdecimal() or not 1 <= int(value) <= MOST_WORKERS:
        raise Misconfigured(f"workers: expected 1 to {MOST_WORKERS}, found {value!r}", hint="one for each core that may serve")
    return int(value)


def _check_address(listen: str) -> None:
    host, separator, port = listen.rpartition(":")
    if not separator or not host or not port.isdigit() or int(port) > 65535:
        raise Misconfigured(f"listen: expected HOST:PORT, found {listen!r}", hint=f"for example {DEFAULT_LISTEN}")


def _check_witnesses(value: str) -> None:
    for pair in _listed(value):
        url, _, key = pair.partition(" ")
        if not url.startswith(("http://", "https://")) or len(key.split()) != 1 or key.count("+") < 2:
            raise Misconfigured(
                f"witnesses: expected an address and a key, found {pair!r}",
                hint="write URL KEY, as in `https://witness.example witness.example/w1+...`; several are separated by commas",
            )


def _check_exposure(settings: Settings) -> None:
    """Refuse to speak plain HTTP beyond this machine: secrets would travel for all to read."""
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise Misconfigured("tls_certificate and tls_key belong together", hint="name both files, in PEM")
    host = settings.address[0]
    if host in _LOOPBACK or settings.tls_certificate or settings.proxies:
        return
    raise Misconfigured(
        f"listen: {host} is not a loopback address, and without TLS every secret would travel in the clear",
        hint="set tls_certificate and tls_key, or proxies to the address of the reverse proxy that speaks TLS, or stay on 127.0.0.1",
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

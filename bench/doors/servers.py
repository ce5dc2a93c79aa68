"""The servers a door is measured against: ours through `nas serve`, the limit (nginx), and what people use today.

1. Every server has its data in a folder of its own below one, on the same disk, and asks for a secret where it can.
2. A server that is not installed here says so and is left out.
3. CPU time is that of a server's whole tree of processes; a server that is idle costs the others next to nothing.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAS = Path(sys.executable).with_name("nas")
USER, PASSWORD = "bench", "a-password-for-the-bench"
BASIC = "Authorization: Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_TICK = os.sysconf("SC_CLK_TCK")
_START_SECONDS = 30.0
_END_SECONDS = 10.0
_PORTS = iter(range(21_000, 30_000))


class Missing(Exception):
    """A server is not installed here."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where its files are (with a slash at the end), the headers a client sends, and its root processes."""

    name: str
    url: str
    headers: tuple[str, ...]
    pids: tuple[int, ...]

    def address(self, method: str, name: str) -> str:
        """Return the address that `method` is sent to for a file."""
        del method
        return self.url + name

    def cpu(self) -> float:
        """Return the CPU seconds its processes have used."""
        return sum(_cpu_of(pid) for pid in _tree_of(self.pids))

    def forget_peak(self) -> None:
        """Let the peak of memory begin anew."""
        for pid in _tree_of(self.pids):
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak(self) -> int:
        """Return the peak of resident bytes of its largest process."""
        return max(_peak_of(pid) for pid in _tree_of(self.pids))


Start = Callable[[Path], AbstractContextManager[Server]]


@contextmanager
def running_nas(folder: Path) -> Iterator[tuple[Any, Any, Callable[..., str]]]:
    """Run the appliance and give its status, a run, and what calls ``nas`` with arguments and returns what it prints."""
    call = partial(_nas, folder / "home")
    call("init")
    call("serve", "--background", "--listen", f"127.0.0.1:{free_port()}")
    try:
        yield json.loads(call("status", "--json")), json.loads(call("run", "start", "coder", "--json")), call
    finally:
        call("stop")


@contextmanager
def serve_http(folder: Path) -> Iterator[Server]:
    """Run the appliance and give the files of a run over the HTTP API."""
    with running_nas(folder) as (status, run, _):
        url = f"{status['doors']['http'].rstrip('/')}/v1/branches/{quote(run['branch'], safe='')}/files/"
        pids = (status["pid"], *status.get("gateways", ()))
        yield Server("nas http", url, (f"Authorization: Bearer {run['secret']}",), tuple(pids))


@contextmanager
def serve_webdav(folder: Path) -> Iterator[Server]:
    """Run the appliance and give the files of a run over WebDAV, with the lease's Basic credentials."""
    with running_nas(folder) as (status, run, call):
        given = json.loads(call("lease", "credentials", run["lease"], "--for", "webdav", "--json"))
        secret = base64.b64encode(f"{given['settings']['user']}:{given['settings']['password']}".encode()).decode()
        pids = (status["pid"], *status.get("gateways", ()))
        yield Server("nas webdav", given["url"], (f"Authorization: Basic {secret}",), tuple(pids))


@contextmanager
def serve_apache(folder: Path) -> Iterator[Server]:
    """Run Apache with its WebDAV module over a folder."""
    binary, port = find_program("apache2"), free_port()
    (folder / "files").mkdir(parents=True)
    folder.chmod(0o755)
    modules = ("mpm_event", "authn_core", "authn_file", "auth_basic", "authz_core", "authz_user", "dav", "dav_fs", "mime", "env")
    loads = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in modules)
    subprocess.run([find_program("htpasswd"), "-cbs", str(folder / "users"), USER, PASSWORD], check=True, capture_output=True)
    (folder / "apache.conf").write_text(
        f"""
{loads}
ServerRoot {folder}
ServerName 127.0.0.1
PidFile {folder}/pid
Listen 127.0.0.1:{port}
ErrorLog {folder}/error.log
DocumentRoot {folder}/files
DavLockDB {folder}/locks
MaxKeepAliveRequests 0
TypesConfig /etc/mime.types
<Directory {folder}/files>
  Dav on
  AuthType Basic
  AuthName bench
  AuthUserFile {folder}/users
  Require valid-user
</Directory>
"""
    )
    shutil.chown(folder, "www-data")
    shutil.chown(folder / "files", "www-data")
    with running([binary, "-f", str(folder / "apache.conf"), "-DFOREGROUND"], port, APACHE_RUN_USER="www-data") as pid:
        yield Server("apache webdav", f"http://127.0.0.1:{port}/", (BASIC,), (pid,))


@contextmanager
def serve_wsgidav(folder: Path) -> Iterator[Server]:
    """Run WsgiDAV with its own server over a folder."""
    # Beside this interpreter it may be without a server of its own; an installed one has it.
    binary, port = shutil.which("wsgidav"), free_port()
    if binary is None:
        raise Missing("wsgidav (with cheroot) is not installed here")
    (folder / "files").mkdir(parents=True)
    users = {"*": {USER: {"password": PASSWORD}}}
    settings = {"host": "127.0.0.1", "port": port, "provider_mapping": {"/": str(folder / "files")}, "verbose": 0, "lock_storage": True}
    settings |= {"simple_dc": {"user_mapping": users}, "http_authenticator": {"accept_digest": False, "default_to_digest": False}}
    (folder / "wsgidav.json").write_text(json.dumps(settings))
    with running([binary, "-c", str(folder / "wsgidav.json")], port) as pid:
        yield Server("wsgidav", f"http://127.0.0.1:{port}/", (BASIC,), (pid,))


@contextmanager
def serve_nginx(folder: Path) -> Iterator[Server]:
    """Run nginx with two workers over a folder; PUT through its DAV module, which syncs nothing."""
    binary, port = find_program("nginx"), free_port()
    (folder / "files").mkdir(parents=True)
    (folder / "nginx.conf").write_text(
        f"""
worker_processes 2; daemon off; pid {folder}/pid; error_log {folder}/error.log; user root;
events {{ worker_connections 512; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; client_max_body_size 0; client_body_temp_path {folder}/body;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      if ($http_authorization != "{BASIC.partition(": ")[2]}") {{ return 401; }}
      root {folder}/files; dav_methods PUT DELETE; create_full_put_path on;
    }}
  }}
}}
"""
    )
    with running([binary, "-c", str(folder / "nginx.conf"), "-p", str(folder)], port) as pid:
        yield Server("nginx", f"http://127.0.0.1:{port}/", (BASIC,), (pid,))


@contextmanager
def serve_rclone(folder: Path) -> Iterator[Server]:
    """Run ``rclone serve webdav`` over a folder."""
    binary, port = find_program("rclone"), free_port()
    (folder / "files").mkdir(parents=True)
    command = [binary, "--config", "/dev/null", "serve", "webdav", str(folder / "files"), "--addr", f"127.0.0.1:{port}"]
    with running([*command, "--user", USER, "--pass", PASSWORD], port) as pid:
        yield Server("rclone webdav", f"http://127.0.0.1:{port}/", (BASIC,), (pid,))


@contextmanager
def serve_juicefs(folder: Path) -> Iterator[Server]:
    """Run ``juicefs webdav`` over files below a folder, with its metadata in SQLite."""
    binary, port = find_program("juicefs"), free_port()
    folder.mkdir(parents=True)
    meta = f"sqlite3://{folder}/meta.db"
    volume = ["format", "--storage", "file", "--bucket", f"{folder}/data/", "--trash-days", "0", meta, "bench"]
    subprocess.run([binary, "--no-agent", *volume], check=True, capture_output=True)
    command = [binary, "--no-agent", "webdav", "--no-usage-report", "--cache-dir", str(folder / "cache"), meta, f"127.0.0.1:{port}"]
    with running(command, port, WEBDAV_USER=USER, WEBDAV_PASSWORD=PASSWORD) as pid:
        yield Server("juicefs webdav", f"http://127.0.0.1:{port}/", (BASIC,), (pid,))


@contextmanager
def serve_weed(folder: Path) -> Iterator[Server]:
    """Run SeaweedFS with its filer, which asks nobody for a secret."""
    binary, port = find_program("weed"), free_port()
    folder.mkdir(parents=True)
    ports = ["-master.port", str(free_port()), "-volume.port", str(free_port()), "-filer", "-filer.port", str(port)]
    command = [binary, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=8", *ports]
    with running(command, port) as pid:
        yield Server("seaweedfs filer", f"http://127.0.0.1:{port}/bench/", (), (pid,))


SERVERS: dict[str, Start] = {
    "http": serve_http,
    "webdav": serve_webdav,
    "apache": serve_apache,
    "wsgidav": serve_wsgidav,
    "nginx": serve_nginx,
    "rclone": serve_rclone,
    "juicefs": serve_juicefs,
    "weed": serve_weed,
}


def free_port() -> int:
    """Return a port nobody listens on now; ten thousand above it is one too, which SeaweedFS wants."""
    for port in _PORTS:
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue
    raise Missing("every port is taken")


@contextmanager
def running(command: Sequence[str], port: int, **environment: str) -> Iterator[int]:
    """Run a server until the block ends and give its process, once its port answers."""
    child = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        _wait_for(port, child)
        yield child.pid
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a server with all it started; some of the packages start theirs through a wrapper that passes no signal on."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _wait_for(port: int, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise Missing(f"{child.args} did not start")


def find_program(name: str) -> str:
    """Return where a program is: beside this interpreter, or on the path. Raises `Missing`."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not installed here")
    return found


def _nas(home: Path, *arguments: str) -> str:
    environment = {**os.environ, "NAS_HOME": str(home)}
    return subprocess.run([NAS, *arguments], env=environment, check=True, capture_output=True, text=True).stdout


def _tree_of(pids: Sequence[int]) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except FileNotFoundError:
                continue
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found & parents.keys()


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _peak_of(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0

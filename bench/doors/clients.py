"""The clients that measure: wrk for many small requests, curl for one large one.

1. A figure is what the server's processes used and what the client counted, over the same stretch of time.
2. An answer that is no success spoils a figure: it is raised, not averaged.
"""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from servers import Server

SECONDS = 4
_PUT_SCRIPT = """
local file = io.open("{content}", "rb")
wrk.method, wrk.body = "PUT", file:read("*a")
file:close()
local paths = {{{paths}}}
local number = 0
function request()
  number = number + 1
  return wrk.format(nil, paths[number % #paths + 1])
end
"""


_LIST_SCRIPT = """
wrk.method, wrk.headers["Depth"], wrk.headers["Content-Type"] = "PROPFIND", "1", "application/xml"
wrk.body = [[<?xml version="1.0"?><D:propfind xmlns:D="DAV:"><D:prop>
<D:resourcetype/><D:getcontentlength/><D:getlastmodified/><D:getetag/></D:prop></D:propfind>]]
"""


class Failed(Exception):
    """A server answered with something else than success."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How many requests (or bytes) there were, the seconds they took, and the server's CPU seconds and peak of memory."""

    amount: int
    seconds: float
    cpu: float
    peak: int

    @property
    def rate(self) -> float:
        """Return requests (or bytes) a second."""
        return self.amount / self.seconds

    @property
    def cost(self) -> float:
        """Return CPU seconds for one request (or byte)."""
        return self.cpu / self.amount


def get_small(server: Server, content: Path, clients: int) -> Figure:
    """Have `clients` connections read one small file over and over."""
    put_once(server, content, "small")
    return _wrk(server, server.address("GET", "small"), clients)


def put_small(server: Server, content: Path, clients: int) -> Figure:
    """Have `clients` connections put small files under a thousand names, new ones first, then replaced ones."""
    script = content.with_suffix(".lua")
    addresses = [urlsplit(server.address("PUT", f"put-{number}")) for number in range(1000)]
    paths = ", ".join(f'"{each.path}{"?" if each.query else ""}{each.query}"' for each in addresses)
    script.write_text(_PUT_SCRIPT.format(content=content, paths=paths))
    return _wrk(server, server.url, clients, "-s", str(script))


def list_folder(server: Server, content: Path, clients: int) -> Figure:
    """Have `clients` connections ask for four properties of a thousand files in a folder (PROPFIND, depth 1)."""
    script = content.with_suffix(".propfind.lua")
    script.write_text(_LIST_SCRIPT)
    _curl(server, "many/", "-o", "/dev/null", "-X", "MKCOL")
    _curl(server, "many/[0000-0999].txt", "-o", "/dev/null", "-T", str(content))
    return _wrk(server, f"{server.url}many/", clients, "-s", str(script))


def get_large(server: Server, content: Path, clients: int) -> Figure:
    """Read one large file once, after it was read once."""
    del clients
    put_once(server, content, "large")
    _curl(server, "large", "-o", "/dev/null")
    return _large(server, content, "-o", "/dev/null")


def put_large(server: Server, content: Path, clients: int) -> Figure:
    """Put one large file once."""
    del clients
    return _large(server, content, "-o", "/dev/null", "-T", str(content))


def put_once(server: Server, content: Path, name: str) -> None:
    """Make sure that a server has a file."""
    _curl(server, name, "-o", "/dev/null", "-T", str(content))


def _large(server: Server, content: Path, *arguments: str) -> Figure:
    server.forget_peak()
    cpu, began = server.cpu(), time.monotonic()
    _curl(server, "large", *arguments)
    return Figure(content.stat().st_size, time.monotonic() - began, server.cpu() - cpu, server.peak())


def _wrk(server: Server, url: str, clients: int, *arguments: str) -> Figure:
    server.forget_peak()
    headers = [part for header in server.headers for part in ("-H", header)]
    cpu = server.cpu()
    command = ["wrk", "-t1", f"-c{clients}", f"-d{SECONDS}", *headers, *arguments, url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    used = server.cpu() - cpu
    found = re.search(r"(\d+) requests in ([\d.]+)s", output)
    if found is None or "Non-2xx" in output:
        raise Failed(output)
    return Figure(int(found[1]), float(found[2]), used, server.peak())


def _curl(server: Server, name: str, *arguments: str) -> None:
    headers = [part for header in server.headers for part in ("-H", header)]
    address = server.address("PUT" if "-T" in arguments else "GET", name)
    command = ["curl", "-sS", "--fail", "-H", "Expect:", *headers, *arguments, address]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr)

"""An appliance with every door of the HTTP family on a real socket, whose clients come from where a declared proxy says."""

from __future__ import annotations

import http.client
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interfaces.web.guard import LOOPBACK_NAMES
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from nasd.gateway_process import make_family
from nasd.identities.lockout import FREE
from nasd.repositories import GitRepositories
from tests.house_of_doors import HouseOfDoors, open_house
from tests.serving import serving

PROXY_SECRET = "the secret that was agreed with the proxy of tests"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Served:
    """An appliance and where it is served."""

    house: HouseOfDoors
    url: str

    def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, *, client: str = "", host: str = "") -> Answer:
        """Ask a door, from the address `client` (empty: from the loopback)."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        depth = {"depth": "1"} if method == "PROPFIND" else {}
        sent = {**depth, **({"host": host} if host else {}), **({"x-forwarded-for": client} if client else {}), **(headers or {})}
        with closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)) as connection:
            connection.request(method, path, headers=sent)
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())


def keep_failing(served: Served, subject: str, client: str) -> None:
    """Have somebody wait so long that no test is over before."""
    for _ in range(20):
        served.house.control._doorkeeper._attempts.strike(subject, client, now=time.time(), free=FREE)


@contextmanager
def served_house(folder: Path, names: frozenset[str] = LOOPBACK_NAMES) -> Iterator[Served]:
    """Serve an appliance while the block runs."""
    with open_house(folder) as house:
        limits = Limits()
        pool = Pool("identities", limits.threads, limits.uploads, house.control)
        family = make_family(house.control, GitRepositories(house.house.desk, house.control), pool, limits, names)
        try:
            with serving(family, proxies=frozenset({"127.0.0.1"}), proxy_secret=PROXY_SECRET.encode()) as url:
                yield Served(house, url)
        finally:
            pool.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Return a served appliance."""
    with served_house(tmp_path) as found:
        yield found


def basic(user: str, password: str) -> dict[str, str]:
    """Return the header of HTTP Basic credentials."""
    return {"authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def bearer(secret: str) -> dict[str, str]:
    """Return the header of a bearer secret."""
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def wrong() -> Callable[[str], str]:
    """Return what makes another secret of the same form of one."""
    return lambda secret: secret[:-2] + ("A" if secret[-2] != "A" else "B") + secret[-1]

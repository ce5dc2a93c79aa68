"""The WebDAV clients people use, each at its usual work on a branch that is mounted at the same time.

Each client gets what ``nas lease credentials`` prints. What it writes is compared with what the mount shows, and what the mount writes
with what it reads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import Nas, needs_fuse, wait_until

pytestmark = needs_fuse

TIMEOUT = 120
PROGRAMS = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Site:
    """A run's branch as a WebDAV client and as a mount see it."""

    url: str
    user: str
    password: str
    mount: Path
    folder: Path

    def run(self, *command: str, typed: str = "", expect: int = 0) -> str:
        """Run a client and return what it printed."""
        environment = {"PATH": PROGRAMS, "HOME": str(self.folder), "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, cwd=self.folder, check=False, input=typed
        )
        assert done.returncode == expect, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def curl(self, path: str, *options: str) -> str:
        """Run curl on a path and return the status and what it printed."""
        return self.run("curl", "-s", "-u", f"{self.user}:{self.password}", "-w", "%{http_code}", *options, self.url + path)


@pytest.fixture
def site(shared: Nas, tmp_path: Path) -> Iterator[Site]:
    run = shared.start()
    given = shared.json("lease", "credentials", run["lease"], "--for", "webdav")
    place = shared.mount(run["run"])
    folder = tmp_path / "client"
    folder.mkdir()
    settings = given["settings"]
    yield Site(given["url"], settings["user"], settings["password"], place, folder)
    shared.run("umount", str(place), expect=None)


def needs(program: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Skip a test where a client is not installed, and say so."""
    found = shutil.which(program, path=PROGRAMS)
    return pytest.mark.skipif(found is None, reason=f"{program} is not installed")


def plant(root: Path) -> Path:
    """Make a folder with small, empty, deep, oddly named and large files."""
    for name, data in {
        "readme.txt": b"hello\n",
        "empty": b"",
        "deep/er/and/deeper.bin": bytes(range(256)) * 40,
        "odd/näme with spaces & plus+.txt": b"odd\n",
        "odd/100%.txt": b"percent\n",
        "large.bin": os.urandom(9 << 20),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@needs("curl")
def test_curl_reads_ranges_resumes_and_keeps_to_conditions(site: Site) -> None:
    (site.mount / "big.bin").write_bytes(bytes(range(256)) * 8192)
    assert site.curl("big.bin", "-r", "100-199", "-o", "part") == "206"
    assert (site.folder / "part").read_bytes() == (bytes(range(256)) * 2)[100:200]
    (site.folder / "resumed").write_bytes((bytes(range(256)) * 8192)[:1_000_000])
    assert site.curl("big.bin", "-C", "-", "-o", "resumed") == "206"
    assert (site.folder / "resumed").read_bytes() == (site.mount / "big.bin").read_bytes()
    tag = next(line for line in site.curl("README.md", "-I").splitlines() if line.startswith("etag:")).partition(" ")[2]
    assert site.curl("README.md", "-H", f"If-None-Match: {tag}") == "304"
    (site.mount / "README.md").write_text("changed by the mount\n")
    for method, condition in {"PUT": f"If-Match: {tag}", "DELETE": 'If-Match: "bogus"'}.items():
        assert site.curl("README.md", "-X", method, "-H", condition, "-d", "lost", "-o", "refused") == "412"
    assert site.curl("README.md") == "changed by the mount\n200"


@needs("curl")
def test_a_person_finds_a_folder_for_each_run_that_worked_for_them(shared: Nas, site: Site) -> None:
    (site.mount / "made.txt").write_text("by the run\n")
    assert site.curl("README.md", "-o", "read") == "200"
    run = site.url.rstrip("/").rpartition("/")[2]
    shared.run("propose", run, "-m", "look at this")
    root = f"{site.url.partition('/dav/')[0]}/dav/humans/owner/Agent%20Activity/"

    def look(path: str) -> str:
        return site.run("curl", "-s", "--fail", "-u", f"owner:{shared.token()}", root + path)

    folder = next(part for part in look("").split('"') if part.endswith(f"{run}/")).removeprefix("./")
    assert "made.txt" in look(f"{folder}Changed.txt")
    assert "look at this" in look(f"{folder}Asked.txt")
    wait_until(lambda: "README.md" in look(f"{folder}Read.txt"))


@needs("curl")
def test_an_upload_of_unknown_length_streams(site: Site) -> None:
    content = os.urandom(5 << 20)
    (site.folder / "content").write_bytes(content)
    assert site.curl("streamed", "-T", "content", "-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue") == "201"
    assert (site.mount / "streamed").read_bytes() == content


@needs("cadaver")
def test_cadaver_makes_locks_moves_and_removes(site: Site) -> None:
    host = site.url.split("/")[2].split(":")[0]
    netrc = site.folder / ".netrc"
    netrc.write_text(f"machine {host} login {site.user} password {site.password}\n")
    netrc.chmod(0o600)
    (site.folder / "up.txt").write_text("from cadaver\n")
    typed = [
        f"open {site.url}",
        "mkcol made",
        "put up.txt made/up.txt",
        "lock made/up.txt",
        "put up.txt made/up.txt",
        "unlock made/up.txt",
        "move made/up.txt made/down.txt",
        "copy made/down.txt made/kept.txt",
        "get made/down.txt got.txt",
        "delete made/down.txt",
        "quit",
    ]
    printed = site.run("cadaver", typed="\n".join(typed) + "\n")
    assert printed.count("succeeded") == len(typed) - 2, printed
    assert (site.folder / "got.txt").read_text() == "from cadaver\n"
    assert contents(site.mount / "made") == {"kept.txt": b"from cadaver\n"}
    site.run("cadaver", typed=f"open {site.url}\nrmcol made\nquit\n")
    assert not (site.mount / "made").exists()


@needs("rclone")
def test_rclone_syncs_checks_moves_and_purges(site: Site) -> None:
    tree = plant(site.folder / "tree")
    obscured = site.run("rclone", "--config", "/dev/null", "obscure", site.password).strip()
    options = ["--config", "/dev/null", "--webdav-url", site.url, "--webdav-vendor", "other"]
    options += ["--webdav-user", site.user, "--webdav-pass", obscured, "--retries", "1"]
    site.run("rclone", "sync", str(tree), ":webdav:synced", *options)
    assert contents(site.mount / "synced") == contents(tree)
    site.run("rclone", "check", str(tree), ":webdav:synced", "--download", *options)
    (site.mount / "synced" / "from the mount.txt").write_text("here too\n")
    site.run("rclone", "moveto", ":webdav:synced/readme.txt", ":webdav:synced/moved.txt", *options)
    site.run("rclone", "copy", ":webdav:synced", "back", *options)
    assert contents(site.folder / "back") == contents(site.mount / "synced")
    site.run("rclone", "purge", ":webdav:synced", *options)
    assert not (site.mount / "synced").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mount.davfs needs root here")
@needs("mount.davfs")
def test_davfs2_is_a_folder_like_any_other(site: Site) -> None:
    place = site.folder / "davfs"
    place.mkdir()
    settings = {"use_locks": "1", "buf_size": "128", "ask_auth": "0", "cache_dir": "/var/cache/davfs2", "secrets": site.folder / "secrets"}
    (site.folder / "davfs2.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    (site.folder / "secrets").write_text(f"{site.url} {site.user} {site.password}\n")
    (site.folder / "secrets").chmod(0o600)
    site.run("mount.davfs", "-o", f"conf={site.folder / 'davfs2.conf'}", site.url, str(place))
    try:
        assert (place / "README.md").read_text() == (site.mount / "README.md").read_text()
        (place / "made").mkdir()
        (place / "made" / "one.txt").write_text("from davfs2\n")
        (place / "made" / "one.txt").rename(place / "made" / "two.txt")
        (place / "made" / "large.bin").write_bytes(bytes(range(256)) * 4096)
        wait_until(lambda: (site.mount / "made" / "two.txt").exists())
        assert os.statvfs(place).f_blocks > 0
    finally:
        site.run("umount.davfs", str(place))
    assert contents(site.mount / "made") == {"two.txt": b"from davfs2\n", "large.bin": bytes(range(256)) * 4096}

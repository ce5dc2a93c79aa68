"""Git, by the commands that people give it, in a clone of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote, urlsplit

from interfaces.faults import Kind
from tests.contract.doors.clients.door import Aspect, Difference, Door
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import Operation, Refused, Seen
from tests.contract.doors.site import Held, Site

ABSENT = "not in the tree"
WORDS = {
    ABSENT: frozenset({Kind.NOT_FOUND}),
    # What git prints behind `remote:` or `[remote rejected]` is a sentence for people; these are in the ones that the suite meets.
    "the lease does not reach": frozenset({Kind.DENIED}),
    "the lease allows": frozenset({Kind.DENIED}),
    "stay out of reach": frozenset({Kind.DENIED}),
    "the lease counts at": frozenset({Kind.DENIED}),
    "the lease is bound to": frozenset({Kind.DENIED}),
    "has spent its budget": frozenset({Kind.BUDGET}),
    "the lease has expired": frozenset({Kind.EXPIRED}),
    "the lease was revoked": frozenset({Kind.REVOKED}),
}
_SECONDS = 60.0


class Clone:
    """A clone of one branch, brought up to date before each operation and pushed after each change."""

    def __init__(self, url: str, branch: str, user: str, password: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="doors-git-"))
        self._branch = branch
        parts = urlsplit(url)
        self._credential = f"{parts.scheme}://{quote(user)}:{quote(password)}@{parts.netloc}\n"
        self._tree = self._folder / "tree"
        self.told: list[bytes] = []
        self._git("-c", "init.defaultBranch=none", "init", "-q", str(self._tree), where=self._folder)
        self._git("remote", "add", "origin", url)

    def read(self, path: str) -> bytes:
        return self._existing(path).read_bytes()

    def list(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(self._existing(path))))

    def stat(self, path: str) -> Seen:
        found = self._existing(path)
        return Seen(found.is_dir(), found.stat().st_size)

    def write(self, path: str, content: bytes) -> None:
        self._update()
        self._put(path, content)
        self._push()

    def create(self, path: str, content: bytes) -> None:
        self.write(path, content)

    def append(self, path: str, content: bytes) -> None:
        found = self._existing(path)
        found.write_bytes(found.read_bytes() + content)
        self._push()

    def copy(self, path: str, target: str) -> None:
        self._put(target, self._existing(path).read_bytes())
        self._push()

    def move(self, path: str, target: str) -> None:
        self._existing(path).rename(self._tree / target)
        self._push()

    def delete(self, path: str) -> None:
        self._existing(path).unlink()
        self._push()

    def search(self, path: str, text: str) -> tuple[str, ...]:
        folder = self._existing(path)
        return tuple(name for name in sorted(os.listdir(folder)) if text.encode() in (folder / name).read_bytes())

    def close(self) -> None:
        """Throw the clone away."""
        shutil.rmtree(self._folder)

    def _put(self, path: str, content: bytes) -> None:
        (self._tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self._tree / path).write_bytes(content)

    def _existing(self, path: str) -> Path:
        """Return what a path stands for after a fetch. Raises `Refused`."""
        self._update()
        if not (self._tree / path).exists():
            self.told.append(ABSENT.encode())
            raise Refused(ABSENT)
        return self._tree / path

    def _update(self) -> None:
        self._git("fetch", "-q", "origin", self._branch)
        self._git("reset", "-q", "--hard", "FETCH_HEAD")
        self._git("clean", "-qfd")

    def _push(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "a change")
        self._git("push", "-q", "origin", f"HEAD:refs/heads/{self._branch}")

    def _git(self, *arguments: str, where: Path | None = None) -> None:
        # Git forgets a credential that was refused.
        (self._folder / ".git-credentials").write_text(self._credential)
        done = subprocess.run(
            ["git", "-c", "credential.helper=store", *arguments],
            cwd=where or self._tree,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),
                "LC_ALL": "C",
                "GIT_TERMINAL_PROMPT": "0",
                **{f"GIT_{role}_{what}": "coder@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            },
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            self.told.append(done.stderr)
            printed = done.stderr.decode()
            raise Refused(next((word for word in WORDS if word in printed), printed.partition("\n")[0]))


def _connect(site: Site, held: Held) -> Clone:
    given = site.credentials(held, "git")
    return Clone(given["url"], held.branch, given["settings"]["user"], given["settings"]["password"])


_CHANGES = {Operation.WRITE, Operation.CREATE, Operation.APPEND, Operation.COPY, Operation.MOVE, Operation.DELETE}
_UNREAD = {Operation.LIST, Operation.STAT, Operation.DELETE}
_NAMED = "a push names the path that it changes, and is denied it, there or not"
_LEFT_OUT = "what may not be read is left out of every tree that is fetched, and nothing is asked of it"
_FETCHED = "everything begins with a fetch, which is a read"
_CARRIED = "what a fetch carried is in the manifest as the root of the branch, whatever of it is looked at"

GIT = Door(
    "git",
    _connect,
    WORDS,
    by={
        **dict.fromkeys((Operation.READ, Operation.LIST, Operation.STAT, Operation.SEARCH), "a fetch, then a look into the clone"),
        **dict.fromkeys(_CHANGES, "a fetch, a commit and a push"),
    },
    differs=(
        Difference(Aspect.DECISION, {Standing.HIDDEN}, {Operation.WRITE, Operation.CREATE}, _NAMED),
        Difference(Aspect.RECORD, {Standing.HIDDEN}, {Operation.WRITE, Operation.CREATE}, _NAMED),
        Difference(Aspect.RECORD, {Standing.READ_ONLY}, {Operation.MOVE}, "what is recorded is the denial of the path that the push adds"),
        Difference(Aspect.DECISION, {Standing.REFUSED}, set(Operation) - {Operation.WRITE, Operation.CREATE}, _LEFT_OUT),
        Difference(Aspect.RECORD, {Standing.REFUSED}, set(Operation) - {*_UNREAD, Operation.WRITE, Operation.CREATE}, _LEFT_OUT),
        Difference(Aspect.FILES, {Standing.REFUSED}, {Operation.DELETE}, _LEFT_OUT),
        Difference(Aspect.DECISION, {Standing.SPENT}, {*_UNREAD, Operation.MOVE}, _FETCHED),
        Difference(Aspect.FILES, {Standing.SPENT}, {Operation.MOVE, Operation.DELETE}, _FETCHED),
        Difference(Aspect.READS, {Standing.ALLOWED}, {Operation.READ, Operation.COPY, Operation.SEARCH}, _CARRIED),
        Difference(Aspect.READS, {Standing.READ_ONLY}, {Operation.READ, Operation.SEARCH}, _CARRIED),
        Difference(Aspect.READS, {Standing.REFUSED, Standing.BESIDE}, {Operation.SEARCH}, _CARRIED),
        Difference(Aspect.READS, {Standing.REVOKED}, {Operation.READ}, _CARRIED),
    ),
    more=None,
    speaks_prose=True,
)

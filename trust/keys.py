"""The keys that lease secrets hang on, outside of the database: who has only one of the two can forge nothing.

1. One file of 32 random bytes for each epoch, mode 0600, in a directory of mode 0700. A file appears whole and on stable storage, or not.
2. Secrets that are made now hang on the newest key. A key that is gone takes its leases with it and nothing else: `KeyMissing`.
3. An epoch is never reused: a key made for leases of a lost epoch would be another key under the same number.
4. Any thread; several processes may make keys at once, and agree.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from trust.errors import KeyMissing, RecorderUnavailable
from trust.secret import Secret

KEY_BYTES = 32
"""The length of a key."""
_PREFIX, _SUFFIX = "lease-", ".key"


class Keys:
    """The keys in a folder. `used` is the highest epoch that stored leases hang on."""

    def __init__(self, folder: Path, used: int, entropy: Callable[[int], bytes]) -> None:
        self._folder = folder
        self._entropy = entropy
        self._keys: dict[int, Secret] = {}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._load()
            if self.newest() < max(used, 1):
                self._make(used + 1)
        except OSError as error:
            raise RecorderUnavailable(folder, error.strerror or str(error)) from error

    def newest(self) -> int:
        """Return the epoch that new secrets hang on, 0 when there is none."""
        return max(self._keys, default=0)

    def key(self, epoch: int) -> Secret:
        """Return the key of an epoch. Raises `KeyMissing`."""
        if epoch not in self._keys:
            self._load()
        if epoch not in self._keys:
            raise KeyMissing("lease", f"the key of epoch {epoch} is missing: its leases cannot be used")
        return self._keys[epoch]

    def rotate(self) -> int:
        """Make the next key and return its epoch; older leases keep theirs."""
        self._load()
        try:
            return self._make(self.newest() + 1)
        except OSError as error:
            raise RecorderUnavailable(self._folder, error.strerror or str(error)) from error

    def _load(self) -> None:
        for path in self._folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            number = path.name[len(_PREFIX) : -len(_SUFFIX)]
            if number.isdigit() and int(number) not in self._keys:
                content = path.read_bytes()
                if len(content) == KEY_BYTES:
                    self._keys[int(number)] = Secret(content)

    def _make(self, epoch: int) -> int:
        target = self._folder / f"{_PREFIX}{epoch}{_SUFFIX}"
        draft = self._folder / f".{epoch}.{self._entropy(8).hex()}"
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, self._entropy(KEY_BYTES))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(draft, target)
        except FileExistsError:
            pass  # another process was first: its key is the key
        finally:
            draft.unlink()
        self._sync_folder()
        self._load()
        return epoch

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

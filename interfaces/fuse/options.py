"""How a mount is made: every setting, its default and its unit in one value.

1. Defaults are the safe ones: only the mounting user sees the mount, set-user-id and device files mean nothing on it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one mount.

    `uid` and `gid` own every file whose owner nobody changed. `allow_other` lets other users in; as an ordinary user
    that needs ``user_allow_other`` in ``/etc/fuse.conf``. `allow_set_id` honours set-user-id bits and devices of the tree.
    `poll_seconds` is how often changes by other doors are looked for, `check_seconds` how often the lease is.
    """

    uid: int
    gid: int
    allow_other: bool = False
    allow_set_id: bool = False
    poll_seconds: float = 0.02
    check_seconds: float = 0.2

    def mount_options(self, branch: str) -> set[str]:
        """Return the words for the kernel and libfuse; the branch shows in ``/proc/mounts`` as ``agent-nas:<branch>``."""
        words = {"default_permissions", f"fsname=agent-nas:{_escape(branch)}", "subtype=agent-nas"}
        if self.allow_other:
            words.add("allow_other")
        if not self.allow_set_id:
            words.update(("nosuid", "nodev"))
        return words


def _escape(branch: str) -> str:
    """Return the branch as libfuse takes it in a list of options: a comma or backslash would end the word, and it wants ASCII."""
    return "".join(letter if letter.isascii() and letter not in ",\\ " else "?" for letter in branch)

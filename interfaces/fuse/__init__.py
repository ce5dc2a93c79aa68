"""A branch as a POSIX tree: the door that file tools use."""

from interfaces.fuse.mountpoint import check_mountpoint, find_holders, find_mount, is_dead, recover_mountpoint, unmount, wait_usable
from interfaces.fuse.options import Options
from interfaces.fuse.serve import Ended, serve

__all__ = [
    "Ended",
    "Options",
    "check_mountpoint",
    "find_holders",
    "find_mount",
    "is_dead",
    "recover_mountpoint",
    "serve",
    "unmount",
    "wait_usable",
]

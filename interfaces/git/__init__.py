"""The git door: clone, fetch and push over HTTP and SSH, with Git LFS."""

from interfaces.git.door import GitDoor

__all__ = ["GitDoor"]

"""The WebDAV door: people and desktops browse and edit a branch (RFC 4918, classes 1, 2 and 3)."""

from interfaces.webdav.app import PREFIX, WebdavDoor

__all__ = ["PREFIX", "WebdavDoor"]

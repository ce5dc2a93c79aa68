"""A small client for each door, and the table of the words it says no in."""

from tests.contract.doors.clients.git import GIT
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.clients.inside import REQUESTS, SESSION
from tests.contract.doors.clients.mcp import MCP
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.clients.s3 import S3
from tests.contract.doors.clients.webdav import WEBDAV
from tests.e2e.conftest import cannot_mount

TRUTHS = (REQUESTS, SESSION)
"""The port, asked in its two ways."""

OTHERS = (MOUNT, HTTP, WEBDAV, S3, GIT, MCP)
"""The doors."""

DOORS = (*TRUTHS, *OTHERS)
"""Everything that is asked."""

HERE = tuple(door for door in DOORS if door is not MOUNT or not cannot_mount())
"""Everything that can be asked on this machine."""

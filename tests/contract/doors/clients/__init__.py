"""A small client for each door, and the table of the words it says no in."""

from tests.contract.doors.clients.git import GIT
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.clients.inside import REQUESTS, SESSION
from tests.contract.doors.clients.mcp import MCP
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.clients.s3 import S3
from tests.contract.doors.clients.webdav import WEBDAV

TRUTHS = (REQUESTS, SESSION)
"""The port, asked in its two ways."""

DOORS = (*TRUTHS, MOUNT, HTTP, WEBDAV, S3, GIT, MCP)
"""Everything that is asked."""

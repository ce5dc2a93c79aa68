"""Every tool of the door, by name."""

from __future__ import annotations

from collections.abc import Mapping

from interfaces.mcp import changes, files, memory, outward, runs
from interfaces.mcp.tool import Tool

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*files.TOOLS, *changes.TOOLS, *runs.TOOLS, *memory.TOOLS, *outward.TOOLS)}

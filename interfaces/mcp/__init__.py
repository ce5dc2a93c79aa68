"""The MCP door: files, runs, proposals and gates as tools and resources a model can act on."""

from interfaces.mcp.door import McpDoor

__all__ = ["McpDoor"]

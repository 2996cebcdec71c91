"""The client of tool servers, at the family's import path."""

from __future__ import annotations

from lmms_eval.compat.mcp_client import MCPClient as MCPClient

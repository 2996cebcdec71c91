"""Tools that a model may call while it answers, from an MCP server in a session that the whole run shares."""

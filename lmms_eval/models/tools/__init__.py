"""Tools that a model may call while it answers: an MCP server's, in a session that the whole run shares."""

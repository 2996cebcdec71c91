"""The MCP server: evaluations as tools of the Model Context Protocol."""

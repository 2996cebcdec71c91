"""The server of tools: evaluations for assistants that speak the Model Context Protocol."""

"""The web page of the evaluation server."""

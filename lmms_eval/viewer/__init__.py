"""Runs as pages that people open: a folder of files that needs no server, no network and no build."""

"""Runs as pages while they go on: a server on loopback that follows the journals."""

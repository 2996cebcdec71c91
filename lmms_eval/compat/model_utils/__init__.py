"""Helpers that model plugins of the family import."""

"""Helpers for plugins at the family's import paths."""

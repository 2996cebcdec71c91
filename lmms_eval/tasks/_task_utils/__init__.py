"""Helpers that task files of the family import."""

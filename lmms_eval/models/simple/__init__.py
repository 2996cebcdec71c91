"""Base classes of simple plugins at the family's import paths."""

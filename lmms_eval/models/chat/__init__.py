"""Base classes of chat plugins at the family's import paths."""

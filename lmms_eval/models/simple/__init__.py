"""Base classes at the family's paths, in the simple form."""

"""Foretelling a run: what it will ask, of which size, at which price, and what of it is broken."""

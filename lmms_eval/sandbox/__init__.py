"""Runs programs that nobody trusts, or refuses to: see ``docs/sandbox.md``. Imports ``errors`` and ``utils`` alone."""

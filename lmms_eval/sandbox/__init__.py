"""Runs untrusted programs confined, or refuses to (``docs/sandbox.md``)."""

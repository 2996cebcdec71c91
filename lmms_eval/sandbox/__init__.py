"""Runs untrusted programs confined, or refuses to (``docs/sandbox.md``). Imports only ``errors``, ``processes`` and ``utils``."""

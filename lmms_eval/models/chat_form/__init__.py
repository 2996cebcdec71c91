"""Checkpoints whose own code has a method ``chat``. See ``docs/models/chat.md``."""

"""Checkpoints with code of their own that has a method ``chat``. See ``docs/models/chat.md``."""

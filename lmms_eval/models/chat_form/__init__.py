"""Checkpoints that bring a method ``chat`` with code of their own. See ``docs/models/chat.md``."""

"""Tolerant conversions from the text of a reply to values, shared by parsers and metrics. All of them are linear."""

"""Helpers that model plugins of the family import. Thin functions over `lmms_eval.media`."""

"""Scoring of one query: its reply parsed, its fields scored by their metrics, the scores combined."""

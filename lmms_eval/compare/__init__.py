"""Comparison of runs of any format: readers, pairing, verdicts, gate."""

"""Runs of any origin side by side: readers, pairing, verdicts, gate."""

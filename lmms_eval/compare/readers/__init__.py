"""Readers of runs of several formats, and ``read_runs``, which finds the right one."""

from lmms_eval.compare.readers.finding import read_runs, run_with_file, unique_names

__all__ = ["read_runs", "run_with_file", "unique_names"]

"""Readers of runs, a module for each format, and the one function that finds the right one."""

from lmms_eval.compare.readers.finding import read_runs, run_with_file, unique_names

__all__ = ["read_runs", "run_with_file", "unique_names"]

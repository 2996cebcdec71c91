"""Output of a run: results file, samples, table, report."""

"""What a run leaves behind: results file, samples, table, report."""

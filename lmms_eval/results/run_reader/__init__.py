"""The one reader of runs: results, samples and journals, finished or not, as typed objects."""

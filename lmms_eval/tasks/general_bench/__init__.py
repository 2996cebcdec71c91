"""General-Bench and General-Level: 699 tasks in five modalities, and one score for each of the levels 2 to 5."""

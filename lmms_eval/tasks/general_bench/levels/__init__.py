"""General-Level: levels from the scores of tasks, by two profiles (``reference`` and ``paper``)."""

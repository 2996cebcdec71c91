"""General-Level: from one score a task to the levels, by two profiles (``reference`` and ``paper``)."""

"""The evaluation server: jobs that survive it, each a process of the ordinary command line, behind HTTP endpoints."""

"""Runs, from their configurations to their files: collects the tasks and the model, calls the engine, and reports."""

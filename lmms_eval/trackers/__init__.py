"""Destinations of a run's results: experiment trackers, which also receive live numbers, and data sets on the hub.

Each one works in a process of its own, so that its errors and waiting times do not affect the run
(``docs/trackers.md``).
"""

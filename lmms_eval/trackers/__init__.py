"""Reports of a run to places elsewhere: trackers of experiments while it goes on, data sets on the hub at its end.

Each works in a process of its own, so that what it does, raises or waits for touches no run (``docs/trackers.md``).
"""

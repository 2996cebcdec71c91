"""A judge that is served on this machine for the time of a run (``--launcher_args``)."""

"""A judge that is served on this machine for the duration of a run (``--launcher_args``)."""

"""A plugin package: its models are named in ``models``."""

"""A run from its configuration to its files: collect, hand to the engine, report."""

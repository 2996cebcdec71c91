"""A plugin package whose model misbehaves as it is told."""

"""A plugin package of the class interface whose model meets the other processes in collective operations."""

"""Servers on loopback that tests and benchmarks start as processes of their own."""

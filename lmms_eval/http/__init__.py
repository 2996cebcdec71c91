"""HTTP for every server of this package: access rules, limits of size and rate, timeouts."""

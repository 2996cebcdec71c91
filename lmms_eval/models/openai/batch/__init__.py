"""Requests in batch files, which the service answers within a day at half the price."""

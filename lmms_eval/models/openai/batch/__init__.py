"""Requests as batch files: the service answers them within a day, at half the price."""

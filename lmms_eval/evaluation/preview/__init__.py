"""Forecast of a run: what it will ask, its size and price, and what is broken."""

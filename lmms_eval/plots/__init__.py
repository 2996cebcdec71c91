"""Plots of results: draws them with matplotlib, without a display, and saves them as PNG and SVG."""

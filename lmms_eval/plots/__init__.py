"""Plots of results, drawn with matplotlib without a display and saved as PNG and SVG."""

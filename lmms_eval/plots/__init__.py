"""Pictures of results, drawn by matplotlib without a display and saved as PNG and SVG."""

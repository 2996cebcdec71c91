"""MEGA-Bench: 505 tasks, their prompts, parsers and metrics."""

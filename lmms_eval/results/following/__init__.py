"""Runs that are followed by their journals while they go on: progress and running scores for whoever shows them."""

"""Summaries of sample scores: data sets, groups and the whole benchmark."""

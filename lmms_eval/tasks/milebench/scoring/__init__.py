"""Scores answers by both sets of rules (``samples``) and sums them up for a data set (``results``)."""

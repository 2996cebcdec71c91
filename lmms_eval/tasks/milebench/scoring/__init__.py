"""Scoring of answers: one by both sets of rules (``samples``), those of a data set together (``results``)."""

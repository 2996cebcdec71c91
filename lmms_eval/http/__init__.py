"""Answering over HTTP with care: who may ask, how much, how often and how slowly, the same for every server here."""

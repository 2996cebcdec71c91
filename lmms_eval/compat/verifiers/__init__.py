"""Verification of free answers in two steps: extractors cut the answer out, a verifier compares it."""

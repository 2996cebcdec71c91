"""Tests of the rules for lm-eval's task files, with small task files written by the tests."""

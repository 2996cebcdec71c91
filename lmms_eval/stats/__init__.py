"""Uncertainty, comparison and power: pure functions. Numpy and scipy are imported inside functions only."""

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)

"""Results of runs: the document, samples, tables; ``load`` reads a run back (``docs/results.md``)."""

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)

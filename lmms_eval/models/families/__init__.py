"""Named wrappers: the ``hf`` back end with the additions of one family. See ``docs/models/hf.md``.

Torch and transformers are not imported before a model is built.
"""

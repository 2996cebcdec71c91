"""Named wrappers: the ``hf`` back end with what one family needs beside it. See ``docs/models/hf.md``.

Nothing here imports torch or transformers before a model is built.
"""

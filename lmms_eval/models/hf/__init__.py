"""The ``hf`` back end: any image-text-to-text model of transformers, in batches. See ``docs/models/hf.md``.

The class is ``model.HuggingFace``. Torch and transformers are not imported before it is built.
"""

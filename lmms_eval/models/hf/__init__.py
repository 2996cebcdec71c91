"""The ``hf`` back end: any image-text-to-text model of transformers, batched. See ``docs/models/hf.md``.

``model.HuggingFace`` is the class; nothing here imports torch or transformers before it is built.
"""

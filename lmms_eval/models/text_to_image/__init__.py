"""Pictures for models that only describe them, drawn by a text-to-image model (``--t2i``)."""

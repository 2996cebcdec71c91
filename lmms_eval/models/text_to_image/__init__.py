"""Pictures for models that only describe them: a text-to-image step behind a protocol (``--t2i``)."""

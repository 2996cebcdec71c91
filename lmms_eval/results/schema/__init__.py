"""Types of the files that a run writes, and the JSON Schemas made of them (``lmms_eval/schemas``)."""

"""Questions to a model, and predictions from its replies (General-Bench specification, section 4)."""

"""Questions to a model, and the way from its reply to a prediction (General-Bench specification, section 4)."""

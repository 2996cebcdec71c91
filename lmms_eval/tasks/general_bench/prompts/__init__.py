"""What a model is asked, and how its reply becomes a prediction (General-Bench specification, section 4)."""

"""The plugin's models."""

AVAILABLE_MODELS = {"faulty": "Faulty"}

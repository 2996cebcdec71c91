"""The plugin's models, as older packages name them."""

AVAILABLE_MODELS = {"collective": "Collective"}

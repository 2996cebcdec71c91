"""Module and class of each model; the module's name is the model's."""

AVAILABLE_MODELS = {"colour_meter": "ColourMeter"}

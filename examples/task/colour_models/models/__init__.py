"""Module and class of each model; the name of the module is that of the model."""

AVAILABLE_MODELS = {"colour_meter": "ColourMeter"}

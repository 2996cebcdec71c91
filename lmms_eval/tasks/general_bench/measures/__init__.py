"""The measures of the 63 metrics. A measure maps each item to a state and all states to a value (``contract``)."""

"""The measures of the 63 metrics: a state of each item and a value over the states (``contract``)."""

"""Controls of a task: the same documents asked without, or with other, media; and with their choices rotated."""

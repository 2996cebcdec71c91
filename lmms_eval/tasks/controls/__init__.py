"""Controls of a task: the same documents without media, with other media, or with rotated choices."""

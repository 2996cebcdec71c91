"""What a model's authors evaluate with: prompts, options, limits and the reading of answers, as data."""

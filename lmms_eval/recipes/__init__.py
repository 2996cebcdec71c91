"""Recipes: the prompts, options, limits and readings of answers that models' authors evaluate with, as data."""

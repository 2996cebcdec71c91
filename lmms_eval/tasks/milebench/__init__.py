"""MileBench: 29 data sets of long contexts with many pictures (see ``README.md``)."""

"""MMIE: interleaved comprehension and generation, judged by a model."""

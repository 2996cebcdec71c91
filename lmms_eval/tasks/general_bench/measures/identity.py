"""Fingerprint of the scoring code. States of an earlier run are kept only if it is unchanged."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from lmms_eval.tasks.general_bench.measures.text_math import tokenizer_label

_PACKAGES = ("data", "measures", "networks", "nlp", "prompts", "readers")
"""Packages of the benchmark that lead from a reply to its state."""
_CAPTIONS = "metrics/captions.py"
"""Module outside the benchmark that computes states too."""


def scoring_identity(_lmms_eval_specific_kwargs: object = None) -> str:
    """Return the fingerprint of the code that computes states, and of the tokenizer that BLEU uses."""
    return f"{_code()}|{tokenizer_label()}"


@functools.cache
def _code() -> str:
    root, home = Path(__file__).parents[1], Path(__file__).parents[3]
    files = sorted(file for package in _PACKAGES for file in (root / package).iterdir() if file.is_file())
    digest = hashlib.sha256()
    for file in (*files, home / _CAPTIONS):
        digest.update(f"{file.relative_to(home).as_posix()}|{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()

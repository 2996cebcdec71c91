"""Fingerprint of the scoring code: states computed earlier are kept only if it is unchanged."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from lmms_eval.tasks.general_bench.measures.text_math import tokenizer_label

_PACKAGES = ("data", "measures", "networks", "nlp", "prompts", "readers")
"""Packages of the benchmark between a reply and its state."""
_CAPTIONS = "metrics/captions.py"
"""Module outside the benchmark that makes states too."""


def scoring_identity(_lmms_eval_specific_kwargs: object = None) -> str:
    """Fingerprint of the code that makes states of predictions, and of the tokenizer that BLEU finds."""
    return f"{_code()}|{tokenizer_label()}"


@functools.cache
def _code() -> str:
    root, home = Path(__file__).parents[1], Path(__file__).parents[3]
    files = sorted(file for package in _PACKAGES for file in (root / package).iterdir() if file.is_file())
    digest = hashlib.sha256()
    for file in (*files, home / _CAPTIONS):
        digest.update(f"{file.relative_to(home).as_posix()}|{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()

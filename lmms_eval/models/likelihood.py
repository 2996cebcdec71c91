"""Likelihood of a continuation, from what an engine tells of each of its tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Natural logarithm of the probability of a continuation after its prompt."""

    value: float
    is_greedy: bool
    """Each of its tokens is the likeliest at its place."""
    input_tokens: int | None
    """Tokens of prompt and continuation."""


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One token of a continuation."""

    logprob: float
    highest: float
    """Log-probability of the likeliest token at its place."""


def likelihood_of(scores: Sequence[TokenScore], input_tokens: int | None) -> Likelihood:
    """Sum the tokens up."""
    is_greedy = all(score.logprob >= score.highest for score in scores)
    return Likelihood(math.fsum(score.logprob for score in scores), is_greedy, input_tokens)

"""The likelihood of a continuation, from the scores of its tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct


class Likelihood(Struct, frozen=True):
    """The log probability of a continuation after its prompt."""

    value: float
    """Natural logarithm."""
    is_greedy: bool
    """Whether each token is the most likely one at its position."""
    input_tokens: int | None
    """Tokens of the prompt and the continuation."""


class TokenScore(Struct, frozen=True):
    """The score of one token of a continuation."""

    logprob: float
    highest: float
    """Log probability of the most likely token at its position."""


def likelihood_of(scores: Sequence[TokenScore], input_tokens: int | None) -> Likelihood:
    """Add up the scores of the tokens."""
    is_greedy = all(score.logprob >= score.highest for score in scores)
    return Likelihood(math.fsum(score.logprob for score in scores), is_greedy, input_tokens)

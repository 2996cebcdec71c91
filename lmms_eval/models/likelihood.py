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


def likelihood_of(scores: Sequence[tuple[float, float]], input_tokens: int | None) -> Likelihood:
    """Add up the scores of a continuation's tokens.

    A score is the log probability of the token, and that of the most likely token at its position.
    """
    is_greedy = all(own >= highest for own, highest in scores)
    return Likelihood(math.fsum(own for own, _ in scores), is_greedy, input_tokens)

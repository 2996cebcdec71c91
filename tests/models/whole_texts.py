"""The likelihood of a whole text, computed token by token from its definition."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lmms_eval.api.request import Request
from tests.models.hf.support import ask

TEXTS = (
    "",
    "a",
    "Hello, this is a text of the length of a line.",
    "All work and no play makes a dull day. " * 12,
    " leading and trailing \n white space \n",
    "A B C D " * 15,
)
"""Without a token, of one, shorter and far longer than a window of 32."""


def rolling(number: int, text: str) -> Request:
    return replace(ask(number, ""), kind="loglikelihood_rolling", continuation=text, generation={})


def token_scores(model: Any, prompt: list[int]) -> list[tuple[float, float]]:
    """The log probability of each token but the first, and the highest at its place."""
    import torch

    with torch.inference_mode():
        scores = model(input_ids=torch.tensor([prompt])).logits[0].double().log_softmax(-1)
    return [(float(row[token]), float(row.max())) for row, token in zip(scores, prompt[1:], strict=False)]


def log_likelihood(model: Any, tokenizer: Any, text: str, length: int) -> float:
    """Predict each token by a forward pass of its own, from the inputs that its window gives it.

    The first ``length`` tokens see all before them and the prefix; every later block of ``length`` tokens sees the
    token before the block and those of the block.
    """
    import torch

    prefix = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    whole, total = [prefix, *ids], 0.0
    for place, token in enumerate(ids):
        first = place // length * length
        # The last window is filled up with tokens before it.
        last = min(first + length, len(ids))
        begin = max(0, last - length) if first else 0
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([whole[begin : place + 1]])).logits[0, -1]
        total += float(logits.double().log_softmax(-1)[token])
    return total

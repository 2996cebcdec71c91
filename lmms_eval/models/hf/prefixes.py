"""Likelihoods of several continuations of one prompt: the prompt is computed once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from lmms_eval.models.windows import ScoredTokens

_LEAST_SAVED = 0.25
"""Share of a batch's tokens that sharing must save to be worth a second pass."""


class Prefixes(Struct, frozen=True, eq=False):
    """The distinct prompts of a batch, and the continuations that follow them. Tensors are padded on the right."""

    prompts: Any
    """Token ids ``(prompts, longest prompt)``."""
    lengths: Any
    """Numbers of tokens ``(prompts,)``."""
    prompt_of: Any
    """The prompt of each row ``(rows,)``."""
    rest: Any
    """The tokens of each continuation except the last, which predicts nothing ``(rows, longest continuation - 1)``."""

    @classmethod
    def of(cls, windows: Sequence[ScoredTokens], pad: int) -> Prefixes | None:
        """Find the equal prompts of rows; ``None`` if sharing them would save little."""
        import torch

        numbers: dict[tuple[int, ...], int] = {}
        prompt_of = [numbers.setdefault(tuple(context), len(numbers)) for context, _ in windows]
        separate = sum(len(context) for context, _ in windows)
        total = separate + sum(len(continuation) - 1 for _, continuation in windows)
        if separate - sum(map(len, numbers)) < _LEAST_SAVED * total:
            return None
        return cls(
            _padded(list(numbers), pad),
            torch.tensor([len(prompt) for prompt in numbers]),
            torch.tensor(prompt_of),
            _padded([continuation[:-1] for _, continuation in windows], pad),
        )


def _padded(rows: Sequence[Sequence[int]], pad: int) -> Any:
    import torch

    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows], dtype=torch.long)


def share_prefixes(model: Any, prefixes: Prefixes, keeps_logits: bool) -> tuple[Any, Any] | None:
    """Run the prompts, then the continuations on the prompts' keys and values.

    Returns the logits after each prompt ``(prompts, vocabulary)`` and those of the continuations
    ``(rows, longest continuation - 1, vocabulary)``; ``None`` if the model's cache cannot be shared, since it is not a
    plain one of keys and values for every token.
    """
    import torch

    device = model.device
    prompts, lengths = prefixes.prompts.to(device), prefixes.lengths.to(device)
    prompt_of, rest = prefixes.prompt_of.to(device), prefixes.rest.to(device)
    first = int(prefixes.lengths.min()) - 1
    kept = {"logits_to_keep": prompts.shape[1] - first} if keeps_logits else {}
    with torch.inference_mode():
        begun = model(input_ids=prompts, use_cache=True, **kept)
        if not _is_plain(begun.past_key_values):
            return None
        logits = begun.logits[:, -(prompts.shape[1] - first) :]
        after_prompt = logits[torch.arange(len(lengths), device=device), lengths - 1 - first]
        if not rest.shape[1]:
            return after_prompt, after_prompt.new_zeros((len(prompt_of), 0, after_prompt.shape[-1]))
        cache = begun.past_key_values
        cache.batch_select_indices(prompt_of)
        own = lengths[prompt_of].unsqueeze(1)
        columns = torch.arange(prompts.shape[1], device=device)
        mask = torch.cat(((columns < own).long(), torch.ones_like(rest)), dim=1)
        positions = own + torch.arange(rest.shape[1], device=device)
        continued = model(
            input_ids=rest, past_key_values=cache, attention_mask=mask, position_ids=positions, use_cache=True
        )
    return after_prompt, continued.logits


def _is_plain(cache: Any) -> bool:
    """Return whether a cache keeps the keys and values of every token, so that its rows can be repeated."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    return type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)

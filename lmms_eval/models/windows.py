"""Windows over the tokens of a text that is longer than a model's context, for the likelihood of the whole text.

Every token is predicted once. Windows follow the rule of lm-eval, whose perplexities are published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from lmms_eval.api.request import Response, Usage

ScoredTokens = tuple[list[int], list[int]]
"""Context and continuation. The model's input is both without the last token."""
USUAL_LENGTH = 2048
"""Context length of a model that states none."""
NO_PREFIX = "the likelihood of a text without a prompt needs a start or end token, and the tokenizer has neither"
_NO_LIMIT = 1_000_000
"""Tokenizers without a limit state a larger number."""


def rolling_windows(
    tokens: Sequence[int], prefix: int, length: int, context: int = 1
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the input and the predicted tokens of each window: the last predictions of the input are those tokens.

    Args:
        tokens: the text.
        prefix: the token before the text.
        length: the most tokens of an input.
        context: the fewest tokens of an input up to the first predicted token, except in the first window.

    Raises:
        ValueError: ``context`` is not between 1 and ``length``.
    """
    if not 1 <= context <= length:
        raise ValueError(f"a window of {length} tokens cannot have a context of {context}")
    if not tokens:
        return
    end = min(length, len(tokens))
    yield [prefix, *tokens[: end - 1]], list(tokens[:end])
    while end < len(tokens):
        begin, end = end, min(end + length - context + 1, len(tokens))
        yield list(tokens[end - length - 1 : end - 1]), list(tokens[begin:end])


def disjoint(window: tuple[list[int], list[int]]) -> ScoredTokens:
    """Return a window's context and continuation, which share no token."""
    given, predicted = window
    return given[: len(given) - len(predicted) + 1], predicted


def scored_windows(tokens: Sequence[int], prefix: int, length: int) -> list[ScoredTokens]:
    """Return the windows of a text with a context of one token; none without tokens.

    Args:
        tokens: the text.
        prefix: the token before the text.
        length: the most tokens of an input, which has all tokens of a window except the last.
    """
    return [disjoint(window) for window in rolling_windows(tokens, prefix, length)]


def prefix_token(tokenizer: Any) -> int | None:
    """Return the token before a text without context: the start token, else the end token, else ``None``."""
    start, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    found = end if start is None else start
    return None if found is None else int(found)


def context_length(tokenizer: Any) -> int:
    """Return the tokens that a tokenizer states for its model, or the usual number."""
    stated = getattr(tokenizer, "model_max_length", None)
    return int(stated) if isinstance(stated, int | float) and 0 < stated < _NO_LIMIT else USUAL_LENGTH


def text_tokens(tokenizer: Any, text: str) -> list[int]:
    """Encode a text of any length without special tokens."""
    found: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return found


def tokens_of_each(tokenizer: Any, texts: Sequence[str], special: bool) -> list[list[int]]:
    """Encode texts.

    The tokens are those of calling the tokenizer. Its back end is called directly, since that finds no offsets and
    makes no masks, which take a third of the time.

    Args:
        special: let the tokenizer add its start token.
    """
    from transformers import PreTrainedTokenizerFast

    kind = type(tokenizer)
    is_usual = isinstance(tokenizer, PreTrainedTokenizerFast) and all(
        getattr(kind, name) is getattr(PreTrainedTokenizerFast, name) for name in ("__call__", "_encode_plus")
    )
    if not is_usual:
        found: list[list[int]] = tokenizer(list(texts), add_special_tokens=special, verbose=False)["input_ids"]
        return found
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = tokenizer.split_special_tokens
    return [encoded.ids for encoded in backend.encode_batch_fast(list(texts), add_special_tokens=special)]


def pair_tokens(tokenizer: Any, prompt: str, continuation: str, special: bool = True) -> tuple[list[int], int]:
    """Encode a prompt with its continuation, and return the tokens, and how many the continuation adds to the prompt.

    A continuation without a prompt follows the token before a text, unless the tokenizer adds one.

    Args:
        special: let the tokenizer add its start token.
    """
    tokens: list[int] = tokenizer.encode(prompt + continuation, add_special_tokens=special)
    alone = len(tokenizer.encode(prompt, add_special_tokens=special))
    prefix = prefix_token(tokenizer)
    if not prompt and not alone and prefix is not None:
        return [prefix, *tokens], len(tokens)
    return tokens, len(tokens) - alone


def summed(request_id: str, windows: Sequence[Response]) -> Response:
    """Return the likelihood of a text from those of its windows: their sum, or the first failure.

    A text without windows has no tokens, and is certain.
    """
    failed = next((window for window in windows if window.error is not None), None)
    if failed is not None:
        return replace(failed, request_id=request_id)
    counts = [window.usage.input_tokens for window in windows if window.usage is not None]
    known = [count for count in counts if count is not None]
    together = tuple(dict.fromkeys(name for window in windows for name in window.batch))
    return Response(
        request_id,
        loglikelihood=math.fsum(window.loglikelihood or 0.0 for window in windows),
        is_greedy=all(window.is_greedy for window in windows),
        usage=Usage(sum(known), 0) if len(known) == len(windows) else None,
        batch=together if len(together) > 1 else (),
        model=windows[-1].model if windows else None,
    )

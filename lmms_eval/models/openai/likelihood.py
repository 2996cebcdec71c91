"""Likelihoods from servers that return the log probabilities of a prompt.

Plain completions (``api=completions``) return them with ``echo`` and ``logprobs``, and vLLM's chat completions with
``prompt_logprobs``. As only the server knows its tokenizer, a second request with the prompt alone gives the number of
tokens of the continuation, by the same rule as in the back end ``hf``. The likelihood of a whole text is requested in
windows of token ids, so the model's tokenizer must be here.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, field

from lmms_eval.api.request import Request, Usage
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.body import read_choice
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import Reply, read_tokens, scored_reply, served_model
from lmms_eval.models.windows import (
    ScoredTokens,
    context_length,
    pair_tokens,
    prefix_token,
    scored_windows,
    text_tokens,
)

PROMPTS_REMEMBERED = 4096
"""The number of cached prompt lengths. With the cache, the choices of a question share one request."""
LENGTH_FIELDS = ("max_tokens", "max_completion_tokens", "stop")


class Probe(Struct, frozen=True):
    """The bodies of the two requests for one likelihood."""

    whole: bytes
    """The prompt with its continuation."""
    prompt: bytes
    """The prompt alone."""

    @property
    def nbytes(self) -> int:
        return len(self.whole) + len(self.prompt)


class TextProbe(Struct):
    """The bodies of requests with token ids: for a continuation, or one for each window over a whole text."""

    bodies: list[bytes]
    counts: list[int]
    """Tokens at the end of each window whose likelihood is requested."""
    replies: list[Reply] = field(default_factory=list)
    """Replies so far: another attempt requests only the other windows."""

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.bodies))


def load_tokenizer(name: str) -> Any:
    """Load a tokenizer from a folder or the hub. Raises ``ModelError`` if it cannot be loaded or used."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(os.path.expanduser(name))
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"openai: tokenizer={name} cannot be loaded (give a folder or hub name): {reason}") from error
    if prefix_token(tokenizer) is None:
        raise ModelError(f"openai: tokenizer={name} has neither a start nor an end token")
    return tokenizer


def make_text_probe(body: Mapping[str, Any], text: str, tokenizer: Any, length: int | None) -> TextProbe:
    """Build the bodies for a whole text from that of a plain completion.

    A server takes a window whole and generates one token after it. So its input is two tokens shorter than the model's
    context of ``length`` tokens.
    """
    prefix = prefix_token(tokenizer)
    assert prefix is not None
    longest = max(1, (length or context_length(tokenizer)) - 2)
    return _token_probe(body, scored_windows(text_tokens(tokenizer, text), prefix, longest))


def make_pair_probe(body: Mapping[str, Any], request: Request, tokenizer: Any) -> TextProbe:
    """Build the body for a continuation from that of a plain completion, as token ids."""
    prompt, continuation = request.prompt_and_continuation(str(body["prompt"]), has_template=False)
    bos = tokenizer.bos_token
    tokens, added = pair_tokens(tokenizer, prompt, continuation, special=not (bos and prompt.startswith(bos)))
    first = len(tokens) - max(added, 0)
    return _token_probe(body, [(tokens[:first], tokens[first:])])


def _token_probe(body: Mapping[str, Any], windows: Sequence[ScoredTokens]) -> TextProbe:
    fields = {name: value for name, value in body.items() if name not in LENGTH_FIELDS}
    alone = {**fields, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
    bodies = [orjson.dumps({**alone, "prompt": [*before, *scored]}) for before, scored in windows]
    return TextProbe(bodies, [len(scored) for _, scored in windows])


def make_probe(body: Mapping[str, Any], request: Request) -> Probe:
    """Build the two bodies from that of a generation, for plain or chat completions."""
    fields = {name: value for name, value in body.items() if name not in LENGTH_FIELDS}
    alone: dict[str, Any] = {**fields, "max_tokens": 1, "temperature": 0}
    if "prompt" in body:
        prompt, continuation = request.prompt_and_continuation(alone["prompt"], has_template=False)
        whole = {**alone, "prompt": prompt + continuation, "echo": True, "logprobs": 1}
        return Probe(orjson.dumps(whole), orjson.dumps({**alone, "prompt": prompt}))
    # The continuation is the beginning of the answer, which stays open.
    messages, is_open = list(alone["messages"]), {"add_generation_prompt": False, "continue_final_message": True}
    is_begun = bool(messages) and messages[-1]["role"] == "assistant"
    continuation = request.continuation_after(has_template=not is_begun)
    if is_begun:
        alone.update(is_open)
        last = messages.pop()
        answer = {**last, "content": [*last["content"], {"type": "text", "text": continuation}]}
    else:
        answer = {"role": "assistant", "content": continuation}
    whole = {**alone, **is_open, "messages": [*messages, answer], "prompt_logprobs": 1}
    return Probe(orjson.dumps(whole), orjson.dumps(alone))


class ScoredReply(Reply, frozen=True):
    """A reply with the scores of the prompt's tokens, except the first (see ``scored_reply``)."""

    scores: tuple[tuple[float, float], ...] = ()


def parse_scores(raw: bytes, url: str) -> ScoredReply:
    """Read the log probabilities of a prompt from a plain or chat completion of status 200.

    Raises:
        AttemptError: ``bad_request`` if the server returns none; otherwise as in ``parse_completion``.
    """
    body, choice = read_choice(raw, url)
    usage = read_tokens(body.get("usage"), "prompt_tokens", "completion_tokens")
    try:
        scores = _of_chat(body) if "message" in choice else _of_plain(choice, usage)
    except (TypeError, KeyError, ValueError, LookupError, AttributeError) as error:
        raise AttemptError("malformed", f"{url} sent log probabilities in an unknown form: {error!r}") from error
    if not scores:
        raise AttemptError(
            "bad_request",
            f"{url} returns no log probabilities of a prompt, which likelihoods need: use chat completions of vLLM, or "
            "plain ones (api=completions) of a server that supports echo with logprobs",
        )
    return ScoredReply("", None, usage, model=served_model(body), scores=scores)


def _of_chat(body: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    """Read ``prompt_logprobs``: the log probabilities of each token and of the most likely one (maybe the same)."""
    known = [entry for entry in body.get("prompt_logprobs") or () if entry]
    values = [sorted(float(token["logprob"]) for token in entry.values()) for entry in known]
    return tuple((entry[0], entry[-1]) for entry in values)


def _of_plain(choice: Mapping[str, Any], usage: Usage | None) -> tuple[tuple[float, float], ...]:
    scores = choice.get("logprobs")
    if not scores:
        return ()
    end = len(scores["token_logprobs"]) - ((usage.output_tokens if usage is not None else None) or 0)
    pairs = list(zip(scores["token_logprobs"], scores["top_logprobs"], strict=True))[:end]
    return tuple(
        (float(own), max(float(own), *map(float, (likeliest or {}).values())))
        for own, likeliest in pairs
        if own is not None
    )


class LikelihoodScorer:
    """Requests likelihoods. ``ask`` makes an attempt for a reply, ``ask_scores`` for log probabilities."""

    def __init__(
        self, ask: Callable[[bytes], Awaitable[Reply]], ask_scores: Callable[[bytes], Awaitable[Reply]]
    ) -> None:
        self._ask, self._ask_scores = ask, ask_scores
        self._lengths: OrderedDict[bytes, asyncio.Task[int]] = OrderedDict()

    async def score(self, probe: Probe) -> Reply:
        """Make one attempt. Raises ``AttemptError`` if a request failed, or the continuation adds no token."""
        whole = await self._ask_scores(probe.whole)
        assert isinstance(whole, ScoredReply)
        # Concurrent and later calls share one request.
        task = self._lengths.get(probe.prompt)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._lengths[probe.prompt] = asyncio.create_task(self._asked_length(probe.prompt))
            while len(self._lengths) > PROMPTS_REMEMBERED:
                self._lengths.popitem(last=False)
        length = await asyncio.shield(task)
        total = _input_tokens(whole)
        added = total - length
        if not 0 < added <= len(whole.scores):
            raise AttemptError(
                "bad_request", f"the continuation adds no token to the prompt ({length} tokens, {total} with it)"
            )
        return scored_reply(whole.scores[-added:], total, whole.model)

    async def score_text(self, probe: TextProbe) -> Reply:
        """Make one attempt for all windows over a text. Raises ``AttemptError`` if a request failed."""
        for body, count in list(zip(probe.bodies, probe.counts, strict=True))[len(probe.replies) :]:
            reply = await self._ask_scores(body)
            assert isinstance(reply, ScoredReply)
            if not count:
                raise AttemptError("bad_request", "the continuation adds no token to the prompt")
            if len(reply.scores) < count:
                raise AttemptError(
                    "bad_request",
                    f"the server returned {len(reply.scores)} log probabilities for {count} tokens of a text: it does "
                    "not take prompts of token ids, or tokenizer is not the model's",
                )
            probe.replies.append(scored_reply(reply.scores[-count:], _input_tokens(reply), reply.model))
        scored = [reply.likelihood for reply in probe.replies if reply.likelihood is not None]
        return Reply(
            "",
            None,
            Usage(sum(map(_input_tokens, probe.replies)), 0),
            model=probe.replies[-1].model if probe.replies else None,
            likelihood=(math.fsum(value for value, _ in scored), all(is_greedy for _, is_greedy in scored)),
        )

    async def _asked_length(self, prompt: bytes) -> int:
        return _input_tokens(await self._ask(prompt))

    async def close(self) -> None:
        """Cancel the open requests."""
        for task in self._lengths.values():
            task.cancel()
        await asyncio.gather(*self._lengths.values(), return_exceptions=True)


def _input_tokens(reply: Reply) -> int:
    count = reply.usage.input_tokens if reply.usage is not None else None
    if count is None:
        raise AttemptError("bad_request", "the server counts no prompt tokens (usage), which likelihoods need")
    return count

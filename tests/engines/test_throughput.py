"""Throughput of ``--model vllm`` against a bare ``LLM.generate`` on the same prompts."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from tests.engines.models import ENGINE
from tests.models.hf.support import answers, ask

PROMPTS, TOKENS, ROUNDS = 48, 24, 5
LEAST = 0.95


def questions(round_number: int) -> list[str]:
    """Of different lengths, and new in each round: prefixes are kept by the engine."""
    return [
        f"Round {round_number}, question {number}: {'tell me of the sea and of the moon. ' * (1 + number % 5)}"
        for number in range(PROMPTS)
    ]


@pytest.mark.slow
def test_no_slower_than_a_bare_engine(vllm_text: Any, smol: Path) -> None:
    import vllm
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smol)
    bare = vllm.LLM(model=str(smol), enable_prefix_caching=True, **ENGINE)
    sampling = vllm.SamplingParams(max_tokens=TOKENS, min_tokens=TOKENS, temperature=0)

    def ours(texts: list[str]) -> float:
        asked = [
            ask(number, text, max_new_tokens=TOKENS, min_tokens=TOKENS, do_sample=False)
            for number, text in enumerate(texts)
        ]
        began = time.perf_counter()
        found = answers(vllm_text, asked)
        seconds = time.perf_counter() - began
        assert all(answer.usage is not None and answer.usage.output_tokens == TOKENS for answer in found.values())
        return seconds

    def theirs(texts: list[str]) -> float:
        began = time.perf_counter()
        rendered = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
            for text in texts
        ]
        prompts = [
            {"prompt_token_ids": tokens} for tokens in tokenizer(rendered, add_special_tokens=False)["input_ids"]
        ]
        bare.generate(prompts, sampling, use_tqdm=False)
        return time.perf_counter() - began

    ours(questions(-1)), theirs(questions(-1))  # the first passes compile what they need
    pairs = [(ours(questions(number)), theirs(questions(number))) for number in range(ROUNDS)]
    bare.llm_engine.engine_core.shutdown()
    # Of each pair by itself: what else the machine does changes from one to the next.
    share = statistics.median(others / own for own, others in pairs)
    print(f"throughput {share:.3f} of a bare LLM.generate; seconds of both: {pairs}")
    assert share >= LEAST

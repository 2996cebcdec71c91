"""Vectors of the base classes that plugins of the family subclass; rows of ``family_functions/visual_cot.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import FailedGeneration, Instance
from lmms_eval.api.model import CacheHook
from lmms_eval.models.chat._chat_base import ChatMixin
from lmms_eval.protocol import ChatMessages
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed

CHAT_MIXIN = "ChatMixin.generate_until"
DEFECT_RULE = "family_defect_is_mended"
FAILURE_RULE = "family_failed_request_is_no_empty_answer"


class _Reported(CacheHook):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        self.seen.append((method, arguments[0], result))


class _Plugin(ChatMixin):
    """Answers with the question and the most new tokens."""

    rank = 0

    def __init__(self, count: int, failing: Sequence[str], batch: int) -> None:
        self.batch_size, self.failing = batch, failing
        self.cache_hook = _Reported()
        self.task_dict = {"t": {"test": [{"question": f"q{number}"} for number in range(count)]}}

    def _infer_one(self, chat_messages: ChatMessages, gen_kwargs: dict[str, Any]) -> str:
        question = chat_messages.text()
        if question in self.failing:
            raise RuntimeError(question)
        return f"{question}:{gen_kwargs.pop('max_new_tokens')}"


def _turns(doc: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": doc["question"]}]}]


def chat_mixin(count: int, fail: Sequence[str] = (), batch: int = 1) -> tuple[list[Any], list[list[Any]]]:
    """Answers to ``count`` documents, and what was reported, sorted."""
    plugin = _Plugin(count, fail, batch)
    requests = [
        Instance(
            "generate_until",
            (f"c{count - number}", _turns, {"max_new_tokens": 5 + number % 2}, number, "t", "test"),
            number,
        )
        for number in range(count)
    ]
    answers = plugin.generate_until(requests)
    return answers, sorted(list(entry) for entry in plugin.cache_hook.seen)


def judge_chat_mixin(vector: Vector) -> Verdict:
    """Compare a row of ``CHAT_MIXIN``; a request that raised is a failed one here, not an empty answer."""
    record = vector.record
    expected = record["wanted"] if record.get("defect") else record["expected"]
    failing = record["kwargs"].get("fail", ())
    answers, reported = chat_mixin(*record["args"], **record["kwargs"])
    if not all(isinstance(answer, str | FailedGeneration) for answer in answers):
        return failed(f"answers {answers!r}")
    texts = ["" if isinstance(answer, FailedGeneration) else answer for answer in answers]
    given = [entry for entry in expected["reported"] if entry[2] != ""]
    if (texts, reported) != (expected["answers"], given):
        return failed(f"{texts!r} and {reported!r} instead of {expected!r}")
    if failing:
        return deviates(FAILURE_RULE)
    return deviates(DEFECT_RULE) if record.get("defect") else PASSED

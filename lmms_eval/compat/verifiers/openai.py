"""The verifier that asks a judge (family names §5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.api.outcome import note_absence
from lmms_eval.compat.llm_judge import Request, ServerConfig, get_server
from lmms_eval.compat.verifiers.steps import Verifier, VerifyResult
from lmms_eval.judges.replies import parse_binary_response
from lmms_eval.utils.redaction import redact_text

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
JUDGE_TYPES = ("binary", "comparative")
RESPONSE_FORMATS = ("binary", "score")
RIGHT_FROM = 0.5
"""Least score, of 1, of a right answer where the judge gives a number."""


class OpenAIVerifier(Verifier):
    """Asks a judge, with a task's own prompt or a built-in binary or comparative one.

    If the judge fails, the document is *not evaluated*, whatever the task does with the result: its score is 0 and its
    metadata hold ``judge_failed``. An unknown judge type or response format has the same effect, without a question to
    the judge.

    Args:
        model: name of the judge.
        api_type: provider, else the environment's ``API_TYPE``, else ``openai``.
        judge_type: ``binary`` or ``comparative``, used without a ``custom_prompt``.
        custom_prompt: template for ``str.format`` with ``question``, ``prediction``, ``ground_truth`` and the keywords
            of the call, or a function that gets these three by position and the keywords.
        response_format: how the reply to a ``custom_prompt`` is read: ``binary`` or ``score``.
        response_parser: a function that reads that reply instead: it takes the text and returns a ``VerifyResult``.
        score_range: ends of the judge's scale.
        max_retries: further attempts after a failed one.
        retry_delay: the longest first pause between attempts, in seconds.
        temperature: as the judge takes it.
        max_tokens: longest reply.

    Raises:
        UnknownNameError: no provider has that name.
    """

    def __init__(  # noqa: PLR0913 - the parameters of the family's interface
        self,
        model: str = "gpt-4o-2024-11-20",
        api_type: str | None = None,
        judge_type: str = "binary",
        custom_prompt: str | Callable[..., str] | None = None,
        response_format: str = "binary",
        response_parser: Callable[[str], VerifyResult] | None = None,
        score_range: Sequence[float] = (0.0, 10.0),
        max_retries: int = 5,
        retry_delay: float = 2.0,
        temperature: float = 0.0,
        max_tokens: int = 1024,
    ) -> None:
        self.model, self.judge_type = model, judge_type
        self.custom_prompt, self.response_format, self.response_parser = custom_prompt, response_format, response_parser
        low, high = score_range
        self.score_range = (float(low), float(high))
        config = ServerConfig(
            model_name=model,
            temperature=temperature,
            max_tokens=max_tokens,
            num_retries=max_retries,
            retry_delay=retry_delay,
        )
        self.server = get_server(api_type, config)

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Ask the judge; ``images`` accompany the prompt, except the built-in binary one."""
        try:
            self._check_modes()
            if self.custom_prompt is not None:
                return self._by_custom_prompt(question, prediction, ground_truth, **kwargs)
            if self.judge_type == "binary":
                return self._by_binary_prompt(question, prediction, ground_truth, **kwargs)
            return self._by_comparison(question, prediction, ground_truth, **kwargs)
        except Exception as error:  # noqa: BLE001 - a judge, or a task's own prompt or parser, may raise anything
            return self._failed(redact_text(f"error: {error}"), {})  # it may quote a key

    def _check_modes(self) -> None:
        """Raise ``ValueError`` for a judge type or response format that is used and does not exist."""
        if self.custom_prompt is None and self.judge_type not in JUDGE_TYPES:
            raise ValueError(f"unknown judge_type {self.judge_type!r}; give {' or '.join(JUDGE_TYPES)}")
        is_read_here = self.custom_prompt is not None and self.response_parser is None
        if is_read_here and self.response_format not in RESPONSE_FORMATS:
            raise ValueError(f"unknown response_format {self.response_format!r}; give {' or '.join(RESPONSE_FORMATS)}")

    def _by_custom_prompt(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        template = self.custom_prompt
        assert template is not None  # verify has checked it
        if isinstance(template, str):
            prompt = template.format(question=question, prediction=prediction, ground_truth=ground_truth, **kwargs)
        else:
            prompt = template(question, prediction, ground_truth, **kwargs)
        request = Request(messages=[{"role": "user", "content": prompt}], images=kwargs.get("images"))
        response = self.server.evaluate(request)
        if not response.success:
            return self._failed(response.content, {"model": response.model_used})
        if self.response_parser is not None:
            return self.response_parser(response.content)
        if self.response_format == "binary":
            is_correct = parse_binary_response(response.content)
            return VerifyResult(float(is_correct), is_correct, response.content)
        score = _parse_score_response(response.content, self.score_range)
        return VerifyResult(score, score >= RIGHT_FROM, response.content)

    def _by_binary_prompt(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        reply = self.server.evaluate_binary(
            question=question,
            answer=ground_truth,
            prediction=prediction,
            output_format=kwargs.get("output_format", "0/1"),
        )
        if not reply["success"]:
            return self._failed(reply["raw_response"], {"model": reply["model"]})
        is_correct = bool(reply["result"])
        return VerifyResult(float(is_correct), is_correct, reply["raw_response"], {"model": reply["model"]})

    def _by_comparison(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        reply = self.server.evaluate_comparative(
            question=question,
            response1=prediction,
            response2=kwargs.get("reference_response", ground_truth),
            score_range=self.score_range,
            images=kwargs.get("images"),
        )
        if not reply["success"]:
            return self._failed(reply["raw_response"], {"model": reply["model"]})
        first, second = reply["scores"]
        low, high = self.score_range
        score = _scaled(first, low, high) if high > low else 0.0
        metadata = {"score_1": first, "score_2": second, "model": reply["model"]}
        return VerifyResult(score, first > second, reply["raw_response"], metadata)

    def _failed(self, output: str, metadata: dict[str, Any]) -> VerifyResult:
        note_absence(f"the judge {self.model} failed: {output}")
        return VerifyResult(0.0, False, output, {**metadata, "judge_failed": True})


def _parse_score_response(text: str, score_range: Sequence[float] = (0.0, 10.0)) -> float:
    """Read the first number of a reply on the scale, from 0 to 1; 0 without a number."""
    found = _NUMBER.search(text)
    if found is None:
        return 0.0
    low, high = score_range
    return float(float(found[0]) >= high) if low == high else _scaled(float(found[0]), low, high)


def _scaled(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))

"""Verification of free answers: extractors cut the answer out of a text, and a verifier compares it with the truth."""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from lmms_eval.api.outcome import note_absence
from lmms_eval.filters.reasoning import TagPairs, strip_reasoning_tags
from lmms_eval.judges.prompts import parse_binary_response
from lmms_eval.metrics.answers import ABS_TOL, REL_TOL, bare_choice, extract_mcq_answer, is_contained, read_number
from lmms_eval.utils.redaction import redact_text


class VerifyResult(Struct):
    """Result of a verification. Task files change it, so it is not frozen."""

    score: float
    """From 0 to 1."""
    is_correct: bool
    raw_output: str = ""
    """The comparison in words, or the judge's reply."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """``confident``: a composite stops here; ``judge_failed``: the score says nothing about the answer."""


class Extractor(abc.ABC):
    """Step that cuts the answer out of a model's text."""

    @abc.abstractmethod
    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the extracted text; ``kwargs`` are the keywords of the verification."""

    def __call__(self, text: Any, **kwargs: Any) -> str:
        return self.extract(text, **kwargs)


class Verifier(abc.ABC):
    """Step that compares a prediction with the truth."""

    @abc.abstractmethod
    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare a prediction with the truth."""

    def __call__(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        return self.verify(question, prediction, ground_truth, **kwargs)


THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))
SPECIAL_TOKENS = ("</s>", "<|endoftext|>", "<|end_of_sentence|>", "<|im_end|>", "[/INST]")
_BOXED = "\\boxed{"
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


class StripReasoningExtractor(Extractor):
    """Removes the text between reasoning tags (harness specification §12.3)."""

    def __init__(self, tag_pairs: TagPairs = THOUGHTS) -> None:
        self.tag_pairs = tag_pairs

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the trimmed rest. Other values are converted to text, and ``None`` counts as empty text."""
        return strip_reasoning_tags("" if text is None else str(text), self.tag_pairs)


class RegexExtractor(Extractor):
    """A group of a pattern's first match, or the whole match if the pattern lacks it; ``fallback`` without a match."""

    def __init__(self, pattern: str, group: int | str = 1, fallback: str = "", flags: int = 0) -> None:
        self.pattern, self.group, self.fallback = re.compile(pattern, flags), group, fallback

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the group, trimmed.

        Raises ``AttributeError`` if the pattern matches, but the group takes no part in it.
        """
        found = self.pattern.search(text)
        if found is None:
            return self.fallback
        try:
            group: str | None = found.group(self.group)
        except IndexError:
            group = found.group()
        if group is None:
            raise AttributeError(
                f"group {self.group} of {self.pattern.pattern!r} took no part in the match: choose another group"
            )
        return group.strip()


class MCQExtractor(Extractor):
    """The letter of a multiple-choice answer; the call's ``choices`` beat the constructor's."""

    def __init__(self, choices: Sequence[str] | None = None) -> None:
        self.choices = choices

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the choice, or empty text."""
        return extract_mcq_answer(text, kwargs.get("choices", self.choices))


class NumberExtractor(Extractor):
    r"""The first ``\boxed{…}`` as it is, else the last number without its commas."""

    def __init__(self, fallback: str = "") -> None:
        self.fallback = fallback

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the number's text, or the fallback."""
        begin = text.find(_BOXED)
        while begin >= 0:
            begin += len(_BOXED)
            end = text.find("}", begin)
            if end > begin:
                return str(text[begin:end]).strip()
            begin = text.find(_BOXED, begin) if end == begin else -1
        numbers = _NUMBER.findall(text)
        return str(numbers[-1]).replace(",", "") if numbers else self.fallback


class StripExtractor(Extractor):
    """Removal of special tokens of chat templates and of white space around."""

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the trimmed rest."""
        for token in SPECIAL_TOKENS:
            text = text.replace(token, "")
        return str(text).strip()


EXTRACTOR_REGISTRY: Mapping[str, type[Extractor]] = MappingProxyType(
    {
        "strip_reasoning": StripReasoningExtractor,
        "regex": RegexExtractor,
        "mcq": MCQExtractor,
        "number": NumberExtractor,
        "strip": StripExtractor,
    }
)
"""Extractors by the names of configurations."""

_LETTER = re.compile("[A-Z]")


def _result(is_correct: bool, raw_output: str, *, confident: bool) -> VerifyResult:
    return VerifyResult(float(is_correct), is_correct, raw_output, {"confident": confident})


class ExactMatchVerifier(Verifier):
    """Equality of texts; confident only of a match."""

    def __init__(self, ignore_case: bool = True, strip: bool = True) -> None:
        self.ignore_case, self.strip = ignore_case, strip

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the two texts."""
        one, other = self._folded(prediction), self._folded(ground_truth)
        return _result(one == other, f"exact_match: {one!r} vs {other!r}", confident=one == other)

    def _folded(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.lower() if self.ignore_case else text


class ContainsVerifier(Verifier):
    """Containment of the truth in the prediction; confident only of a match."""

    def __init__(self, ignore_case: bool = True) -> None:
        self.ignore_case = ignore_case

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Look for the truth in the prediction."""
        found = is_contained(ground_truth, prediction, self.ignore_case)
        if self.ignore_case:
            ground_truth = ground_truth.lower()
        return _result(found, f"contains: {ground_truth!r} in prediction={found}", confident=found)


class MCQMatchVerifier(Verifier):
    """Equality of two choices; confident if the prediction is one letter from A to Z."""

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the choices in upper case, without parentheses and full stops around them."""
        one, other = map(bare_choice, (prediction, ground_truth))
        return _result(one == other, f"mcq_match: {one!r} vs {other!r}", confident=bool(_LETTER.fullmatch(one)))


class NumericToleranceVerifier(Verifier):
    """Closeness of two numbers (``math.isclose``); confident if both could be read."""

    def __init__(self, rel_tol: float = REL_TOL, abs_tol: float = ABS_TOL) -> None:
        self.rel_tol, self.abs_tol = rel_tol, abs_tol

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the numbers that the two texts hold."""
        one, other = read_number(prediction), read_number(ground_truth)
        if one is None or other is None:
            return _result(False, f"numeric_parse_fail: pred={prediction!r} gt={ground_truth!r}", confident=False)
        close = math.isclose(one, other, rel_tol=self.rel_tol, abs_tol=self.abs_tol)
        return _result(close, f"numeric: {one} vs {other} (rel_tol={self.rel_tol})", confident=True)


class CompositeVerifier(Verifier):
    """The first confident of several verifiers, cheap ones first; without one, the last.

    Raises ``ValueError`` if there are no verifiers.
    """

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        if not verifiers:
            raise ValueError("a composite verifier needs at least one verifier: fill its list 'verifiers'")
        self.verifiers = list(verifiers)

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Return the first result whose metadata do not deny ``confident``, else the last one."""
        *others, last = self.verifiers
        for verifier in others:
            result = verifier(question, prediction, ground_truth, **kwargs)
            if result.metadata.get("confident", True):
                return result
        return last(question, prediction, ground_truth, **kwargs)


_RATING = re.compile(r"-?\d+(?:\.\d+)?")
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
        from lmms_eval.compat.llm_judge import ServerConfig, get_server  # only when a judge is needed

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
            if self.custom_prompt is None and self.judge_type not in JUDGE_TYPES:
                raise ValueError(f"unknown judge_type {self.judge_type!r}; give {' or '.join(JUDGE_TYPES)}")
            is_read_here = self.custom_prompt is not None and self.response_parser is None
            if is_read_here and self.response_format not in RESPONSE_FORMATS:
                known = " or ".join(RESPONSE_FORMATS)
                raise ValueError(f"unknown response_format {self.response_format!r}; give {known}")
            if self.custom_prompt is not None:
                return self._by_custom_prompt(question, prediction, ground_truth, **kwargs)
            if self.judge_type == "binary":
                return self._by_binary_prompt(question, prediction, ground_truth, **kwargs)
            return self._by_comparison(question, prediction, ground_truth, **kwargs)
        except Exception as error:  # noqa: BLE001 - a judge, or a task's own prompt or parser, may raise anything
            return self._failed(redact_text(f"error: {error}"), {})  # it may quote a key

    def _by_custom_prompt(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        template = self.custom_prompt
        assert template is not None  # verify has checked it
        if isinstance(template, str):
            prompt = template.format(question=question, prediction=prediction, ground_truth=ground_truth, **kwargs)
        else:
            prompt = template(question, prediction, ground_truth, **kwargs)
        from lmms_eval.compat.llm_judge import Request

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
    found = _RATING.search(text)
    if found is None:
        return 0.0
    low, high = score_range
    return float(float(found[0]) >= high) if low == high else _scaled(float(found[0]), low, high)


def _scaled(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


class VerificationPipeline:
    """Extractors in order, then the verifier. Raises ``ValueError`` without a verifier."""

    def __init__(self, extractors: Sequence[Extractor] | None = None, verifier: Verifier | None = None) -> None:
        if verifier is None:
            raise ValueError("a verification pipeline needs a verifier: give verifier=...")
        self.extractors, self.verifier = list(extractors or ()), verifier

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Verify one prediction; the metadata hold it before and after the extractors."""
        extracted = prediction
        for extractor in self.extractors:
            extracted = extractor(extracted, **kwargs)
        result = self.verifier(question, extracted, ground_truth, **kwargs)
        result.metadata |= {"raw_prediction": prediction, "extracted_prediction": extracted}
        return result

    def __call__(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        return self.verify(question, prediction, ground_truth, **kwargs)


def _composite(verifiers: Sequence[Mapping[str, Any]]) -> Verifier:
    return CompositeVerifier([_built("verifier", VERIFIER_REGISTRY, config) for config in verifiers])


VERIFIER_REGISTRY: Mapping[str, Callable[..., Verifier]] = MappingProxyType(
    {
        "exact_match": ExactMatchVerifier,
        "contains": ContainsVerifier,
        "mcq_match": MCQMatchVerifier,
        "numeric": NumericToleranceVerifier,
        "composite": _composite,
        "openai": OpenAIVerifier,
    }
)
"""Builders of verifiers by the names of configurations."""


def build_verification_pipeline(config: Mapping[str, Any]) -> VerificationPipeline:
    """Build a pipeline from ``{"extractors": [{"type": …, **arguments}], "verifier": {"type": …, **arguments}}``.

    Raises:
        KeyError: no verifier, no type, or an unknown one.
        TypeError: arguments that the type does not take.
        ValueError: a composite of no verifiers.
    """
    if "verifier" not in config:
        raise KeyError(f"a verification pipeline needs the key 'verifier'; it has {', '.join(config) or 'no keys'}")
    extractors = [_built("extractor", EXTRACTOR_REGISTRY, one) for one in config.get("extractors") or ()]
    return VerificationPipeline(extractors, _built("verifier", VERIFIER_REGISTRY, config["verifier"]))


def _built(kind: str, known: Mapping[str, Callable[..., Any]], config: Mapping[str, Any]) -> Any:
    """Build what ``type`` names with the other keys as arguments."""
    if "type" not in config:
        raise KeyError(f"{kind} {dict(config)!r:.120}: the key 'type' is missing; give one of {', '.join(known)}")
    if config["type"] not in known:
        raise KeyError(f"unknown {kind} {config['type']!r}; known are {', '.join(known)}")
    return known[config["type"]](**{key: value for key, value in config.items() if key != "type"})

"""Extractors followed by a verifier, built in code or from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.compat.verifiers.steps import (
    EXTRACTOR_REGISTRY,
    CompositeVerifier,
    ContainsVerifier,
    ExactMatchVerifier,
    Extractor,
    MCQMatchVerifier,
    NumericToleranceVerifier,
    Verifier,
    VerifyResult,
)


class VerificationPipeline:
    """Extractors in order, then the verifier.

    Raises:
        ValueError: no verifier.
    """

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


def _openai(**arguments: Any) -> Verifier:
    """Import the client of judges only when a judge is needed."""
    from lmms_eval.compat.verifiers.openai import OpenAIVerifier

    return OpenAIVerifier(**arguments)


def _composite(verifiers: Sequence[Mapping[str, Any]]) -> Verifier:
    return CompositeVerifier([_built("verifier", VERIFIER_REGISTRY, config) for config in verifiers])


VERIFIER_REGISTRY: Mapping[str, Callable[..., Verifier]] = MappingProxyType(
    {
        "exact_match": ExactMatchVerifier,
        "contains": ContainsVerifier,
        "mcq_match": MCQMatchVerifier,
        "numeric": NumericToleranceVerifier,
        "composite": _composite,
        "openai": _openai,
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

"""Verification of free answers, at the family's import path."""

from lmms_eval.verifiers.base import Extractor, Verifier, VerifyResult, parse_binary_response
from lmms_eval.verifiers.composite import CompositeVerifier
from lmms_eval.verifiers.extractors import (
    EXTRACTOR_REGISTRY,
    MCQExtractor,
    NumberExtractor,
    RegexExtractor,
    StripExtractor,
    StripReasoningExtractor,
)
from lmms_eval.verifiers.pipeline import VERIFIER_REGISTRY, VerificationPipeline, build_verification_pipeline
from lmms_eval.verifiers.rule import ContainsVerifier, ExactMatchVerifier, MCQMatchVerifier, NumericToleranceVerifier

__all__ = [
    "EXTRACTOR_REGISTRY",
    "VERIFIER_REGISTRY",
    "CompositeVerifier",
    "ContainsVerifier",
    "ExactMatchVerifier",
    "Extractor",
    "MCQExtractor",
    "MCQMatchVerifier",
    "NumberExtractor",
    "NumericToleranceVerifier",
    "RegexExtractor",
    "StripExtractor",
    "StripReasoningExtractor",
    "VerificationPipeline",
    "Verifier",
    "VerifyResult",
    "build_verification_pipeline",
    "parse_binary_response",
]

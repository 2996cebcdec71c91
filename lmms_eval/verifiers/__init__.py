"""Verification of free answers, at the family's import path."""

from lmms_eval.compat.verifiers.base import Extractor as Extractor
from lmms_eval.compat.verifiers.base import Verifier as Verifier
from lmms_eval.compat.verifiers.base import VerifyResult as VerifyResult
from lmms_eval.compat.verifiers.composite import CompositeVerifier as CompositeVerifier
from lmms_eval.compat.verifiers.extractors import EXTRACTOR_REGISTRY as EXTRACTOR_REGISTRY
from lmms_eval.compat.verifiers.extractors import MCQExtractor as MCQExtractor
from lmms_eval.compat.verifiers.extractors import NumberExtractor as NumberExtractor
from lmms_eval.compat.verifiers.extractors import RegexExtractor as RegexExtractor
from lmms_eval.compat.verifiers.extractors import StripExtractor as StripExtractor
from lmms_eval.compat.verifiers.extractors import StripReasoningExtractor as StripReasoningExtractor
from lmms_eval.compat.verifiers.pipeline import VERIFIER_REGISTRY as VERIFIER_REGISTRY
from lmms_eval.compat.verifiers.pipeline import VerificationPipeline as VerificationPipeline
from lmms_eval.compat.verifiers.pipeline import build_verification_pipeline as build_verification_pipeline
from lmms_eval.compat.verifiers.rule import ContainsVerifier as ContainsVerifier
from lmms_eval.compat.verifiers.rule import ExactMatchVerifier as ExactMatchVerifier
from lmms_eval.compat.verifiers.rule import MCQMatchVerifier as MCQMatchVerifier
from lmms_eval.compat.verifiers.rule import NumericToleranceVerifier as NumericToleranceVerifier
from lmms_eval.judges.replies import parse_binary_response as parse_binary_response

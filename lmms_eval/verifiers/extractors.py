"""Extractors, at the family's import path."""

from lmms_eval.compat.verifiers.extractors import EXTRACTOR_REGISTRY as EXTRACTOR_REGISTRY
from lmms_eval.compat.verifiers.extractors import MCQExtractor as MCQExtractor
from lmms_eval.compat.verifiers.extractors import NumberExtractor as NumberExtractor
from lmms_eval.compat.verifiers.extractors import RegexExtractor as RegexExtractor
from lmms_eval.compat.verifiers.extractors import StripExtractor as StripExtractor
from lmms_eval.compat.verifiers.extractors import StripReasoningExtractor as StripReasoningExtractor

"""Verifiers by rule, at the family's import path."""

from lmms_eval.compat.verifiers.rule import ContainsVerifier as ContainsVerifier
from lmms_eval.compat.verifiers.rule import ExactMatchVerifier as ExactMatchVerifier
from lmms_eval.compat.verifiers.rule import MCQMatchVerifier as MCQMatchVerifier
from lmms_eval.compat.verifiers.rule import NumericToleranceVerifier as NumericToleranceVerifier

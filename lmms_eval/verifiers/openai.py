"""The verifier that asks a judge, at the family's import path."""

from lmms_eval.compat.verifiers.openai import OpenAIVerifier as OpenAIVerifier
from lmms_eval.compat.verifiers.openai import _parse_score_response as _parse_score_response

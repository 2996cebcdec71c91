"""Abstract verifiers, at the family's import path."""

from lmms_eval.compat.verifiers.base import Extractor as Extractor
from lmms_eval.compat.verifiers.base import Verifier as Verifier
from lmms_eval.compat.verifiers.base import VerifyResult as VerifyResult
from lmms_eval.judges.replies import parse_binary_response as parse_binary_response

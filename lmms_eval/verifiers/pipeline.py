"""Verification pipelines, at the family's import path."""

from lmms_eval.compat.verifiers.pipeline import VERIFIER_REGISTRY as VERIFIER_REGISTRY
from lmms_eval.compat.verifiers.pipeline import VerificationPipeline as VerificationPipeline
from lmms_eval.compat.verifiers.pipeline import build_verification_pipeline as build_verification_pipeline

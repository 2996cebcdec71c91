"""Composite verifiers, at the family's import path."""

from lmms_eval.compat.verifiers.composite import CompositeVerifier as CompositeVerifier

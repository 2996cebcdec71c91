"""Equality of mathematical answers, at the family's import path."""

from lmms_eval.compat.math_verification import MathVerifyFn as MathVerifyFn

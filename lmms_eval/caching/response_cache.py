"""The names that programs of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.response_cache import ResponseCache as ResponseCache
from lmms_eval.compat.response_cache import canonicalize_gen_kwargs as canonicalize_gen_kwargs
from lmms_eval.compat.response_cache import compute_cache_key as compute_cache_key
from lmms_eval.compat.response_cache import extract_gen_kwargs as extract_gen_kwargs
from lmms_eval.compat.response_cache import is_deterministic as is_deterministic

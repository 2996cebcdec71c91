"""Language models without eyes and ears."""

from __future__ import annotations

from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.profile import COMMON, VISUAL_OPTIONS, Profile


class HFText(HuggingFace):
    """Any causal language model of transformers; a request with media fails as ``bad_request``."""

    profile = Profile(
        name="hf_text",
        loader="AutoModelForCausalLM",
        architecture="a causal language model",
        parts=("tokenizer",),
        media=frozenset(),
        aliases=COMMON,
        without=VISUAL_OPTIONS,
    )

"""The record of an evaluation's settings. Task files of the family read a model's name from it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from lmms_eval.utils.names import MODEL_KEYS, model_name_from_args, sanitize_model_name


class GeneralConfigTracker(Struct):
    """Settings of one evaluation and the time it took."""

    model_source: str | None = None
    model_name: str | None = None
    model_name_sanitized: str | None = None
    system_instruction: str | None = None
    system_instruction_sha: str | None = None
    fewshot_as_multiturn: bool | None = None
    chat_template: str | None = None
    chat_template_sha: str | None = None
    start_time: float = field(default_factory=time.perf_counter)
    """In seconds of a clock with an arbitrary zero; so is ``end_time``."""
    end_time: float = 0.0
    total_evaluation_time_seconds: str = "0.0"

    @staticmethod
    def _get_model_name(model_args: str | Mapping[str, Any]) -> str:
        """Return the model's name in its arguments, or empty text if they name no model.

        Keys are tried in the family's order. In a text they are found anywhere, so ``base_model=x`` counts as
        ``model=x``.
        """
        if isinstance(model_args, Mapping):
            keys = (key.removesuffix("=") for key in MODEL_KEYS)
            return next((str(model_args[key]) for key in keys if key in model_args), "")
        return model_name_from_args(model_args)

    def log_experiment_args(
        self,
        model_source: str,
        model_args: str | Mapping[str, Any],
        system_instruction: str | None = None,
        chat_template: str | None = None,
        fewshot_as_multiturn: bool | None = None,
    ) -> None:
        """Record the settings; long texts with their SHA-256."""
        self.model_source, self.model_name = model_source, self._get_model_name(model_args)
        self.model_name_sanitized = sanitize_model_name(self.model_name)
        self.system_instruction, self.system_instruction_sha = system_instruction, _sha256(system_instruction)
        self.chat_template, self.chat_template_sha = chat_template, _sha256(chat_template)
        self.fewshot_as_multiturn = fewshot_as_multiturn

    def log_end_time(self) -> None:
        """Record the end, and the seconds since the start as text."""
        self.end_time = time.perf_counter()
        self.total_evaluation_time_seconds = str(self.end_time - self.start_time)


def _sha256(text: str | None) -> str | None:
    return hashlib.sha256(text.encode()).hexdigest() if text else None

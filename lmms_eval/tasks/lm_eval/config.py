"""Keys of lm-eval's task files: those that other tasks lack, and their defaults."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.config import TaskConfig, TaskKeys

log = logging.getLogger(__name__)
STOP_KEY = "until"
LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""Names of the greatest number of new tokens; the first that is given counts."""
MOST_TOKENS = 256
"""The greatest number of new tokens of a task that states none."""
_DEFAULT_GENERATION = {"temperature": 0.0, "do_sample": False, "max_gen_toks": MOST_TOKENS}
_EXAMPLE_KEYS = (
    "doc_to_choice", "doc_to_target", "doc_to_text", "fewshot_delimiter", "fewshot_indices", "gen_prefix",
    "process_docs", "sampler", "samples", "split", "target_delimiter",
)  # fmt: skip
MEDIA_KEYS = ("doc_to_image", "doc_to_audio")
_DECONTAMINATION = ("should_decontaminate", "doc_to_decontamination_query")


class LmEvalConfig(TaskConfig):
    """Every key of a task of lm-eval."""

    gen_prefix: Any = None
    custom_dataset: Any = None
    unsafe_code: bool = False
    doc_to_image: Any = None
    doc_to_audio: Any = None
    recipe: Any = None

    @property
    def split(self) -> str:
        return str(self.test_split or self.validation_split)

    @property
    def examples(self) -> Mapping[str, Any]:
        """The keys of ``fewshot_config``, which hold for the examples only."""
        return self.fewshot_config or {}


def lm_eval_config(data: Mapping[str, Any], file: str) -> LmEvalConfig:
    """Check the keys of a task of lm-eval.

    Raises ``TaskError`` as ``task_config`` does, or if the task takes its prompts from ``promptsource``.
    """
    given = dict(data)
    if given.get("use_prompt") is not None:
        raise TaskError(f"{file}: key 'use_prompt': prompts of promptsource are not in this version; write doc_to_text")
    metadata = given.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        given["metadata"] = {"_metadata": metadata}
    if given.get("dataset_name") is not None:
        given["dataset_name"] = str(given["dataset_name"])
    for key in _DECONTAMINATION:
        if given.pop(key, None):
            _note_decontamination()
    media = [given.get(key) for key in MEDIA_KEYS if given.get(key) is not None]
    if media:
        given["doc_to_visual"] = media
    if isinstance(given.get("fewshot_config"), Mapping):
        unknown = next((key for key in given["fewshot_config"] if key not in _EXAMPLE_KEYS), None)
        if unknown is not None:
            raise TaskError(f"{file}: key 'fewshot_config': unknown key {unknown!r}; valid: {', '.join(_EXAMPLE_KEYS)}")
    config: LmEvalConfig = TaskKeys(LmEvalConfig, needs_path=given.get("custom_dataset") is None).checked(given, file)
    return config


@functools.cache
def _note_decontamination() -> None:
    log.info("%s of lm-eval's tasks have no effect", " and ".join(_DECONTAMINATION))


def generation_kwargs(config: LmEvalConfig) -> dict[str, Any]:
    """Return the generation options as lm-eval records them: its defaults, and ``until`` if the task states none."""
    stop = {STOP_KEY: [config.fewshot_delimiter]}
    if config.generation_kwargs is None:
        return {**_DEFAULT_GENERATION, **stop}
    made = {**stop, **config.generation_kwargs}
    if made.get("temperature") is not None:
        made["temperature"] = float(made["temperature"])
    return made


def sent_generation(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that back ends get: one name for the length, which is 256 if the task states none."""
    made = {key: value for key, value in recorded.items() if key not in LENGTHS}
    length = next((recorded[name] for name in LENGTHS if recorded.get(name) is not None), MOST_TOKENS)
    return {**made, "max_new_tokens": length}

"""Filters, samplers, templates and the record of settings that task files and programs of the family use."""

from __future__ import annotations

import hashlib
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from lmms_eval.errors import UnknownNameError
from lmms_eval.filters.patterns import ReducingRegexFilter
from lmms_eval.utils.names import MODEL_KEYS, model_name_from_args, sanitize_model_name


class ExtendedRegexFilter(ReducingRegexFilter):
    """Base of filters whose ``apply`` is part of a task's folder and searches with ``find_match``."""

    def find_match(self, regex: re.Pattern[str], resp: str, convert_dict: Mapping[str, Any] | None = None) -> Any:
        """Return the match with the number ``group_select``; of several groups the first that is not empty.

        The match loses surrounding white space and, unless it is empty, is replaced by its value in ``convert_dict``.
        If nothing matches, the result is an empty list. Raises ``IndexError`` if there are fewer matches or all groups
        are empty.
        """
        matches = regex.findall(resp)
        if not matches:
            return matches
        match = matches[self.group_select]
        if isinstance(match, tuple):
            match = [group for group in match if group][0]  # noqa: RUF015 - the error of an empty list is the contract
        match = match.strip()
        return convert_dict.get(match, match) if convert_dict and match else match


class SimpleMultiChoiceRegexFilter(ExtendedRegexFilter):
    """Finds the letter of the option whose text occurs in a document's first answer; else keeps the answer.

    ``doc["question"]`` lists the options as ``A. text``, one per line; their order gives the letters. Answers and
    options are compared without punctuation.
    """

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return [self._letter(answers[0], doc["question"]) for answers, doc in zip(resps, docs, strict=True)]

    def _letter(self, answer: str, question: str) -> str:
        options = re.findall(r"\b[A-Z]\.\s+([^\n]*)", question)
        letters = {_words(option): chr(ord("A") + number) for number, option in enumerate(options)}
        letters.pop("", None)
        text = _words(answer)
        found = re.search("|".join(map(re.escape, letters)), text) if letters else None
        return letters[found[0]] if found else text


def _words(text: str) -> str:
    """Remove punctuation and symbols."""
    return re.sub(r"[^\w\s]", "", text).strip()


class ContextSampler:
    """Draws documents and writes them as examples.

    The task writes a document (``doc_to_text``, ``doc_to_target``, ``doc_to_choice``); its ``config`` has the
    delimiters. ``fewshot_indices`` are the numbers of the documents that may be drawn, by default all.
    """

    def __init__(
        self, docs: Any, task: Any, fewshot_indices: Sequence[int] | None = None, rnd: random.Random | None = None
    ) -> None:
        if rnd is None:
            raise ValueError("a sampler needs rnd, a random.Random")
        self.docs, self.task, self.rnd, self.config = docs, task, rnd, task.config
        if fewshot_indices is not None:
            self.docs = [docs[number] for number in fewshot_indices]
        self.target_delimiter = self.config.target_delimiter
        self.fewshot_delimiter = self.config.fewshot_delimiter
        self.doc_to_text, self.doc_to_target = task.doc_to_text, task.doc_to_target
        self.doc_to_choice = task.doc_to_choice

    def get_context(self, doc: Any, num_fewshot: int) -> str:
        """Write examples, each followed by the delimiter; the document itself is never one of them."""
        same = self.config.fewshot_split == self.config.test_split
        drawn = self.sample(num_fewshot + 1 if same else num_fewshot)
        chosen = [example for example in drawn if example != doc][:num_fewshot]
        texts = [f"{self._text(one)}{self.target_delimiter}{self._target(one)}" for one in chosen]
        return "".join(text + self.fewshot_delimiter for text in texts)

    def sample(self, n: int) -> Sequence[Any]:
        """Draw documents."""
        numbers = self.rnd.sample(range(len(self.docs)), n)
        return [self.docs[number] for number in numbers]

    def _text(self, doc: Any) -> str:
        text = self.doc_to_text(doc)
        choices = self.doc_to_choice(doc) if isinstance(text, int) else None
        return str(text if choices is None else choices[text])

    def _target(self, doc: Any) -> str:
        target = self.doc_to_target(doc)
        if isinstance(target, list):
            return str(target[0])
        choices = self.doc_to_choice(doc) if isinstance(target, int) and not isinstance(target, bool) else None
        return str(target if choices is None else choices[target])


class FirstNSampler(ContextSampler):
    """Takes the first documents."""

    def sample(self, n: int) -> Sequence[Any]:
        """Take the first documents. Raises ``ValueError`` if there are fewer."""
        if n > len(self.docs):
            raise ValueError(f"{n} examples are requested, but there are only {len(self.docs)} documents")
        return [self.docs[number] for number in range(n)]


SAMPLERS = {"default": ContextSampler, "first_n": FirstNSampler}


def get_sampler(name: str) -> type[ContextSampler]:
    """Return a sampler by the name that ``fewshot_config`` gives.

    Raises ``UnknownNameError`` if there is no such sampler.
    """
    if name not in SAMPLERS:
        raise UnknownNameError("few-shot sampler", name, SAMPLERS)
    return SAMPLERS[name]


def load_default_template_yaml(task_file: str | os.PathLike[str]) -> Any:
    """Read ``_default_template_yaml`` in the folder of a module, without the lines that name a ``!function``.

    ``task_file`` is ``__file__`` of the module. The content is usually a mapping, or ``None`` for an empty file. Raises
    ``OSError`` if the file cannot be read, ``UnicodeDecodeError`` if it is not UTF-8, and ``yaml.YAMLError`` if it is
    not YAML.
    """
    with (Path(task_file).parent / "_default_template_yaml").open(encoding="utf-8-sig") as lines:
        return yaml.safe_load("".join(line for line in lines if "!function" not in line))


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

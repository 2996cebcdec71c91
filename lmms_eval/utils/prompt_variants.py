"""Variants of a task's prompt: the file of ``--prompt_variants``, and letters of options under other labels."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, structs

from lmms_eval.errors import UsageError
from lmms_eval.utils.yaml_bounds import load_bounded, yaml_mistake

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
OWN = "as given"
"""Name of the task's own prompt among the variants."""
MOST_BYTES = 1 << 20
_FORM = "a list of variants, or {own: false, variants: [...]}"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_TAKEN = re.compile(r"rotation-.*|(?:no|blank|shuffled)-media|choices-only|again")
_TEXTS = ("pre_prompt", "post_prompt", "system_prompt")
_KEYS = ("name", *_TEXTS, "option_labels")


class PromptVariant(Struct, frozen=True):
    """One change of a task's prompt. ``None`` keeps what the task, or the run, has."""

    name: str
    pre_prompt: str | None = None
    post_prompt: str | None = None
    system_prompt: str | None = None
    option_labels: tuple[str, ...] | None = None
    """Labels that the options have in place of A, B, C, ..."""

    @property
    def changes(self) -> dict[str, Any]:
        """The changes by their keys in the file."""
        found = {name: value for name, value in structs.asdict(self).items() if name != "name" and value is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @property
    def digest(self) -> str:
        """Sixteen digits of the SHA-256 of the changes, the same for variants of another name."""
        text = json.dumps(self.changes, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class PromptVariants(Struct, frozen=True):
    """The content of a file of variants."""

    variants: tuple[PromptVariant, ...]
    has_own: bool = True
    """Whether the task's own prompt counts as a variant."""


def variants_text(value: str | Sequence[Any] | Mapping[str, Any]) -> str:
    """Return the content of a file of variants as one line of JSON, which may take the place of the file.

    Raises:
        UsageError: the file cannot be read, or its content is not a list of variants.
    """
    if not isinstance(value, str):
        return _as_text(_parsed(value, ""))
    if value.lstrip().startswith(("{", "[")):
        return _as_text(parse_variants(value))
    path = Path(value).expanduser()
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"--prompt_variants {value}: the file is larger than {MOST_BYTES:,} bytes")
        content = load_bounded(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompt_variants {value}: the file cannot be read: {error}; give {_FORM} in YAML") from None
    except yaml.YAMLError as error:
        raise UsageError(f"--prompt_variants {value}: {yaml_mistake(error)}; give {_FORM} in YAML") from None
    return _as_text(_parsed(content, f" {value}"))


def parse_variants(text: str) -> PromptVariants:
    """Read variants from the text that ``variants_text`` returns. Raises ``UsageError``."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"--prompt_variants: {error}; give a file, or {_FORM}") from None
    return _parsed(content, "")


def _as_text(found: PromptVariants) -> str:
    listed = [{"name": one.name, **one.changes} for one in found.variants]
    return json.dumps({"own": found.has_own, "variants": listed}, ensure_ascii=False)


def _parsed(content: Any, place: str) -> PromptVariants:
    where, has_own = f"--prompt_variants{place}", True
    if isinstance(content, Mapping):
        unknown = [key for key in content if key not in ("own", "variants")]
        if unknown:
            raise UsageError(f"{where}: unknown key {unknown[0]!r}; give {_FORM}")
        has_own, content = content.get("own", True), content.get("variants")
        if not isinstance(has_own, bool):
            raise UsageError(f"{where}: own: {has_own!r}: give true or false")
    if not isinstance(content, list) or not content:
        raise UsageError(f"{where}: no variants; give {_FORM}")
    found = [_variant(entry, f"{where}: variant {number}") for number, entry in enumerate(content, 1)]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{where}: {names.count(name)} variants are called {name!r}; give each its own name")
    return PromptVariants(tuple(found), has_own)


def _variant(entry: Any, where: str) -> PromptVariant:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: {entry!r:.80} is not a mapping; it takes {', '.join(_KEYS)}")
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r}; it takes {', '.join(_KEYS)}")
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
        why = "is the name of a control" if isinstance(name, str) and _TAKEN.fullmatch(name) else "is no name"
        raise UsageError(f"{where}: name {name!r} {why}; give letters, digits, and - _ . + after the first")
    for key in _TEXTS:
        if entry.get(key) is not None and not isinstance(entry[key], str):
            raise UsageError(f"{where} ({name}): {key} is {entry[key]!r:.80}; give a text, in quotation marks")
    labels = _labels(entry["option_labels"], f"{where} ({name})") if entry.get("option_labels") is not None else None
    pre, post, system = (entry.get(key) for key in _TEXTS)
    made = PromptVariant(name, pre, post, system, labels)
    if not made.changes:
        raise UsageError(f"{where} ({name}): changes nothing; give one of {', '.join(_KEYS[1:])}")
    return made


def _labels(given: Any, where: str) -> tuple[str, ...]:
    listed = list(given) if isinstance(given, list) else []
    labels = tuple(str(label) for label in listed if isinstance(label, str | int) and not isinstance(label, bool))
    is_fine = len(labels) == len(listed) > 1 and all(label.isalnum() and len(label) <= 8 for label in labels)
    if not is_fine or len({label.casefold() for label in labels}) < len(labels) or len(labels) > len(LETTERS):
        raise UsageError(
            f"{where}: option_labels {given!r:.80}: give a list of two or more different labels of letters or digits, "
            "such as ['1', '2', '3', '4']"
        )
    return labels


_NAMED = re.compile(
    r"(?P<lead>(?:(?:\b(?:answer|option|choice)(?:\s{1,4}is)?\s{0,4}:?\s{0,4}){1,2}|\\boxed\{)[*(\[\"']{0,4})"
    r"(?P<label>[^\W_]{1,8})\b",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\A(?P<lead>[\s*(\[\"']{0,8})(?P<label>[^\W_]{1,8})(?=[)\].:,*\"']|\s{0,8}\Z|[^\S\n]{0,8}\n)", re.IGNORECASE
)
_OPTION_LINE = re.compile(r"^(?P<lead>[^\S\n]*\(?)(?P<letter>[A-Z])(?=[).:]\s*\S)", re.MULTILINE)


def option_letters(text: str) -> list[re.Match[str]]:
    """Return the labels of the last run of option lines in a text: A, B, C, ... at the beginnings of lines."""
    runs: list[list[re.Match[str]]] = []
    for match in _OPTION_LINE.finditer(text):
        if match["letter"] == "A":
            runs.append([match])
        elif runs and match["letter"] == LETTERS[min(len(runs[-1]), len(LETTERS) - 1)]:
            runs[-1].append(match)
    found = [run for run in runs if len(run) > 1]
    return found[-1] if found else []


def relabelled(text: str, labels: Sequence[str]) -> str:
    """Return a text whose option lines have other labels. Raises ``UsageError`` if there are too few of them."""
    found = option_letters(text)
    if len(found) > len(labels):
        raise UsageError(f"option_labels: {len(labels)} labels for {len(found)} options; give one for each option")
    for label, match in reversed(list(zip(labels, found, strict=False))):
        text = text[: match.start("letter")] + label + text[match.end("letter") :]
    return text


def with_letters(answer: str, labels: Sequence[str], thoughts: Iterable[tuple[str, str]] = ()) -> str:
    """Return an answer with the letters of the task in place of the labels that name its options.

    The label that an answer states counts: the whole answer, its beginning (``2. a cat``, ``(2)``), or what follows
    ``answer``, ``option``, ``choice`` or ``\\boxed{``. Other words and numbers stay, and so do thoughts before the
    last of their closing tags.

    Args:
        answer: the answer of the model.
        labels: the label of each option.
        thoughts: pairs of tags around thoughts.
    """
    start = max((answer.rfind(close) + len(close) for _, close in thoughts if close in answer), default=0)
    head, said = answer[:start], answer[start:]
    letters = {label.casefold(): letter for label, letter in zip(labels, LETTERS, strict=False)}
    is_named = False

    def letter(match: re.Match[str]) -> str:
        nonlocal is_named
        found = letters.get(match["label"].casefold())
        is_named = is_named or found is not None
        return match[0] if found is None else match["lead"] + found

    changed = _NAMED.sub(letter, said)
    return head + (changed if is_named else _BEGINS.sub(letter, said))

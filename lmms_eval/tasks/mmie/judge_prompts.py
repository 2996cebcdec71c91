"""Texts for a judge, in addition to a sample: our own wording of the paper's criteria, or the user's own.

The benchmark's own judge was tuned on its authors' exact texts, which are not shipped. ``load_prompts`` reads them from
a user's file. Fingerprints identify the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.judge_texts import BUILT_IN, fingerprint, texts_of
from lmms_eval.tasks.mmie.settings import Settings

OFFICIAL: Mapping[str, str] = MappingProxyType(
    {
        "SA": "9e29bd376367a88051001c1592bd75851fda68326c7ea762bb79170c080331a3",
        "PBL": "b80214d31c9c25c5ed00d62a990bf422cf2bee304bd6dd29c328692b4b889d49",
        "MSR": "72bc495ec21b8c185bee68c351981dbc9a041aee2ba1c27bd287caa9099a9681",
    }
)
"""SHA-256 (UTF-8, hexadecimal) of the texts behind the published scores."""
CONSTANTS: Mapping[str, str] = MappingProxyType(
    {"SA": "SA_SYSTEM_PROMPT", "PBL": "PBL_SYSTEM_PROMPT", "MSR": "MSR_PROMPT", "lead_in": "MSR_LEAD_IN"}
)
"""Names of the texts in a user's file."""

_TASK = """You judge how well a model has answered. You are given a question and the model's answer; both may hold \
pictures, which stand where "Image-<number>:" names them.
"""
_FORM = """
Write your judgement in two sections and nothing else:

### Feedback
A few sentences for each criterion: what is good, what is bad, and why.

### Score
One whole number from 0 to 6: how many of the six scored criteria are met{penalty}. Write the number alone.

"""
_STRICT_STYLE = """Consistency of style: do texts and pictures keep one tone and one way of drawing throughout? Be \
strict: even small deviations count as not met."""
_PENALTY = """
Then the emotional effect, which can only lower the score: take off 1 if {effect}.
"""
_SA = f"""{_TASK}
The question begins a story or shows a situation, and the answer is to carry it on. Judge by six criteria, each of \
which is met (1) or not met (0):
1. Quality of the text: is it fluent, correct and to the point?
2. Quality of the pictures: are they clear, complete and free of faults?
3. Text and pictures together: does each picture show what the text beside it says?
4. Consistency with the context: do setting, characters and plot go on from the question without a break?
5. Innovation: does the answer bring something new and interesting to the story?
6. {_STRICT_STYLE}
{_PENALTY.format(effect="the story leaves the reader cold or its mood does not fit the situation")}\
{_FORM.format(penalty=", less the deduction, not below 0")}"""
_PBL = f"""{_TASK}
The question asks how something is done, and the answer is to lead through it step by step. Judge by six criteria, \
each of which is met (1) or not met (0):
1. Quality of the text: is it fluent, correct and complete?
2. Quality of the pictures: are they clear, complete and free of faults?
3. Text and pictures together: does each picture show the step that it belongs to?
4. Quality of the method: are the steps right, in a sensible order and of practical use?
5. Creativity and engagement: does the answer hold the reader's interest and invite them to try?
6. {_STRICT_STYLE}
{_PENALTY.format(effect="the answer discourages the reader or its tone does not fit the task")}\
{_FORM.format(penalty=", less the deduction, not below 0")}"""
_MSR = f"""{_TASK}
The question is a problem of mathematics, science or a similar field; its correct answer is given too. Judge by six \
criteria, each of which is met (1) or not met (0):
1. The text of the question is understood.
2. The pictures of the question are understood.
3. The reasoning is clear: every step follows from the ones before it.
4. The answer is correct at least in part.
5. The final answer agrees with the correct answer.
6. Excellence: the answer is correct throughout and easy to follow.
{_FORM.format(penalty="")}"""
_LEAD_IN = "Hold the final answer against this one: "


class JudgeTexts(Struct, frozen=True):
    """Texts for a judge, in addition to the sample."""

    systems: Mapping[str, str]
    """Text before the sample, by tag."""
    lead_in: str
    """The words before the reference answer."""
    source: str
    """``built-in`` or the user's file."""

    def fingerprints(self) -> dict[str, str]:
        """Return the SHA-256 of every text, for the results."""
        return {**{tag: fingerprint(text) for tag, text in self.systems.items()}, "lead_in": fingerprint(self.lead_in)}

    @property
    def is_official(self) -> bool:
        """Whether the three texts are those of the published scores."""
        return all(fingerprint(self.systems[tag]) == expected for tag, expected in OFFICIAL.items())

    @property
    def metric(self) -> str:
        """Name of the score with these texts."""
        return "mmie_score" if self.is_official else "mmie_judge"


def prompts(file: str) -> JudgeTexts:
    """Return the judge's texts: those of ``--judge_prompts FILE``, which is read again when it changes, else ours.

    Raises ``DataError`` if the file cannot be read, or lacks a text.
    """
    return load_prompts(Path(file)) if file else built_in()


def prompts_identity(kwargs: Mapping[str, Any] | None) -> str:
    """Return what scores depend on in addition to document and answer. Raises ``DataError`` as ``prompts`` does."""
    return " ".join(prompts(Settings.of(kwargs).judge_prompts).fingerprints().values())


def built_in() -> JudgeTexts:
    """Return our own wording."""
    return JudgeTexts(MappingProxyType({"SA": _SA, "PBL": _PBL, "MSR": _MSR}), _LEAD_IN, BUILT_IN)


def load_prompts(path: Path) -> JudgeTexts:
    """Read the texts from a user's file (``judge_texts.texts_of``).

    Raises ``DataError`` if the file cannot be read or parsed, or lacks one of ``CONSTANTS``.
    """
    texts = texts_of(path)
    lacking = [name for name in CONSTANTS.values() if name not in texts]
    if lacking:
        hint = f" ({CONSTANTS['lead_in']}: the text between the header of the correct answer and the answer)"
        raise DataError(
            f"judge prompts {path}: there is no text {', '.join(lacking)}"
            f"{hint if CONSTANTS['lead_in'] in lacking else ''}; write NAME = '...' at the top level of a Python file, "
            f'or "NAME": "..." in a JSON file'
        )
    systems = {tag: texts[name] for tag, name in CONSTANTS.items() if tag != "lead_in"}
    return JudgeTexts(MappingProxyType(systems), texts[CONSTANTS["lead_in"]], str(path))

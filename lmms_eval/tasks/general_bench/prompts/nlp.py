"""Prompts of the language tasks in our own wording, and records of ``prediction.json`` from the replies.

What is asked, and where an answer begins in the reply, follows the General-Bench specification §4.1. The markers are
those of ``nlp.types``. ``extract`` follows the reference's predictor, faults included: a choice that it does not find
is A, a number that it does not find is 0. ``extract_fixed`` finds choices and numbers by better rules, and leaves a
missing answer empty, so that it counts as wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.tasks.general_bench.facts import fold
from lmms_eval.tasks.general_bench.measures.text_math import SEPARATOR
from lmms_eval.tasks.general_bench.nlp.types import LETTERS, NlpFields, NlpType, as_text, type_of

HORIZON = 1
"""Number of predicted values of a time series."""
_CUE = "answer"
_FOUR = "ABCD"
"""The options of a ``multiple choice`` task."""
_SERIES = re.compile(r"\[([0-9.,\s\-eE]+)\]")
_COMMAS_AND_SPACES = re.compile(r"[,\s]+")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_BOXED = re.compile(
    r"\\boxed\s*+\{\s*+(?:\\(?:text|mathrm|mathbf|textbf)\s*+\{\s*+)?[(\[]?\s*+([A-Za-z])(?![A-Za-z0-9])"
)
_BRACKETED = re.compile(r"[(\[]\s*+([A-Za-z])\s*+[)\]]")
_EDGE = r"[A-Za-z0-9'’]"
_ALONE = re.compile(rf"(?<!{_EDGE})([A-Z])(?!{_EDGE})")
_NO_WORD = re.compile(rf"(?<!{_EDGE})(?![AI]\s+[a-z])([A-Z])(?!{_EDGE})")
"""As ``_ALONE``, without articles and pronouns."""
_WHOLE = re.compile(r"[\s*_\"'`(\[:]*+([A-Za-z])[\s*_\"'`)\].:,]*+")
_LEADING = re.compile(r"[\s*_\"'`(\[]*+([A-Z])(?:[*_\"'`]*+[)\].:,]|[ \t*_\"'`]*+(?:\n|$))")


def extract(task: str, type_name: str, raw: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """Return the record without its ``id``: ``prediction``, or ``prediction_steps`` and ``prediction_final``.

    Raises:
        DataError: the item of a multiple-choice question has no options. The reply never raises.
    """
    kind = type_of(type_name)
    match kind.name:
        case "MultipleChoiceQA":
            after = _after_last_cue(reply) if _CUE in reply else ""
            return {"prediction": next((letter for letter in _letters(task, raw) if letter in after), "A")}
        case "multiple choice":
            if len(reply.strip()) > 1:
                reply = next((letter for letter in _FOUR if letter in reply), reply)
            return {"prediction": reply.lower()}
        case "Time Series":
            return {"prediction": time_series_values(reply, HORIZON)[0]}
        case _:
            return _common(kind, reply)


def extract_fixed(task: str, type_name: str, raw: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """Extract as ``extract`` does, but read choices and numbers as they are meant. A missing one is an empty text.

    A choice is the letter in the last box, else the first one that is a word of its own after the last ``answer``, in
    any case, else the one that the reply begins with or consists of, or the only one that it names. A number may lack
    brackets if it is the only one.

    Raises:
        DataError: the item of a multiple-choice question has no options. The reply never raises.
    """
    kind = type_of(type_name)
    match kind.name:
        case "MultipleChoiceQA":
            return {"prediction": find_choice(_letters(task, raw), reply)}
        case "multiple choice":
            return {"prediction": find_choice(_FOUR, reply).lower()}
        case "Time Series":
            # the first number in brackets, else the only number of the reply
            listed, numbers = _listed(reply), _finite(_NUMBER.findall(reply))
            alone: list[float | str] = [*numbers] if len(numbers) == 1 else [""]
            return {"prediction": [*listed, *alone][0]}
        case _:
            return _common(kind, reply)


def time_series_values(reply: str, horizon: int) -> list[float]:
    """Return the first ``horizon`` numbers of the first list in brackets. A shorter list repeats its last number.

    A list has only digits, dots, commas, white space, minus signs and the letter e. Anything in it that is no finite
    number is skipped. Without a list, or without a number in it, the values are zeros.
    """
    numbers = _listed(reply)
    missing = horizon - len(numbers)
    return [*numbers, *([numbers[-1] if numbers else 0.0] * missing)][:horizon]


def find_choice(letters: str, reply: str) -> str:
    """Find the letter of the option that a reply chooses, or return an empty text (see ``extract_fixed``)."""
    boxed = [match[1].upper() for match in _BOXED.finditer(reply)]
    if boxed and boxed[-1] in letters:
        return boxed[-1]
    # after the last cue, the first letter that is a word of its own, or in brackets in either case
    after = _after_last_cue(reply)
    found = [match for pattern in (_BRACKETED, _ALONE) for match in pattern.finditer(after)]
    for match in sorted(found, key=lambda match: match.start(1)):
        if match[1].upper() in letters:
            return match[1].upper()
    if choice := _whole(letters, after):
        return choice
    # the letter, marked as an option, that begins the reply or is all of it, else the only one that it names
    leading = _LEADING.match(reply)
    if leading and leading[1] in letters:
        return leading[1]
    named = {match[1] for match in _NO_WORD.finditer(reply) if match[1] in letters}
    return _whole(letters, reply) or (named.pop() if len(named) == 1 else "")


def _whole(letters: str, text: str) -> str:
    """Return the letter that is the whole text, in either case, or an empty text."""
    whole = _WHOLE.fullmatch(text)
    return whole[1].upper() if whole and whole[1].upper() in letters else ""


def _after_last_cue(reply: str) -> str:
    """Return the text after the last ``answer`` in any case, or an empty text."""
    start = re.sub(_CUE, _CUE, reply, flags=re.IGNORECASE | re.ASCII).rfind(_CUE)
    return reply[start + len(_CUE) :] if start >= 0 else ""


def _common(kind: NlpType, reply: str) -> dict[str, Any]:
    """Cut the replies that both rules treat the same."""
    if kind.name == _WORD_PROBLEM:
        steps, _, final = reply.partition(kind.marker)
        return {"prediction_steps": steps.strip(), "prediction_final": final.strip()}
    if kind.name == "Code Defect Detection":
        return {"prediction": "0" if "no defect" in reply.lower() else "1"}
    if kind.reading == "label":
        return {"prediction": reply.lower()}
    if kind.reading == "labels":
        return {"prediction": reply.lower().replace(", ", SEPARATOR)}
    if not kind.marker or kind.marker not in reply:
        return {"prediction": reply if kind.keeps_space else reply.strip()}
    after = reply.partition(kind.marker) if kind.first_marker else reply.rpartition(kind.marker)
    return {"prediction": after[2].strip()}


def _listed(reply: str) -> list[float]:
    series = _SERIES.search(reply)
    return _finite(_COMMAS_AND_SPACES.split(series[1])) if series else []


def _finite(texts: list[str]) -> list[float]:
    numbers = []
    for text in texts:
        try:
            numbers.append(float(text))
        except ValueError:
            continue
    return [number for number in numbers if math.isfinite(number)]


def _letters(task: str, raw: Mapping[str, Any]) -> str:
    return LETTERS[: len(NlpFields(task, raw).options())]


ABSTENTION = "The text does not say."
"""The answer to a question on causes that the document leaves open."""
_PLACEHOLDER = re.compile(r"<<<(raw_text|tweets|target|aspect)>>>")
_OWN_TEXTS = (
    ("stance_detection", ("tweets", "target")),
    ("aspect_sentiment_classification", ("raw_text", "target")),
    ("target_oriented_opinion_words_extraction", ("raw_text", "aspect")),
)
"""Parts of names of tasks, and the texts that their items have in place of ``raw_text`` alone."""
_OPEN_QA_ADVICE = MappingProxyType(
    {
        "temporalreasoning": "Mind the order, dates and durations of the events, then give only the answer.",
        "medicalquestionanswering": "Answer as a medical expert would, precisely and to the point.",
        "multilingualquestionanswering": "Answer in the language of the question, with nothing but the answer.",
        "tablequestionanswering": "Take the answer from the table and give nothing else.",
    }
)
_WORD_PROBLEM = "Mathematical Word Problem Solving"
Parts = Sequence[str]
"""The paragraphs of a prompt. Empty ones are left out."""
_DEFECT_EXAMPLES = """\
Code:
void keep(const char *name) { char copy[4]; strcpy(copy, name); puts(copy); }
Verdict: Defect

Code:
int half(int number) { return number / 2; }
Verdict: No defect"""


def nlp_prompt(task: str, type_name: str, raw: Mapping[str, Any]) -> str:
    """Return the prompt of an item ``raw`` of a language task, by the annotation's ``task`` and ``type``.

    Some tasks are asked differently from others of their type, and unknown types as ``OpenQA``. Raises ``DataError`` if
    the item lacks a key; the message names it.
    """
    kind = type_of(type_name)
    parts = [part for part in _BUILDERS.get(kind.name, _open_qa)(NlpFields(task, raw)) if part]
    if kind.marker and kind.name != _WORD_PROBLEM:  # its prompt states the marker itself
        fences = " Put no ``` around it." if kind.first_marker else ""
        parts.append(f"Write `{kind.marker}` and then, right after it, the answer and nothing else.{fences}")
    return "\n\n".join(parts)


def max_new_tokens(type_name: str) -> int:
    """Return the most tokens of a reply to a task of this type."""
    return type_of(type_name).max_new_tokens


def _multiple_choice_qa(fields: NlpFields) -> Parts:
    options = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, fields.options(), strict=False))
    causal = fold(fields.task) == "causalreasoning"
    return (
        "Answer this multiple-choice question. Exactly one option is right.",
        f"Question: {fields.text('input', 'question')}",
        f"Options:\n{options}",
        "Choose by what brings the other about, not by what merely comes earlier or sounds alike." if causal else "",
        "Reason in a few short sentences at most, then end with this line, with the letter of your choice for X:\n"
        "The answer is \\boxed{X}",
    )


def _open_qa(fields: NlpFields) -> Parts:
    name = fold(fields.task)
    table = fields.text("input", "table") if name == "tablequestionanswering" else ""
    context = fields.get("input", "context")
    abstain = f"If the text leaves the answer open, answer exactly: {ABSTENTION}"
    return (
        f"Context:\n{as_text(context)}" if context else "",
        f"Table:\n{table}" if table else "",
        f"Question: {fields.text('input', 'question')}",
        _OPEN_QA_ADVICE.get(name, "Give a short answer and nothing else."),
        abstain if "documentlevelcausal" in name else "",
    )


def _summarization(fields: NlpFields) -> Parts:
    documents = fields.entries("document_list") if fields.get("document_list") else [fields.value("document")]
    several = len(documents) > 1
    texts = [
        f"Document{f' {number}' if several else ''}:\n{as_text(one)}" for number, one in enumerate(documents, start=1)
    ]
    what = "these documents, all in one summary," if several else "this document"
    return (*texts, f"Sum up {what} in a few sentences.")


def _dialogue(fields: NlpFields) -> Parts:
    turns = fields.entries("dialog")
    if not turns:
        raise fields.error("dialog is empty")
    said = "\n".join(f"- {as_text(turn)}" for turn in turns)
    return (
        f"A conversation between two people, turn by turn:\n{said}",
        "Write the next turn, as the person whose turn it is would say it. Give its words only.",
    )


def _code_generation(fields: NlpFields) -> Parts:
    return (
        f"Write a program in {fields.text('language')}.",
        f"Goal: {fields.text('goal')}",
        *(_code_context(fields, part) for part in fields.entries("context")),
    )


def _code_context(fields: NlpFields, part: Any) -> str:
    if not isinstance(part, Mapping) or "type" not in part or part.get("content") is None:
        raise fields.error(f"context has the part {part!r:.80}; an object with type and content is expected")
    name, content = as_text(part["type"]), part["content"]
    if name == "example" and isinstance(content, list):
        for one in content:
            if not isinstance(one, Mapping) or not {"input", "output"} <= set(one):
                raise fields.error(f"context has the example {one!r:.80}; an object with input and output is expected")
        examples = (f"Input: {as_text(one['input'])}\nOutput: {as_text(one['output'])}" for one in content)
        return "Examples:\n" + "\n\n".join(examples)
    return f"{name.capitalize()}:\n{as_text(content)}"


def _word_problem(fields: NlpFields) -> Parts:
    constraints = fields.entries("problem", "constraints") if fields.get("problem", "constraints") else []
    return (
        f"Solve this problem in a few short steps.\n{fields.text('problem', 'text')}",
        "\n".join(["Constraints:", *(f"- {as_text(one)}" for one in constraints)]) if constraints else "",
        "After the steps, write one last line with nothing but the result, in this form:\nFinal Answer: <result>",
    )


def _table(fields: NlpFields, table: Any) -> str:
    if not isinstance(table, Mapping) or not isinstance(table.get("rows"), list) or "header" not in table:
        raise fields.error(f"input.table has {table!r:.80}; an object with header and rows is expected")
    rows = [row if isinstance(row, list) else [row] for row in (table["header"], *table["rows"])]
    return "\n".join(" | ".join(map(as_text, cells)) for cells in rows)


def _classification(fields: NlpFields) -> Parts:
    """Fill the item's own prompt. An item of a task with its own texts has all of them."""
    name = fold(fields.task)
    return _own_prompt(fields, next((texts for part, texts in _OWN_TEXTS if fold(part) in name), ()))


def _own_prompt(fields: NlpFields, needed: Sequence[str] = ()) -> Parts:
    """Fill the placeholders of the item's own prompt. Without placeholders, ``raw_text`` is still required."""
    template = fields.text("input", "prompt")
    names = {*needed, *_PLACEHOLDER.findall(template)} or {"raw_text"}
    texts = {name: fields.text("input", name) for name in sorted(names)}
    return (_PLACEHOLDER.sub(lambda match: texts[match[1]], template),)


def _instructed(instruction: str, *lines: tuple[str, str]) -> Callable[[NlpFields], Parts]:
    """Return a builder for an instruction followed by labelled values of ``input``."""
    return lambda fields: (instruction, *(f"{label}{fields.text('input', key)}" for label, key in lines))


_BUILDERS: Mapping[str, Callable[[NlpFields], Parts]] = MappingProxyType(
    {
        "MultipleChoiceQA": _multiple_choice_qa,
        "Summarization": _summarization,
        "Translation": lambda fields: (
            f"Translate this text from {fields.text('in')} into {fields.text('out')}.",
            f"Text:\n{fields.text('input')}",
        ),
        "Story Generation": _instructed("Write a short, coherent story from this idea.", ("Idea: ", "prompt")),
        "Dialogue": _dialogue,
        "Code Generation": _code_generation,
        "Code Repair": _instructed(
            "Repair this code and give it back as a whole.",
            ("What is wanted: ", "prompt"),
            ("Source:\n", "sourceCode"),
        ),
        "Code Defect Detection": lambda fields: (
            "Is there a defect in the code, such as one by which it could be attacked or crash? "
            "Reply with Defect or No defect.",
            _DEFECT_EXAMPLES,
            f"Code:\n{fields.text('func')}\nVerdict:",
        ),
        "Text to SQL": _instructed(
            "Write one SQL query that answers the question from this database.",
            ("Database:\n", "context"),
            ("Question: ", "question"),
        ),
        "Code Explanation": lambda fields: (
            "Say in one or two sentences what this code does. Give the explanation only.",
            f"Code:\n{fields.text('code')}",
        ),
        "Proof": lambda fields: (
            f"Prove this statement.\n{fields.text('statement')}",
            "Write one short step of the proof on each line. Begin the last line with `Conclusion:` and state there "
            "what is proved.",
        ),
        _WORD_PROBLEM: _word_problem,
        "Paraphrase Generation": _instructed(
            "Say this sentence in other words, with the same meaning.",
            ("Sentence: ", "originalSentence"),
        ),
        "Grammar Correction": _instructed(
            "Rewrite this sentence in correct standard English, and change no more than that takes.",
            ("Kind of error: ", "Error Type"),
            ("Sentence: ", "Ungrammatical Statement"),
        ),
        "Text Style Transfer": lambda fields: (
            f"Rewrite this text in the style: {fields.text('input', 'style')}. Keep its meaning.",
            f"Text: {fields.text('input', 'text')}",
        ),
        "Table-to-Text Generation": lambda fields: (
            "\n\n".join(_table(fields, table) for table in fields.entries("input", "table")),
            "Put what the table says into fluent sentences. Give the text only.",
        ),
        "Time Series": lambda fields: (
            f"A series of measurements, oldest first:\n[{', '.join(map(as_text, fields.entries('input', 'data')))}]",
            "Predict its next value. Reply with a list of that one number in brackets, such as [1.5], and nothing "
            "else.",
        ),
        "classification": _classification,
        "multiple choice": _own_prompt,
        **dict.fromkeys(
            ("multi label classification", "ner", "extraction", "relation extraction", "event detection", "parsing"),
            lambda fields: (*_own_prompt(fields), "Give the results on one line, separated by a comma and a space."),
        ),
    }
)

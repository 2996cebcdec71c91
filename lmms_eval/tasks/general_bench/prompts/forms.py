"""The forms of answers: those that need files, the longest reply, and choice among candidates.

The prompts of the reference implementation are not reproduced, but ours ask for the same answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.tasks.general_bench.facts import TaskFacts, find_task
from lmms_eval.tasks.general_bench.items import Form, Item

MAX_CANDIDATES = 1000
"""Most different answers of a closed set."""
LOWER_CASED = frozenset(map(find_task, (
    "Acoustic Scene Recognition", "Animal Sound Detection", "Speech Command", "Speech Emotion Recognition",
    "Vocal Sound Classification", "Vocal Technique Detection",
)))  # fmt: skip
"""Tasks with references in lower case; the reply is lower-cased too."""
_FIXED = {find_task("Accent Sex Classification"): ("female", "male"), find_task("Bird Sound Detection"): ("No", "Yes")}
_OPEN_SOUND = frozenset(map(find_task, (
    "Speech Event Extraction", "Long Audio Captioning", "Wild Audio Captioning", "Open-ended Audio Question Answering",
    "Audio Question Answering",
)))  # fmt: skip
"""Sound tasks without a closed set of answers."""
_VIDEO_CLASSES = frozenset(map(find_task, ("Multimodal Sarcasm Detection", "Video Event Relation Prediction")))
_COUNTING = find_task("Video Action Counting")
_ORDERING = find_task("Video Action Ordering")
_PROSE_METRICS = frozenset({"bleu1", "bleu4", "rouge1", "rouge_l", "cider", "gpt_score"})
_CLASS_METRICS = frozenset({"accuracy", "macro_accuracy", "f1", "micro_f1"})
_CLASS_NAME = re.compile(r"recogni|recong|classif|detection|identification|diseases", re.IGNORECASE)
_QUESTION_NAME = re.compile(r"question answering|vqa|named entity", re.IGNORECASE)
_BRIEF_NAME = re.compile(r"question answering|vqa|recogni|counting", re.IGNORECASE)
_ANSWER_ALONE = "Answer with the answer alone, without explanation."


def candidate_answers(facts: TaskFacts, items: Iterable[Item]) -> tuple[str, ...]:
    """Return the sorted answers that a task's questions choose from: fixed ones, or all references of its items.

    For boxes and other objects these are their labels. The tuple is empty if the answer is free, if the references are
    not available (closed set), or if there are more than ``MAX_CANDIDATES``.
    """
    if facts in _FIXED:
        return _FIXED[facts]
    found: set[str] = set()
    for item in items:
        if item.form in ("boxes", "instances"):
            found.update(labels_of(item.reference))
        elif item.form == "text" and chooses(facts):
            values = item.reference if isinstance(item.reference, list) else [item.reference]
            found.update(value.strip() for value in values if isinstance(value, str) and value.strip())
        if len(found) > MAX_CANDIDATES:
            return ()
    if facts in LOWER_CASED:
        found = {text.lower() for text in found}
    return tuple(sorted(found))


def chooses(facts: TaskFacts) -> bool:
    """Return whether the task's answer is one of a closed set, the references of its items."""
    if facts.paradigm != "comprehension" or facts.metric not in _CLASS_METRICS:
        return False
    if facts.modality == "Audio":
        return facts not in _OPEN_SOUND
    if facts.modality == "Video":
        return facts in _VIDEO_CLASSES
    return _CLASS_NAME.search(facts.name) is not None and _QUESTION_NAME.search(facts.name) is None


def is_cut_at_tag(facts: TaskFacts) -> bool:
    """Return whether a task matches objects in videos. Text from the first ``<`` on is then no part of the answer (a
    model for masks writes its segmentation tokens there).
    """
    return facts.modality == "Video" and facts.name.strip().endswith("Matching")


def text_demand(facts: TaskFacts, candidates: Sequence[str], prompt: str) -> str:
    """Return the required form of an answer in one sentence, or an empty text if any text will do, as for captions.

    Answers to questions are requested without explanation, because every further word costs BLEU and ROUGE.
    """
    if facts is _COUNTING:
        return "Answer with digits only."
    if facts is _ORDERING:
        return "Answer only with the numbers in their order, joined by arrows, such as 2->1->4->3."
    # the question may list the candidates itself
    if not all(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", prompt, re.IGNORECASE) for text in candidates):
        return f"Answer with exactly one of these, as written here: {listed(candidates)}."
    if facts.metric in _PROSE_METRICS:
        if _is_code(facts):
            return "Answer with the code alone, without ``` around it."
        return "Answer briefly, without explanation." if _BRIEF_NAME.search(facts.name) else ""
    return _ANSWER_ALONE


def text_tokens(facts: TaskFacts, candidates: Sequence[str]) -> int:
    """Return the most new tokens of a textual answer."""
    if _is_code(facts):
        return 1024
    if candidates:
        return 64
    return 256 if facts.metric in _PROSE_METRICS and _QUESTION_NAME.search(facts.name) is None else 128


def listed(texts: Sequence[str]) -> str:
    """Join texts in a line with a separator that does not occur in them, if possible."""
    for sign in (", ", "; ", " | "):
        if not any(sign.strip() in text for text in texts):
            return sign.join(texts)
    return "\n" + "\n".join(texts) + "\n"


def labels_of(reference: Any) -> list[str]:
    """Return the labels of a reference's boxes or other objects. Numbers become their digits."""
    labels: list[Any] = []
    for entry in reference if isinstance(reference, list) else ():
        if isinstance(entry, Mapping):
            labels.append(entry.get("label"))
        elif isinstance(entry, list) and len(entry) > 4:
            labels.append(entry[4])
    return [str(label) for label in labels if isinstance(label, str | int) and not isinstance(label, bool)]


def _is_code(facts: TaskFacts) -> bool:
    return " Code " in f"{facts.name} "


_IN_TEXT: frozenset[Form] = frozenset({
    "text", "number", "boxes", "tube", "mask", "masks", "instances", "triplets",
})  # fmt: skip
"""Forms of answers that a text can state. The others are arrays, sounds, pictures or solids."""
_TOKENS: Mapping[Form, int] = MappingProxyType({
    "text": 128, "number": 32, "boxes": 1024, "tube": 2048, "mask": 1024, "masks": 4096, "instances": 2048,
    "triplets": 1024, "image": 1024,
})  # fmt: skip


def max_new_tokens(form: Form) -> int:
    """Return the most tokens of a reply."""
    return _TOKENS.get(form, 256)


def needs_file(form: Form, facts: TaskFacts | None = None) -> bool:
    """Return whether no text is an answer of this form, so that only a chat model that makes pictures can be asked for
    it. Objects in space (``facts`` of a 3D task) are sets of points, which need a file too.
    """
    return form not in _IN_TEXT or (form == "instances" and facts is not None and facts.modality == "3D")

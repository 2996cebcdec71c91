"""Measure the scoring of 10,000 documents by each kind of rule of the popular benchmarks.

    python -m benchmarks.popular_scoring      # one JSON object on standard output; exit code 1 if the bar is missed

Each rule runs as its task runs it, filters and metrics included, over documents of our own with answers of six forms:
right, wrong, in a sentence, after some 100 words of reasoning, in another script, and empty. ``rule_ms`` is the
processor time of the rule for one document, ``document_ms`` that of the whole scoring of a document (including reading
and hashing its row), each the best of ``--rounds``. Aggregations are not included (word error rates are nothing else).
Bar: 0.2 ms for a rule. LaTeX, captions and judges have none. A rule whose task is not in the registry is named under
``absent``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.manager import task_of_mapping
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.tasks.yaml.task_table import keys_of

DOCUMENTS = 10_000
BAR_MS = 0.2
LETTERS = "ABCD"
WORDS = """a the blue red car dog near building number chart shows so it is not large, small; value of 3.5 and 12
percent (left) right. answer because option therefore"""
FORMS = ("{right}", "{wrong}", "The answer is {right}.", "{words} So the answer is {right}", "答案是 {right}", "")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of rule, represented by one task."""

    rule: str
    task: str
    document: Callable[[str], dict[str, Any]]
    """Builds a document from the reference answer."""
    references: tuple[str, ...]


def _choice(**columns: Any) -> Callable[[str], dict[str, Any]]:
    options = ["a red car", "the blue door", "two dogs", "none of these"]
    return lambda letter: {"question": "Which one is it?", "options": options, **columns, "answer": letter}


def _of_ten(answer: str) -> dict[str, Any]:
    return {"question_id": 1, "question": "What is it?", "answers": [answer] * 4 + ["a " + answer, "dog's"] * 3}


_SHORT = ("blue", "two dogs", "12", "coca cola", "3.5%", "the left one")
_INDEX = tuple("0123")
KINDS = (
    Kind("yes or no, first letters", "mme",
         lambda gold: {"question_id": "1", "question": "q", "answer": gold, "category": "OCR"}, ("Yes", "No")),
    Kind("yes or no, exact", "pope",
         lambda gold: {"question_id": "1", "question": "q", "answer": gold, "category": "c"}, ("yes", "no")),
    Kind("VQA accuracy", "textvqa_val", lambda gold: {**_of_ten(gold), "ocr_tokens": []}, _SHORT),
    Kind("VQA accuracy, VQAv2", "vqav2_val",
         lambda gold: {"question_id": 1, "question": "q", "answers": [
             {"answer": one, "answer_id": number} for number, one in enumerate(_of_ten(gold)["answers"])
         ]}, _SHORT),
    Kind("ANLS", "docvqa_val",
         lambda gold: {"questionId": "1", "question": "q", "answers": [gold, f"the {gold}"]}, _SHORT),
    Kind("relaxed accuracy", "chartqa",
         lambda gold: {"type": "human_test", "question": "q", "answer": gold}, ("12", "3.5%", "0", "blue")),
    Kind("exact match", "gqa", lambda gold: {"id": "1", "imageId": "1", "question": "q", "answer": gold}, _SHORT),
    Kind("containment", "ocrbench",
         lambda gold: {"dataset": "d", "question": "q", "question_type": "Doc-oriented VQA", "answer": [gold]}, _SHORT),
    Kind("letter, filter", "ai2d", _choice(), _INDEX),
    Kind("letter, filter, own rule", "muirbench",
         _choice(idx="1", task="t", image_relation="r", image_type="k"), tuple(LETTERS)),
    Kind("letter, first character", "seedbench",
         lambda gold: {"question": "q", **{f"choice_{letter.lower()}": "x" for letter in LETTERS}, "answer": gold,
                       "data_type": "image", "question_id": "1"}, tuple(LETTERS)),
    Kind("letter M1", "mmstar",
         lambda gold: {"index": 1, "question": "q", "answer": gold, "category": "math", "l2_category": "geometry"},
         tuple(LETTERS)),
    Kind("letter M1, video", "videomme",
         lambda gold: {"question": "q", "options": ["A. x", "B. y", "C. z", "D. v"], "answer": gold,
                       "duration": "short", "domain": "Knowledge", "sub_category": "s", "task_type": "t",
                       "videoID": "v", "video_id": "1", "question_id": "1"}, tuple(LETTERS)),
    Kind("letter M2", "mmmu_val",
         lambda gold: {"id": "validation_Art_1", "question": "q", "options": "['a car', 'the door', 'two', 'none']",
                       "answer": gold, "question_type": "multiple-choice"}, tuple(LETTERS)),
    Kind("open answer of MMMU", "mmmu_val",
         lambda gold: {"id": "validation_Art_1", "question": "q", "options": "[]", "answer": gold,
                       "question_type": "open"}, _SHORT),
    Kind("letter M2, five options", "nextqa_mc_test",
         lambda gold: {"video": "1", "question": "q", "answer": int(gold), "qid": "1", "type": "t",
                       **{f"a{number}": f"option {number}" for number in range(5)}}, _INDEX),
    Kind("letter M2, EgoSchema", "egoschema_subset",
         lambda gold: {"question_idx": 1, "question": "q", "video_idx": "v", "answer": gold,
                       "option": [f"{letter}. option {letter} of it." for letter in "ABCDE"]}, _INDEX),
    Kind("letter M2, audio", "mmau_test_mini",
         lambda gold: {"id": "1", "audio_id": "a", "question": "q", "choices": json.dumps(["x", "y", "z", "v"]),
                       "answer": "xyzv"[int(gold)], "dataset": "d", "task": "sound", "split": "s", "category": "c",
                       "sub-category": "s", "difficulty": "easy"}, _INDEX),
    Kind("letter, MVBench", "mvbench_action_count",
         lambda gold: {"video": "v", "question": "q", "candidates": ["1", "2", "3", "4"],
                       "answer": str(int(gold) + 1)}, _INDEX),
    Kind("letter, LongVideoBench", "longvideobench_val_v",
         lambda gold: {"video_id": "v", "question": "q", "id": "1", "video_path": "v.mp4", "subtitle_path": "v.json",
                       **{f"option{number}": "x" for number in range(5)}, "correct_choice": int(gold),
                       "duration_group": 15, "question_category": "c", "topic_category": "t"}, _INDEX),
    Kind("letter, V* Bench", "vstar_bench",
         lambda gold: {"text": "q (A) x (B) y (C) z (D) v", "category": "direct_attributes", "label": gold,
                       "question_id": 1}, tuple(LETTERS)),
    Kind("letter, BLINK", "blink_counting",
         lambda gold: {"idx": "1", "question": "q", "sub_task": "Counting", "choices": list("xyzv"),
                       "answer": f"({gold})", "prompt": "p", "explanation": ""}, tuple(LETTERS)),
    Kind("word errors", "librispeech_test_clean",
         lambda gold: {"gt": f"{gold} and some ten more words that were said aloud", "source": "s", "task": "asr_en",
                       "id": "1"}, _SHORT),
    Kind("instructions, strict and loose", "ifeval",
         lambda gold: {"key": 1, "prompt": "Write.", "instruction_id_list": [
             "length_constraints:number_words", "keywords:existence", "punctuation:no_comma"
         ], "kwargs": [{"num_words": 40, "relation": "at least"}, {"keywords": ["answer", gold]}, {}]}, _SHORT),
    Kind("number of a solution", "gsm8k",
         lambda gold: {"question": "q", "answer": f"It is so.\n#### {gold}"}, ("12", "350", "7")),
)  # fmt: skip


def measure(kind: Kind, folder: Path, documents: int, rounds: int) -> dict[str, Any]:
    """Write documents and answers of a kind and score them, ``rounds`` times."""
    source = random.Random(29)
    golds = [source.choice(kind.references) for _ in range(documents)]
    rows = [kind.document(gold) for gold in golds]
    file = folder / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    task = loaded(kind.task, file)
    answers = [[Answer(answer_to(kind, gold, source))] for gold in golds]
    rule = min(clocked(lambda: score_rules(task, answers)) for _ in range(rounds))
    whole = min(clocked(lambda: score_documents(task, answers)) for _ in range(rounds))
    return {
        "task": kind.task, "documents": documents, "rule_ms": 1000 * rule / documents,
        "document_ms": 1000 * whole / documents, "is_within_bar": 1000 * rule / documents <= BAR_MS,
    }  # fmt: skip


def answer_to(kind: Kind, gold: str, source: random.Random) -> str:
    """Return an answer in one of the forms; an index becomes its letter."""
    shown = [LETTERS[int(one)] if kind.references == _INDEX else one for one in (gold, source.choice(kind.references))]
    words = " ".join(source.choices(WORDS.split(), k=100))
    return source.choice(FORMS).format(right=shown[0], wrong=shown[1], words=words)


def loaded(name: str, file: Path) -> YamlTask:
    """Load a packaged task over the documents of a file."""
    own: Mapping[str, Any] = {
        "task": name, "dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": str(file)},
        "test_split": "train", "validation_split": None, "fewshot_split": None, "num_fewshot": 0, "process_docs": None,
    }  # fmt: skip
    catalogue = Catalogue()
    keys = keys_of(YamlReader(), catalogue.tasks[name].file, name)
    task = task_of_mapping({**keys, **own}, catalogue, TaskOptions())
    assert isinstance(task, YamlTask)
    task.load()
    return task


def score_rules(task: YamlTask, answers: list[list[Answer]]) -> None:
    scorer = task._scorer
    assert scorer is not None
    for doc_id, given in enumerate(answers):
        doc = task.documents.text_view(doc_id)
        with task.seeding.scoring(doc_id):
            scorer.scores(doc, given, ())


def score_documents(task: YamlTask, answers: list[list[Answer]]) -> None:
    for doc_id, given in enumerate(answers):
        task.score(doc_id, given)


def clocked(work: Callable[[], None]) -> float:
    """Return the processor time in seconds."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    known = Catalogue().tasks
    rules = {}
    for kind in KINDS:
        if kind.task in known:
            with tempfile.TemporaryDirectory() as folder:
                rules[kind.rule] = measure(kind, Path(folder), given.documents, given.rounds)
    report = {
        "benchmark": "popular_scoring", "load_average": os.getloadavg()[0], "bar_ms": BAR_MS, "rules": rules,
        "absent": [f"{kind.rule} ({kind.task})" for kind in KINDS if kind.task not in known],
        "is_within_bar": all(rule["is_within_bar"] for rule in rules.values()),
    }  # fmt: skip
    print(json.dumps(report, indent=2))
    return 0 if report["is_within_bar"] else 1


if __name__ == "__main__":
    sys.exit(main())

"""A task whose scoring misbehaves as each document asks, written as YAML so that worker processes can build it."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.api.task import Answer
from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.scoring import WorkerOptions
from lmms_eval.tasks.yaml.task import YamlTask
from tests.tasks.kit import Function, loaded

CODE = """
import logging
import os
import random
import re
import sys
import time
from pathlib import Path

from lmms_eval.api.outcome import NotEvaluated, Unscored


def process_results(doc, results):
    does = doc["does"]
    if does == "raise":
        raise KeyError("no such column")
    if does == "print":
        print("noise on standard output", flush=True)
        os.write(1, b"more noise\\n")
    if does == "warn":
        logging.getLogger("lmms_eval.probe").warning("the answer is odd")
    if does == "read":
        input()
    if does == "sys.exit":
        sys.exit(0)
    if does == "os._exit":
        os._exit(5)
    if does == "hang":
        (Path(__file__).parent / "hangs").write_text(str(os.getpid()))
        while True:
            time.sleep(0.01)
    if does == "catch":
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                pass
    if does == "catch all":
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass
    if does == "regex":
        re.match("(a+)+b", "a" * 60)
    if does == "absent":
        raise NotEvaluated("no judge")
    if does == "object":
        return {"acc": object()}
    return {"acc": float(results[0] == doc["answer"]), "draw": random.random(), "pair": (1, "é"), "none": None}
"""
MODULE = "lmms_eval.tasks.scoring_worker"
ANSWER = Answer("yes", input="asked", finish_reason="stop", latency=0.5)


def make(folder: Path, does: list[str], scoring: str = "process") -> YamlTask:
    """One document for each word of ``does``; ``yes`` is always the right answer."""
    rows = [{"question": f"{number}", "answer": "yes", "does": word} for number, word in enumerate(does)]
    changes = {
        "scoring": scoring,
        "process_results": Function("utils.process_results"),
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    }
    return loaded(folder, changes, CODE, rows=rows)


def workers(count: int) -> WorkerOptions | None:
    return WorkerOptions(MODULE, count) if count else None


def jobs(task: YamlTask) -> list[AnsweredDocument]:
    return [AnsweredDocument(task, number, (ANSWER,)) for number in range(len(task))]

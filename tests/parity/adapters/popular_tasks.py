"""Vectors of the popular benchmarks: prompts, scores of documents, aggregates, errors, submissions."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import inspect
import json
import logging
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from loguru import logger
from PIL import Image

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.errors import LmmsEvalError
from lmms_eval.metrics import captions
from lmms_eval.processes import Child
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.scoring import AnswerScorer
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.answer_reading import scoring_notes
from tests.media import draw
from tests.parity.compare import agree, decode
from tests.parity.keys import keyed
from tests.parity.popular_judge import Judge, asked_in_turn, unjudged
from tests.parity.vectors import DATA_DIR, GOLDEN_DIR, PASSED, Vector, Verdict, deviates, failed, line_adapter, pending

FOLDER = "popular_tasks"
NLTK_DATA = DATA_DIR / "nltk_data"
JUDGE_PROMPTS = GOLDEN_DIR / FOLDER / "judge_prompts.json"
HOME = "$HF_HOME"
STAMP = "<YYYY-MM-DD-HH-MM-SS>"
FIXED = "popular_faults_are_mended"
NOTHING = "popular_no_documents_no_value"
RANDOM = "popular_letters_are_drawn_per_document"
UNJUDGED = "popular_no_reply_is_no_score"
ABSENT = "popular_parts_without_documents_are_absent"
MISSING_FILE = ("SystemExit", "FileNotFoundError")
"""What the reference raises where a file of a document is not there."""


@functools.cache
def _meteor(*command: str) -> Child:
    """METEOR for all vectors: it reads its tables for five seconds."""
    child = Child("METEOR", os.environ, command=command, errors="discarded")
    atexit.register(child.kill)
    return child


class _Lent:
    """The same process, which the borrower does not end."""

    def __init__(self, child: Child) -> None:
        self.send, self.receive = child.send, child.receive

    def kill(self) -> None:
        """Keep it."""

    close = kill


def _child(name: str, *arguments: Any, **options: Any) -> Child | _Lent:
    return _Lent(_meteor(*options["command"])) if name == "METEOR" else Child(name, *arguments, **options)


@functools.cache
def catalogue() -> Catalogue:
    return Catalogue()


@functools.cache
def task_of(name: str, model: str | None, chat: bool) -> YamlTask:
    """The packaged task as a run of that model builds it, without data."""
    prompts = {"judge_prompts": str(JUDGE_PROMPTS)} if JUDGE_PROMPTS.exists() else {}
    words = {"nltk_data": str(NLTK_DATA)} if NLTK_DATA.is_dir() else {}
    options = TaskOptions(model_name=model or "", chat=chat, run_options={**prompts, **words})
    (task,) = select_tasks([name], catalogue(), options).tasks
    assert isinstance(task, YamlTask)
    return task


def scorer_of(task: YamlTask) -> AnswerScorer:
    return AnswerScorer(task.prompts, task._task_metrics, task._plan)


def questions_of(task: YamlTask, doc: Any, answers: Sequence[Answer]) -> list[JudgeQuestion]:
    return scorer_of(task).judge_questions(doc, answers) if task.is_judged else []


def opened(value: Any) -> Any:
    """A recorded document: pictures opened, numbers decoded."""
    if isinstance(value, Mapping):
        if set(value) == {"$image"}:
            width, height, colour = value["$image"]
            return Image.new("RGB", (width, height), colour)
        return {key: opened(item) for key, item in value.items()} if set(value) != {"$float"} else decode(value)
    return [opened(item) for item in value] if isinstance(value, list) else value


def recorded(value: Any, home: str = "") -> Any:
    """Our values as the vectors write them."""
    if isinstance(value, Image.Image):
        red, green, blue = value.convert("RGB").getpixel((0, 0))  # type: ignore[misc]
        return {"$image": [value.width, value.height, f"#{red:02x}{green:02x}{blue:02x}"]}
    if isinstance(value, Mapping):
        return {key: recorded(item, home) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [recorded(item, home) for item in value]
    if hasattr(value, "tolist"):
        return recorded(value.tolist(), home)
    return str(value).replace(home, HOME) if home and isinstance(value, str | Path) else value


def _lay_files(record: Mapping[str, Any], home: Path) -> None:
    """Make the files that a record names below ``HF_HOME``, or whose being there the recorded prompt shows."""
    shown = record["wanted"].get("visuals", ()) if record["kind"] == "prompt" else ()
    paths = [item.removeprefix(f"{HOME}/") for item in shown if isinstance(item, str) and item.startswith(HOME)]
    for path in [home / name for name in record.get("files", paths)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        if "video" in record:
            draw.write_video(path, record["video"]["frames"], int(record["video"]["fps"]))
            subtitles = home / "videomme" / "subtitle" / f"{path.stem}.srt"
            subtitles.parent.mkdir()
            subtitles.write_text(record["subtitle_file"], encoding="utf-8")
        else:
            path.touch()


def _prompt(record: Mapping[str, Any]) -> dict[str, Any]:
    """Text, visuals and messages of a document, with the recorded files below ``HF_HOME``."""
    with tempfile.TemporaryDirectory() as home, mock.patch.dict("os.environ", {"HF_HOME": home}):
        _lay_files(record, Path(home))
        doc = opened(record["doc"])
        simple, chat = (task_of(record["task"], record.get("model"), is_chat) for is_chat in (False, True))
        found = {
            "text": simple.prompts.shown_text(doc),
            "visuals": simple.prompts.visuals(doc),
            "messages": chat.prompts.own_turns(doc),
        }
        return {key: recorded(value, home) for key, value in found.items()}


def processed(record: Mapping[str, Any], judge: Judge | None = None) -> tuple[Any, bool]:
    """What scoring a document gives : metrics, or by pipeline; and whether chance took part."""
    task = task_of(record["task"], record.get("model"), True)
    doc = opened(record["doc"])
    answers = [Answer(answer) for answer in record["answers"]]
    judge = judge or Judge(record)
    if len(answers) == 1 or task.config.process_results is None or "none" not in task.pipelines:
        scores = scorer_of(task).scores(doc, answers, judge.verdicts(questions_of(task, doc, answers)))
        drew = any(score.drew for score in scores)
        if task.pipelines == ("none",):
            return scores[0].metrics, drew
        return {score.filter: {"filtered": score.filtered[0], "result": score.metrics} for score in scores}, drew
    texts = [answer.value.strip() for answer in answers]
    with scoring_notes() as chance:
        metrics = scorer_of(task).evaluate(doc, texts)
    return metrics, chance.drew


def aggregated(record: Mapping[str, Any], output: Path | None = None, judge: Judge | None = None) -> Estimate:
    """What an aggregation makes of recorded values."""
    task = task_of(record["task"], None, True)
    (definition,) = (metric for metric in task.metrics if metric.name == record.get("metric", "submission"))
    args = SimpleNamespace(output_path=None if output is None else str(output), log_samples_suffix="x", model="m")
    offered = {"args": args, "task": task}
    rows = decode(record["results"])
    if "judge_replies" in record:
        rows = judged_rows(task, rows, judge or Judge(record))
    function = definition.aggregation
    taken = () if definition.aggregation_name else inspect.signature(function).parameters
    made = function(rows, **{name: value for name, value in offered.items() if name in taken})
    made = made.partial if isinstance(made, Withheld) else made
    return made if isinstance(made, Estimate) else Estimate(made)


def judged_rows(task: YamlTask, rows: Sequence[Mapping[str, Any]], judge: Judge) -> list[Any]:
    """Recorded rows, which hold the document and the answer but no verdict, as scoring here makes them."""

    def scored(row: Mapping[str, Any], is_asked: bool) -> Any:
        answers = [Answer(row.get("prediction", row.get("model_prediction", "")))]
        verdicts = judge.verdicts(questions_of(task, row, answers)) if is_asked else []
        (score,) = scorer_of(task).scores(row, answers, verdicts)
        return score.metrics[judge.record["metric"]]

    made: dict[int, Any] = {}
    for group in asked_in_turn(task.name, rows):
        for place in group:
            made[place] = scored(rows[place], True)
            if made[place].get("judged", made[place].get("answer")) != made[place].get("answer"):
                break
    return [made[place] if place in made else scored(row, False) for place, row in enumerate(rows)]


def tables(value: Any) -> Iterator[Any]:
    """All values and tables inside a value, outermost first."""
    yield value
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from tables(item)


def includes(ours: Any, wanted: Any, tolerance: float) -> bool:
    """What is wanted is there; mappings of ours may hold more."""
    if isinstance(wanted, Mapping) and isinstance(ours, Mapping):
        return all(key in ours and includes(ours[key], value, tolerance) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(ours, list | tuple):
        return len(wanted) == len(ours) and all(map(includes, ours, wanted, [tolerance] * len(wanted)))
    if isinstance(wanted, bool) and isinstance(ours, int | float):
        ours = bool(ours)
    elif isinstance(ours, bool) and isinstance(wanted, int | float):
        ours = float(ours)
    return agree(wanted, ours, tolerance)


def _compare_process(record: Mapping[str, Any]) -> Verdict:
    judge = Judge(record)
    found, drew = processed(record, judge)
    if (fault := judge.fault()) is not None:
        return fault
    wanted, tolerance = decode(record["wanted"]), record.get("tolerance", 1e-9)
    ours = recorded(found)
    if record.get("unordered"):
        wanted, ours = _sorted(wanted), _sorted(ours)
    fixed = decode(record.get("wanted_fixed"))
    if includes(ours, wanted, tolerance):
        beside = {f"{name}_fixed": value for name, value in (fixed or {}).items() if f"{name}_fixed" in ours}
        return PASSED if includes(ours, beside, tolerance) else failed(f"{ours!r} instead of {beside!r}")
    if fixed is not None:
        fixed = _sorted(fixed) if record.get("unordered") else fixed
        # What names no metric is a part of its row.
        rows = [ours] if any(name in ours for name in fixed) else ours.values()
        if any(includes(row, fixed, tolerance) for row in rows):
            return deviates(FIXED)
    if drew and ("random_seed" in record or fixed is not None):
        return deviates(RANDOM)
    beside = {name: value for name, value in wanted.items() if name in ours}
    if judge.was_lost and includes(unjudged(ours), unjudged(beside), tolerance):
        return deviates(UNJUDGED)
    return failed(f"{ours!r} instead of {wanted!r}{'' if fixed is None else f' or {fixed!r}'}")


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(item) for key, item in value.items()}
    return sorted((_sorted(item) for item in value), key=repr) if isinstance(value, list) else value


def _compare_aggregate(record: Mapping[str, Any]) -> Verdict:
    wanted, fixed = decode(record["wanted"]), decode(record.get("wanted_fixed"))
    fixed = fixed or _with_its_average(wanted)
    tolerance = record.get("tolerance", 1e-9)
    judge = Judge(record)
    made = aggregated(record, judge=judge)
    if (fault := judge.fault()) is not None:
        return fault
    if agree(wanted["value"], made.value, tolerance):
        return _compare_parts(made, wanted, tolerance) or PASSED
    if made.value is None and not record["results"]:
        return deviates(NOTHING)
    if fixed is not None and agree(fixed["value"], made.value, tolerance):
        return _compare_parts(made, fixed, tolerance) or deviates(FIXED)
    return failed(f"{made.value!r} instead of {wanted['value']!r}{'' if fixed is None else f' or {fixed!r}'}")


def _with_its_average(wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record with the average that its own tables hold, where the reference lost the value (it does an average of
    0)."""
    averages = [table["average"] for table in tables(wanted.get("sub_scores")) if _has_average(table)]
    return {**wanted, "value": averages[0]["accuracy"]} if wanted["value"] is None and averages else None


def _has_average(table: Any) -> bool:
    average = table.get("average") if isinstance(table, Mapping) else None
    return isinstance(average, Mapping) and isinstance(average.get("accuracy"), int | float)


def _compare_parts(made: Estimate, wanted: Mapping[str, Any], tolerance: float) -> Verdict | None:
    """Sub-scores hold every wanted table, and notes tell every wanted count; ``None`` if so."""
    ours: list[Any] = list(tables(recorded(made.details)))
    for parts in made.sub_scores.values():
        ours.append({name: score.value for name, score in parts.items()})
        ours.append({name: {"num": score.n, "acc": score.value} for name, score in parts.items()})
    every = {name: score for parts in made.sub_scores.values() for name, score in parts.items()}
    overall = {"num": sum(score.n for score in every.values()), "acc": made.value}  # once for each that divides
    ours.append({"Overall": overall, **{name: {"num": score.n, "acc": score.value} for name, score in every.items()}})
    below = wanted.get("sub_scores_by_equality") or wanted.get("sub_scores") or {}
    has_absent = False
    if len(below) > 1 and not any(isinstance(table, Mapping) for table in below.values()):
        below = {"(one table)": below}
    for name, recorded_table in below.items():
        table = _means(recorded_table, wanted["value"])
        if any(includes(one, table, tolerance) for one in ours) or (made.value is None and _is_nan(table)):
            continue
        present = _without_counts_of_nothing(table)
        if present == table or not any(includes(one, present, tolerance) for one in ours):
            return failed(f"sub-scores {name}: nothing holds {table!r} in {made!r}")
        has_absent = True
    counts = {key: value for key, value in wanted.items() if key not in ("value", "sub_scores")}
    for name, count in counts.items():
        if name != "sub_scores_by_equality" and not any(note.startswith(f"{name}: {count} ") for note in made.notes):
            return failed(f"no note tells {name}: {count} in {made.notes}")
    return deviates(ABSENT) if has_absent else None


def _without_counts_of_nothing(table: Any) -> Any:
    """A table without the whole number 0, by which the reference shows a part that nothing belongs to."""
    if not isinstance(table, Mapping):
        return table
    return {part: value for part, value in table.items() if value != 0 or isinstance(value, float)}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _means(table: Any, whole: float) -> Any:
    """A table of lists of scores as means with their counts, in the units of the whole; any other as it is."""
    if not isinstance(table, Mapping) or not table or not all(isinstance(part, list) for part in table.values()):
        return table
    scores = [score for part in table.values() for score in part]
    unit = whole * len(scores) / sum(scores) if sum(scores) else 1.0
    return {name: {"num": len(part), "acc": unit * sum(part) / len(part)} for name, part in table.items()}


def _compare_error(record: Mapping[str, Any]) -> Verdict:
    """Where the reference raises: an error of our tree, no value, or the outcome that the specification names.

    Any other exception fails the record.
    """
    compare = {"prompt": _compare_refused_prompt, "process": _compare_refused, "aggregate": _compare_untold}
    try:
        return compare[record["call"]](record)
    except LmmsEvalError as error:
        fixed = decode(record.get("wanted_fixed")) or _named_outcome(record)
        is_refused = fixed is None or _is_nan(fixed.get("value"))
        return PASSED if is_refused else failed(f"{type(error).__name__}: {error}, not {fixed}")


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What is warned of meanwhile, by either way of logging."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda entry: said.append(entry.getMessage())  # type: ignore[method-assign]
    sink = logger.add(said.append, level="WARNING", format="{message}")
    logging.getLogger().addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger().removeHandler(handler)
        logger.remove(sink)


def _named_outcome(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outcome that the specification names: a document without answers scores 0 (popular tasks §1.6, §2.11)."""
    doc = record.get("doc") or {}
    return {"exact_match": 0.0} if record["call"] == "process" and doc.get("answers") == [] else None


def _compare_refused_prompt(record: Mapping[str, Any]) -> Verdict:
    """A document with all its media is prompted, whatever the reference fails on; another one is refused."""
    doc = record["doc"]
    named = re.findall(r"<image (\d+)>", doc.get("question") or "")
    lost = [place for place in named if doc.get(f"image_{place}") is None]
    if record["wanted"]["error"] in MISSING_FILE or lost:
        return failed(f"{_prompt(record)!r} instead of an error")
    try:
        found = _prompt(record)
    except LmmsEvalError as error:
        return failed(f"{error} instead of a prompt")
    pictures = [value for value in tables(doc) if isinstance(value, Mapping) and set(value) == {"$image"}]
    is_whole = doc["question"].strip() in found["text"] and found["visuals"] == pictures
    return PASSED if is_whole else failed(f"{found!r}: not the whole document")


def _compare_refused(record: Mapping[str, Any]) -> Verdict:
    found = processed(record)[0]
    fixed = decode(record.get("wanted_fixed")) or _named_outcome(record)
    if fixed is not None and includes(recorded(found), fixed, 1e-9):
        return PASSED
    return failed(f"{found!r} instead of {'an error' if fixed is None else fixed}")


def _compare_untold(record: Mapping[str, Any]) -> Verdict:
    """No value, or one that a note or a warning speaks of; of an unknown name the name must be told."""
    with _warnings() as said:
        found = aggregated(record)
    fixed = decode(record.get("wanted_fixed"))
    if fixed is not None:
        is_right = (found.value is None and _is_nan(fixed["value"])) or agree(fixed["value"], found.value)
        return _compare_parts(found, fixed, 1e-9) or PASSED if is_right else failed(f"{found!r} instead of {fixed}")
    told = [*found.notes, *said]
    unknown = record["wanted"]["message"].strip("'\"") if record["wanted"]["error"] == "KeyError" else ""
    is_told = any(unknown in note for note in told) if unknown else found.value is None or bool(told)
    return PASSED if is_told else failed(f"{found!r}: a silent number")


def _compare_submission(record: Mapping[str, Any]) -> Verdict:
    wanted = record["wanted"]
    with tempfile.TemporaryDirectory() as folder:
        aggregated(record, Path(folder))
        written = {path.name: json.loads(path.read_text("utf-8")) for path in Path(folder).rglob("*.json")}
    pattern = re.escape(wanted.get("file") or wanted["file_pattern"]).replace(
        re.escape(STAMP), r"\d{4}(?:-\d\d){5}"
    )  # fmt: skip
    found = [content for name, content in written.items() if re.fullmatch(f"(?:.*_)?{pattern}", name)]
    # Splits of one benchmark write a file each, which has the task's name in place of the benchmark's.
    own = f"{re.escape(record['task'])}_{pattern.partition('_')[2]}"
    named = [content for name, content in written.items() if re.fullmatch(own, name)]
    if not found and not named:
        return failed(f"no file {pattern} among {sorted(written)}")
    content = (found or named)[0]
    if not agree(wanted["content"], content):
        return failed(f"{content!r} instead of {wanted['content']!r}")
    return PASSED if found else deviates("submission_named_by_its_task")


def _compare_docs(record: Mapping[str, Any]) -> Verdict:
    from datasets import Dataset

    task = task_of(record["task"], None, True)
    made = task.config.process_docs(Dataset.from_list([opened(record["doc"])]))
    ours = [recorded({key: value for key, value in row.items() if key != "image"}) for row in made]
    return PASSED if includes(ours, decode(record["wanted"]), 1e-9) else failed(f"{ours!r}")


def _compare_prompt(record: Mapping[str, Any]) -> Verdict:
    found, wanted = _prompt(record), record["wanted"]
    fixed = {**wanted, **record.get("wanted_fixed", {})}
    if agree(decode(wanted), found):
        return PASSED
    if "content_order" in fixed and _has_order(found["messages"], fixed["content_order"]):
        return deviates(FIXED)
    if "wanted_fixed" in record and agree(decode(fixed), found):
        return deviates(FIXED)
    if fixed.get("option_labels") == re.findall(r"^([A-Z])\. ", found["text"], re.MULTILINE):
        return deviates(FIXED)
    if _tells_plain_subtitles(record, found):
        return deviates(FIXED)
    if fixed.get("lines_of_options") == len(re.findall(r"^[A-Z]\. ", found["text"], re.MULTILINE)):
        return deviates(FIXED)
    return failed(f"{found!r} instead of {fixed!r}")


def _tells_plain_subtitles(record: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Tell whether a prompt differs by its subtitles alone, which have no font tags: the reference finds no text there,
    plain lines are wanted (popular tasks §2.5)."""
    file = record.get("subtitle_file") or ""
    lines = [line for line in file.splitlines() if line.strip() and not line.strip().isdigit() and "-->" not in line]
    shown = "\n".join(lines)
    if "<font" in file or shown not in found["text"]:
        return False
    without = json.loads(json.dumps(found).replace(json.dumps(shown)[1:-1], "", 2))
    return agree(decode(record["wanted"]), without)


def _has_order(turns: Any, wanted: Sequence[Any]) -> bool:
    """Tell whether a turn has these texts and pictures in order; of the last text the beginning may be given."""
    parts = [part.get("text", part.get("url")) for part in turns[0]["content"]]
    *before, last = parts
    *wanted_before, begin = wanted
    return before == wanted_before and last.startswith(re.sub(r" ?\(?rest of the text\)?$", "", begin))


COMPARE: dict[str, Callable[[Mapping[str, Any]], Verdict]] = {
    "prompt": _compare_prompt,
    "process": _compare_process,
    "aggregate": _compare_aggregate,
    "error": _compare_error,
    "submission": _compare_submission,
    "docs": _compare_docs,
}


def _uses_langdetect(record: Mapping[str, Any]) -> bool:
    names = record.get("doc", {}).get("instruction_id_list") or ()
    return any(name.startswith(("language:", "change_case:english_")) for name in names)


@line_adapter(f"{FOLDER}/*.jsonl")
@keyed(
    "kind", "task", "model", "doc*", "answers*", "results*", "metric", "files*", "subtitle_file", "wanted*", "call",
    "judge_replies*", "defect", "random_seed", "unordered", "tolerance", "video*",
    information={
        "judge_calls*": "compared where the task is judged",
        "judge_order": "in words", "normalised*": "a step in between", "visual_note": "in words",
    },
)  # fmt: skip
def judge(vector: Vector) -> Verdict:
    """Do with our task what the record says was done with the reference's, and compare."""
    record = vector.record
    if record["task"] not in catalogue().tasks:
        return pending(f"no task {record['task']}")
    if _uses_langdetect(record) and importlib.util.find_spec("langdetect") is None:
        return pending("langdetect is not installed")
    if record["task"].startswith("librispeech") and importlib.util.find_spec("whisper_normalizer") is None:
        return pending("whisper-normalizer is not installed")
    with mock.patch.object(captions, "Child", _child):
        return COMPARE[record["kind"]](record)

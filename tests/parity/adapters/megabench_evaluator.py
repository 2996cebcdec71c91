"""MEGA-Bench: the stand-alone evaluator and the breakdown, on the slice of the data set and on recorded score files."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatImageContent, ChatMessages, ChatTextContent
from lmms_eval.tasks.megabench.breakdown.merge import merge, read_folder, read_scores
from lmms_eval.tasks.megabench.breakdown.statistics import breakdown
from lmms_eval.tasks.megabench.evaluation import Panel, Sources, evaluate
from lmms_eval.tasks.megabench.facts import Labels, labels
from lmms_eval.tasks.megabench.reference import ReferenceTask, load_reference
from lmms_eval.tasks.megabench.score_pool import ScorePool
from lmms_eval.tasks.megabench.submission import dumps, record
from lmms_eval.tasks.megabench.submitted import read_submission
from lmms_eval.utils.json_files import read_json
from tests.parity import vectors
from tests.parity.adapters.megabench import same, scoring_data
from tests.parity.adapters.megabench_pipeline import SLICE, replies, rows
from tests.parity.adapters.megabench_tasks import Silent
from tests.parity.vectors import (
    GOLDEN_DIR,
    PASSED,
    Vector,
    deviates,
    failed,
    line_adapter,
    path_adapter,
    pending,
)  # fmt: skip

RULE = "megabench_evaluator_follows_the_published_numbers"
SLICE_FILES = GOLDEN_DIR / "megabench_pipeline" / "e2e_slice"
_JUDGE_MARK = re.compile(r"JUDGE=(\d+)")


def said(messages: ChatMessages) -> str:
    """What the stand-in judge of the recordings answers (README of the vectors)."""
    parts = [part for message in messages.messages for part in message.content]
    text = " ".join(part.text for part in parts if isinstance(part, ChatTextContent))
    images = sum(isinstance(part, ChatImageContent) for part in parts)
    if "ASCII art" in text and images == 2:
        return "Yes."
    mark = _JUDGE_MARK.search(text)
    if mark is None:
        return "The judge has nothing to say."
    return f"**Score explanation**: mock, images seen: {images}\n\n**Score**: {mark.group(1)}"


def ask(questions: Sequence[JudgeQuestion]) -> list[Verdict]:
    answers = [said(question.build_messages()) for question in questions]
    return [
        Verdict(question.name, text, question.accepts(text), "mock", replies=(text,))
        for question, text in zip(questions, answers, strict=True)
    ]


@functools.cache
def reference(configuration: str) -> Mapping[str, ReferenceTask]:
    return load_reference(configuration, SLICE)


def evaluated(
    submission: Sequence[Mapping[str, Any]], configuration: str, previous: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The output file's content, as a reader of the file has it."""
    pool = ScorePool(1)
    panel = Panel(ask, lambda name: SLICE / name)
    try:
        with scoring_data({}):
            found = evaluate(submission, Sources(reference(configuration), previous or {}), pool, panel, Silent())
    finally:
        pool.close()
    content: dict[str, Any] = json.loads(json.dumps(found.as_dict()))
    return content


def missing(content: Mapping[str, Any]) -> str:
    """Why a part is not evaluated here, or empty."""
    for task in content["data"]:
        for query in task["query_response"]:
            for note in query.get("scores", {}).get("info", {}).values():
                if str(note).startswith("not evaluated"):
                    return str(note)
    return ""


def strip(content: Mapping[str, Any]) -> dict[str, Any]:
    """Without what only we write, and errors by name; tasks that are not scored keep what was submitted."""
    data = [
        {
            **{key: value for key, value in task.items() if key not in ("query_response", "fixed_mean_task_score")},
            "query_response": [official(query) for query in task["query_response"]],
        }
        for task in content["data"]
    ]
    summary = {key: value for key, value in content["summary"].items() if key != "fixed"}
    stripped = {**content, "data": data, "summary": summary}
    if "errors" in content:
        stripped["errors"] = [item["task_name"] if isinstance(item, dict) else item for item in content["errors"]]
    return stripped


def official(query: Mapping[str, Any]) -> dict[str, Any]:
    """A scored query as the reference writes it."""
    kept = {key: value for key, value in query.items() if key not in ("judge", "scorer_error")}
    if "scores" in kept:
        kept["scores"] = {key: value for key, value in kept["scores"].items() if key != "fixed"}
    return kept


def compare_files(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first difference between two outputs of the evaluator, or empty."""
    found = strip(got)
    unknown = set(found.get("errors", ()))
    tasks = {task["task_name"]: task for task in found["data"]}
    for task in wanted["data"]:
        name = task["task_name"]
        if name in unknown:
            continue
        if not same(tasks.get(name), task):
            return f"task {name}: {_first_difference(tasks.get(name), task)}"
    for key in ("summary", "errors"):
        if not same(found.get(key), wanted.get(key)):
            return f"{key}: {found.get(key)} instead of {wanted.get(key)}"
    return ""


def _first_difference(got: Any, wanted: Mapping[str, Any]) -> str:
    if got is None:
        return "missing"
    for key in wanted:
        if key == "query_response":
            for number, (ours, theirs) in enumerate(zip(got[key], wanted[key], strict=False)):
                if not same(ours, theirs):
                    return f"query {number}: {ours.get('scores')} instead of {theirs.get('scores')}"
        if not same(got.get(key), wanted[key]):
            return f"{key}: {got.get(key)!r} instead of {wanted[key]!r}"
    return f"further keys {sorted(set(got) - set(wanted))}"


def verdict(got: Mapping[str, Any], path: Path, superseded: bool) -> vectors.Verdict:
    """``superseded``: a corrected record stands beside this one, so a difference is a listed deviation."""
    difference = compare_files(got, read_json(path))
    if not difference:
        return PASSED
    return deviates(RULE) if superseded else failed(f"{path.name}: {difference}")


@path_adapter("megabench_pipeline/submissions/*")
def check_submission(folder: Path) -> Sequence[vectors.Verdict]:
    return list(_submission(folder))


def _submission(folder: Path) -> Iterator[vectors.Verdict]:
    case = read_json(folder / "case.json")
    submission = read_submission(next(iter(sorted(folder.glob("*_all_query_responses.json")))))
    existing = next(iter(folder.glob("existing_*.json")), None)
    previous = {} if existing is None else {task["task_name"]: task for task in read_json(existing)["data"]}
    got = evaluated(submission, case["subset"], previous)
    for expected in sorted(path for path in folder.iterdir() if path.is_dir()):
        superseded = (folder / f"{expected.name}_wanted").is_dir()
        for path in sorted(expected.rglob("*.json")):
            if missing(got):
                yield pending(missing(got))
            elif path.parent.name == "analysis":
                yield _analysis(path, [got], superseded)
            else:
                yield verdict(got, path, superseded)


def _analysis(path: Path, outputs: Sequence[Mapping[str, Any]], superseded: bool = False) -> vectors.Verdict:
    """One of the two files of a breakdown, from evaluator outputs in order of their names."""
    results = merge(read_scores(output, "output") for output in outputs)
    return _compare_analysis(path, results, labels(), superseded)


def _compare_analysis(
    path: Path, results: Sequence[Any], known: Mapping[str, Labels], superseded: bool = False
) -> vectors.Verdict:
    wanted = read_json(path)
    got: Any
    if path.name == "task_results.json":
        got = sorted((result.as_dict() for result in results), key=lambda entry: str(entry["name"]))
        wanted = sorted(wanted, key=lambda entry: str(entry["name"]))
    else:
        got = breakdown(results, known).as_dict()
    if same(got, wanted):
        return PASSED
    return deviates(RULE) if superseded else failed(f"{path.parent.parent.name}/{path.name}: other numbers")


@path_adapter("megabench_pipeline/e2e_slice")
def check_end_to_end(folder: Path) -> Sequence[vectors.Verdict]:
    """Submission files byte for byte; scored files and breakdowns as the README says which side is right."""
    return list(_end_to_end(folder))


def _end_to_end(folder: Path) -> Iterator[vectors.Verdict]:
    outputs: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("megabench_*_all_query_responses.json")):
        configuration = path.name.removeprefix("megabench_").removesuffix("_all_query_responses.json")
        records = [record(row, replies()[configuration, id_]) for id_, row in rows(configuration).items()]
        yield PASSED if dumps(records).encode() == path.read_bytes() else failed(f"{path.name}: other bytes")
        outputs[configuration] = evaluated(read_submission(path), configuration)
    for name, superseded in (
        ("expected_wanted", False),
        ("megabench_scores_full", True),
        ("megabench_scores_si", True),
    ):
        for path in sorted((folder / name).rglob("*.json")):
            yield _slice_file(path, outputs, superseded, is_full=name.endswith("full"))
    for path in sorted((folder / "variant_original").rglob("*.json")):
        yield _original(path, outputs)


def _slice_file(
    path: Path, outputs: Mapping[str, Mapping[str, Any]], superseded: bool, is_full: bool
) -> vectors.Verdict:
    names = ("core", "open") if is_full else ("core_single_image", "open_single_image")
    absent = next((note for name in names if (note := missing(outputs[name]))), "")
    if absent:
        return pending(absent)
    if path.parent.name == "analysis":
        return _analysis(path, [outputs[name] for name in names], superseded)
    configuration = path.name.removeprefix("megabench_").removesuffix("_data_with_scores.json")
    return verdict(outputs[configuration], path, superseded)


def _original(path: Path, outputs: Mapping[str, Mapping[str, Any]]) -> vectors.Verdict:
    """The benchmark's own processor: its scores by task and query."""
    absent = missing(outputs["core"]) or missing(outputs["open"])
    if absent:
        return pending(absent)
    if path.parent.name == "analysis":
        return _analysis(path, [outputs["core"], outputs["open"]])
    content = outputs[path.name.removesuffix("_scores.json")]
    got = {task["task_name"]: task for task in content["data"]}
    for wanted in read_json(path)["tasks"]:
        task = got[wanted["task_name"]]
        found = {key: task[key] for key in ("eval_type", "task_score", "mean_task_score")}
        scores = [query["scores"]["query"] for query in task["query_response"]]
        expected = {key: wanted[key] for key in found}
        if not same(found, expected) or not same(scores, wanted["query_scores"]):
            return failed(f"{wanted['task_name']}: {found} {scores} instead of {expected} {wanted['query_scores']}")
    return PASSED


@path_adapter("megabench_pipeline/breakdown/*")
def check_breakdown(folder: Path) -> Sequence[vectors.Verdict]:
    results = read_folder(folder / "input")
    verdicts = [_compare_analysis(path, results, labels()) for path in sorted((folder / "expected").glob("*.json"))]
    got = breakdown(results, labels()).as_dict()
    for path in sorted(folder.glob("published_*.json")):
        verdicts.append(_published(path, got))
    return verdicts


def _published(path: Path, got: Mapping[str, Any]) -> vectors.Verdict:
    """A published file: of the breakdown, or the summary of the benchmark's own processor."""
    wanted = read_json(path)
    found: dict[str, Any] = dict(got)
    if "keyword_stats" not in wanted:
        sides = {"rule": got["model_summary"]["core"], "llm": got["model_summary"]["open"]}
        found = {
            name: {side: (numbers or {}).get(key, 0) for side, numbers in sides.items()}
            for name, key in (
                ("num_tasks_evaluated", "num_eval_tasks"),
                ("num_queries_evaluated", "num_eval_samples"),
                ("macro_mean_score", "macro_mean_score"),
            )
        }
        found["overall_macro_mean_score"] = got["model_summary"]["overall_score"]
        wanted = {key: wanted[key] for key in found}
    return PASSED if same(found, wanted) else failed(f"{path.name}: {found} instead of {wanted}")


@line_adapter("megabench/breakdown.jsonl")
def breakdown_line(vector: Vector) -> vectors.Verdict:
    line = vector.record
    files = {name: content for name, content in line["files"].items() if Path(name).match("megabench*scores*.json")}
    results = merge(read_scores(files[name], name) for name in sorted(files) if "data_with_scores" in name)
    known = {
        name: Labels(tuple(meta["skills"]), meta["input_format"], meta["output_format"], meta["num_input"], meta["app"])
        for name, meta in line["task_meta"].items()
    }
    if not same([result.as_dict() for result in results], line["expected_task_results"]):
        return failed(f"tasks {[result.as_dict() for result in results]}")
    got = breakdown(results, known).as_dict()
    return PASSED if same(got, line["expected"]) else failed(f"{got} instead of {line['expected']}")

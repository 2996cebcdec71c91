"""MEGA-Bench: the stand-alone evaluator, on the slice of the data set. Score files: ``megabench_breakdown``."""

from __future__ import annotations

import atexit
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatImageContent, ChatMessages, ChatTextContent
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.megabench.breakdown.merge import merge, read_scores
from lmms_eval.tasks.megabench.conversions.literals import read_literal
from lmms_eval.tasks.megabench.facts import Labels, labels
from lmms_eval.tasks.megabench.reference import ReferenceTask, load_reference
from lmms_eval.tasks.megabench.scoring.pool import ScorePool
from lmms_eval.tasks.megabench.scoring.query import read_context
from lmms_eval.tasks.megabench.standalone import JudgePanel, evaluate
from lmms_eval.tasks.megabench.submission import dumps, read_submission, record
from tests.parity import vectors
from tests.parity.adapters.megabench import outside_data, same
from tests.parity.adapters.megabench_breakdown import analysis, met
from tests.parity.adapters.megabench_pipeline import SLICE, replies, rows
from tests.parity.adapters.megabench_tasks import Silent
from tests.parity.superseded import Place, differences, superseded, tree
from tests.parity.vectors import PASSED, failed, path_adapter, pending

RULE = "megabench_evaluator_follows_the_published_numbers"
FULL = ("core", "open")
SINGLE_IMAGE = ("core_single_image", "open_single_image")
FIGURES = ("eval_type", "task_score", "mean_task_score")
KEYWORDS: Mapping[str, Callable[[Labels], Sequence[str]]] = {
    "skills": lambda found: found.skills,
    "input_format": lambda found: [found.input_format],
    "output_format": lambda found: [found.output_format],
    "input_num": lambda found: [found.visual_inputs],
    "app": lambda found: [found.application],
}
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


@functools.cache
def _pool() -> ScorePool:
    """One process for all files: its first scores load dictionaries and sympy."""
    pool = ScorePool(1, data=outside_data({}))
    atexit.register(pool.close)
    return pool


def evaluated(
    submission: Sequence[Mapping[str, Any]], configuration: str, previous: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The output file's content, as a reader of the file has it."""
    panel = JudgePanel(ask, lambda name: SLICE / name)
    found = evaluate(submission, reference(configuration), previous or {}, _pool(), panel, Silent())
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
    found = with_unknown(strip(got), wanted)
    for place in differences(tree(wanted), tree(found)):
        return f"{'/'.join(map(str, place))}: {at(tree(found), place)!r} instead of {at(tree(wanted), place)!r}"
    names, order = ([task["task_name"] for task in content["data"]] for content in (found, wanted))
    return "" if names == order else f"tasks in the order {names} instead of {order}"


def at(content: Any, place: Place) -> Any:
    for key in place:
        content = content[key] if isinstance(content, dict) and key in content else "nothing"
    return content


def with_unknown(found: Mapping[str, Any], corrected: Mapping[str, Any]) -> dict[str, Any]:
    """Ours with the entries of unknown tasks: whether an output repeats them is free (README of the vectors)."""
    names = {task["task_name"] for task in found["data"]}
    left_out = {name for name in corrected.get("errors", ()) if name not in names and name in found.get("errors", ())}
    kept = iter(found["data"])
    data = [task if task["task_name"] in left_out else next(kept, None) for task in corrected["data"]]
    return {**found, "data": [task for task in data if task is not None] + list(kept)}


def verdict(got: Mapping[str, Any], path: Path, corrected: Path | None) -> vectors.Verdict:
    """``corrected``: the file that supersedes this record, where there is one."""
    if corrected is None:
        difference = compare_files(got, read_json(path))
        return failed(f"{path.name}: {difference}") if difference else PASSED
    recorded, right = read_json(path), read_json(corrected)
    allowed = list(differences(tree(recorded), tree(right)))
    return superseded(tree(with_unknown(strip(got), right)), tree(recorded), allowed, RULE, path.name)


@path_adapter("megabench_pipeline/submissions/*")
def check_submission(folder: Path) -> Sequence[vectors.Verdict]:
    return list(_submission(folder))


def _submission(folder: Path) -> Iterator[vectors.Verdict]:
    case = read_json(folder / "case.json")
    submission = read_submission(next(iter(sorted(folder.glob("*_all_query_responses.json")))))
    existing = next(iter(folder.glob("existing_*.json")), None)
    previous = {} if existing is None else {task["task_name"]: task for task in read_json(existing)["data"]}
    got = evaluated(submission, case["subset"], previous)
    for name in ("expected", "expected_wanted"):
        for path in sorted((folder / name).rglob("*.json")):
            corrected = correction(path, folder / name, folder / "expected_wanted")
            if missing(got):
                yield pending(missing(got))
            elif path.parent.name == "analysis":
                yield _analysis(path, [got], corrected)
            else:
                yield verdict(got, path, corrected)


def correction(path: Path, folder: Path, corrected: Path) -> Path | None:
    """The file of ``corrected`` that stands for this one of ``folder``."""
    file = corrected / path.relative_to(folder)
    return file if file.is_file() and folder != corrected else None


def results_of(outputs: Sequence[Mapping[str, Any]], name: str) -> Any:
    """One of the two files of a breakdown, from evaluator outputs in order of their names."""
    return analysis(merge(read_scores(output, "output") for output in outputs), labels())[name]


def _analysis(path: Path, outputs: Sequence[Mapping[str, Any]], corrected: Path | None = None) -> vectors.Verdict:
    got = results_of(outputs, path.name)
    if corrected is None:
        return met(got, path, ordered=len(outputs) == 1)
    recorded = tree(read_json(path))
    allowed = list(differences(recorded, tree(read_json(corrected))))
    return superseded(tree(got), recorded, allowed, RULE, path.name)


@path_adapter("megabench_pipeline/e2e_slice")
def check_end_to_end(folder: Path) -> Sequence[vectors.Verdict]:
    """Submission files byte for byte; scored files and breakdowns as the README says which side is right."""
    return list(_end_to_end(folder))


def _end_to_end(folder: Path) -> Iterator[vectors.Verdict]:
    outputs: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("megabench_*_all_query_responses.json")):
        configuration = path.name.removeprefix("megabench_").removesuffix("_all_query_responses.json")
        records = [
            record(row, read_context(row.eval_context), replies()[configuration, id_])
            for id_, row in rows(configuration).items()
        ]
        yield PASSED if dumps(records).encode() == path.read_bytes() else failed(f"{path.name}: other bytes")
        outputs[configuration] = evaluated(read_submission(path), configuration)
    corrected = folder / "expected_wanted"
    for name in ("expected_wanted", "megabench_scores_si"):
        for path in sorted((folder / name).rglob("*.json")):
            yield _single_image_file(path, outputs, correction(path, folder / name, corrected))
    yield from _full_files(folder, outputs)
    for path in sorted((folder / "variant_original").rglob("*.json")):
        yield _original(path, outputs)


def absent_part(outputs: Mapping[str, Mapping[str, Any]], configurations: Sequence[str]) -> str:
    return next((note for name in configurations if (note := missing(outputs[name]))), "")


def _single_image_file(path: Path, outputs: Mapping[str, Mapping[str, Any]], corrected: Path | None) -> vectors.Verdict:
    absent = absent_part(outputs, SINGLE_IMAGE)
    if absent:
        return pending(absent)
    if path.parent.name == "analysis":
        return _analysis(path, [outputs[name] for name in SINGLE_IMAGE], corrected)
    return verdict(outputs[configuration_of(path)], path, corrected)


def configuration_of(path: Path) -> str:
    return path.name.removeprefix("megabench_").removesuffix("_data_with_scores.json")


def _full_files(folder: Path, outputs: Mapping[str, Mapping[str, Any]]) -> Iterator[vectors.Verdict]:
    """The full set has no corrected files: right are the record's with the figures of the benchmark's own processor."""
    absent = absent_part(outputs, FULL)
    files = sorted((folder / "megabench_scores_full").rglob("*.json"))
    changed: dict[str, list[str]] = {}
    for path in files:
        if absent:
            yield pending(absent)
        elif path.parent.name != "analysis":
            configuration = configuration_of(path)
            recorded = tree(read_json(path))
            places = other_figures(recorded, read_json(folder / "variant_original" / f"{configuration}_scores.json"))
            for _, name, figure, *_ in places:
                changed.setdefault(str(name), []).append(str(figure))
            allowed = full_places(recorded, places) + phantom_places(recorded, reference(configuration))
            yield superseded(tree(strip(outputs[configuration])), recorded, allowed, RULE, path.name)
    for path in files:
        if not absent and path.parent.name == "analysis":
            recorded = tree(read_json(path))
            got = tree(results_of([outputs[name] for name in FULL], path.name))
            yield superseded(got, recorded, analysis_places(recorded, changed), RULE, path.name)


def other_figures(recorded: Mapping[str, Any], original: Mapping[str, Any]) -> list[Place]:
    """Where query scores, totals and ``eval_type`` of the record are not those of the benchmark's own processor."""
    places: list[Place] = []
    for task in original["tasks"]:
        name = task["task_name"]
        ours = recorded["data"][name]
        places += [("data", name, key) for key in FIGURES if not same(ours[key], task[key])]
        places += [
            ("data", name, "query_response", number, "scores", "query")
            for number, score in enumerate(task["query_scores"])
            if not same(ours["query_response"][number]["scores"]["query"], score)
        ]
    return places


def full_places(recorded: Mapping[str, Any], places: Sequence[Place]) -> list[Place]:
    """The other figures, field scores and infos in the tasks that have some, and the summary if there are any."""
    below: list[Place] = [
        ("data", name, "query_response", number, "scores", key)
        for name in {place[1] for place in places}
        for number in recorded["data"][name]["query_response"]
        for key in ("field", "info")
    ]
    return [*places, *below, *([("summary",)] if places else [])]


def phantom_places(recorded: Mapping[str, Any], tasks: Mapping[str, ReferenceTask]) -> list[Place]:
    """Scores of fields that the true answer does not have: dropped, which need not change a figure (README, (a))."""
    return [
        ("data", name, "query_response", number, "scores", part, field)
        for name, task in recorded["data"].items()
        for field in read_literal(tasks[name].metric_info)["field_score_function"]
        for number, query in task["query_response"].items()
        for part in ("field", "info")
        if field not in query["correct_answer"]
    ]


def analysis_places(recorded: Mapping[str, Any], changed: Mapping[str, Sequence[str]]) -> list[Place]:
    """In the list of tasks their figures; in the statistics both summaries and the keywords that hold such a task."""
    if "keyword_stats" not in recorded:
        keys = {"eval_type": "eval_type", "mean_task_score": "score"}
        return [(name, keys[figure]) for name, figures in changed.items() for figure in figures if figure in keys]
    known = [labels()[name] for name in changed if name in labels()]
    keywords: list[Place] = [
        ("keyword_stats", dimension, keyword)
        for dimension, keywords_of in KEYWORDS.items()
        for found in known
        for keyword in keywords_of(found)
    ]
    return [*keywords, *([("model_summary",)] if changed else [])]


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
        found = {key: task[key] for key in FIGURES}
        scores = [query["scores"]["query"] for query in task["query_response"]]
        expected = {key: wanted[key] for key in found}
        if not same(found, expected) or not same(scores, wanted["query_scores"]):
            return failed(f"{wanted['task_name']}: {found} {scores} instead of {expected} {wanted['query_scores']}")
    return PASSED

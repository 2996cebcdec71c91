"""Write a synthetic MEGA-Bench: all 440 core tasks with their published fields, metrics and numbers of queries.

Questions, answers and replies are invented; half of the replies are right, by a fixed seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.tasks.megabench.facts import DatasetTask, tasks

SLOW = frozenset({"program_judge", "constrained_generation"})
LATEX = frozenset(
    {
        "latex_expr_equality",
        "text_with_latex_expr_equality",
        "general_single_numerical_match",
        "boxed_single_numerical_match",
    }
)
"""Metrics that run a model's program, or parse LaTeX."""

DOMAIN = (
    "(define (domain rooms) (:action move :parameters (?a ?b) :precondition (and (at ?a) (linked ?a ?b)) "
    ":effect (and (at ?b) (not (at ?a)))) (:action light :parameters (?a) :precondition (and (at ?a) (dark ?a)) "
    ":effect (and (lit ?a) (not (dark ?a)))))"
)
PROBLEM = (
    "(define (problem p) (:domain rooms) (:init (at hall) (linked hall attic) (linked attic hall) (dark attic)) "
    "(:goal (and (lit attic) (at hall))))"
)
PLAN = "(move hall attic)\n(light attic)\n(move attic hall)"


@dataclass(frozen=True, slots=True)
class Field:
    """A true answer, a right and a wrong response to it, and the evaluation context."""

    truth: Any
    right: Any
    wrong: Any
    context: Mapping[str, Any] = field(default_factory=dict)


def _words(source: random.Random, count: int) -> list[str]:
    return ["".join(source.choices("abcdefghilmnoprstu", k=source.randint(3, 8))) for _ in range(count)]


def _text(source: random.Random) -> Field:
    phrase, other = " ".join(_words(source, 3)), " ".join(_words(source, 3))
    return Field(phrase, phrase, other)


def _letter(source: random.Random) -> Field:
    first, second = source.sample("ABCDE", 2)
    return Field(first, first, second)


def _number(source: random.Random) -> Field:
    value = source.randint(2, 900)
    return Field(str(value), str(value), str(value + source.randint(1, 50)))


def _sequence(source: random.Random) -> Field:
    items, others = _words(source, 5), _words(source, 5)
    return Field(str(items), str(items), str(others))


def _comma(source: random.Random) -> Field:
    items, others = _words(source, 4), _words(source, 4)
    return Field(", ".join(items), ", ".join(reversed(items)), ", ".join(others))


def _phrases(source: random.Random) -> Field:
    accepted = _words(source, 4)
    return Field(", ".join(accepted), source.choice(accepted), "none of them")


def _lines(source: random.Random) -> Field:
    items, others = _words(source, 4), _words(source, 4)
    return Field("\n".join(items), "\n".join(reversed(items)), "\n".join(others))


def _table(source: random.Random) -> Field:
    keys = _words(source, 4)
    truth = {key: source.randint(1, 99) for key in keys}
    return Field(str(truth), str(truth), str({key: 0 for key in keys}))


def _sets_by_key(source: random.Random) -> Field:
    truth = {key: _words(source, 3) for key in _words(source, 3)}
    return Field(str(truth), str(truth), str({key: ["other"] for key in truth}))


def _box(source: random.Random) -> str:
    left, top = source.random() / 2, source.random() / 2
    return f"({left:.3f}, {top:.3f}, {left + 0.3:.3f}, {top + 0.4:.3f})"


def _boxes(source: random.Random) -> Field:
    boxes = f"[{', '.join(_box(source) for _ in range(3))}]"
    return Field(boxes, boxes, "[(0.9, 0.9, 0.95, 0.95)]")


def _one_box(source: random.Random) -> Field:
    box = _box(source)
    return Field(box, box, "(0.9, 0.9, 0.95, 0.95)")


def _xml_box(source: random.Random) -> Field:
    box = f"<box>{_box(source)[1:-1]}</box>"
    return Field(box, box, "<box>0.9, 0.9, 0.95, 0.95</box>")


def _boxes_by_key(source: random.Random) -> Field:
    truth = "{" + ", ".join(f"'{key}': [{_box(source)}]" for key in _words(source, 3)) + "}"
    return Field(truth, truth, "{'none': [(0, 0, 1, 1)]}")


def _point(source: random.Random) -> Field:
    point = f"<point>{source.random():.3f}, {source.random():.3f}</point>"
    return Field(point, point, "<point>0.5, 0.5</point>")


def _point_in_box(_source: random.Random) -> Field:
    context = {"bounding_boxes": ["[(0.1, 0.1, 0.4, 0.5)]"]}
    return Field("", "<point>0.2, 0.3</point>", "<point>0.8, 0.8</point>", context)


def _coordinates(source: random.Random) -> Field:
    points = str([(round(source.random(), 3), round(source.random(), 3)) for _ in range(4)])
    return Field(points, points, "[(0, 0), (1, 1), (0, 1), (1, 0)]")


def _floats(source: random.Random) -> Field:
    values = [round(90 * source.random(), 1) for _ in range(3)]
    return Field(str(values), str(values), str([value + 20 for value in values]))


def _latex(source: random.Random) -> Field:
    a, b = source.randint(2, 9), source.randint(2, 9)
    return Field(f"\\frac{{{a} x}}{{{b}}} + y^2", f"y^{{2}} + \\frac{{{a}}}{{{b}}} x", f"\\frac{{{a + 1}}}{{{b}}} x")


def _text_with_latex(source: random.Random) -> Field:
    part, words = _latex(source), " ".join(_words(source, 2))
    truth, right, wrong = (f"{words} ${text}$" for text in (part.truth, part.right, part.wrong))
    return Field(truth, right, wrong)


def _boxed(source: random.Random) -> Field:
    part = _number(source)
    truth, right, wrong = (f"\\boxed{{{text}}}" for text in (part.truth, part.right, part.wrong))
    return Field(truth, right, wrong)


def _program(source: random.Random) -> Field:
    tests = [{"input": [f"{n} {n + 3}"], "expected": str(2 * n + 3)} for n in source.sample(range(99), 3)]
    right = "a, b = map(int, input().split())\nprint(a + b)"
    return Field("", right, right.replace("+ b", "- b"), {"test_case": tests})


def _plan(_source: random.Random) -> Field:
    return Field("", PLAN, PLAN.rpartition("\n")[0], {"domain_pddl": DOMAIN, "task_pddl": PROBLEM})


def _poem(source: random.Random) -> Field:
    right = "The cat sat on the mat\nIt wore a little hat\nThe dog went for a run\nAnd lay out in the sun"
    context = {"contain": "[cat, paw]", "length": "> 10", "rhyming_scheme": "AABB", "syllables": "6 6 6 6"}
    chosen = dict(source.sample(sorted(context.items()), 2))
    return Field("", right, "Purple", chosen)


def _chess(source: random.Random) -> Field:
    moves = source.sample(["Nf3", "e4", "Qxd5+", "O-O", "Rfe1", "Bb5"], 3)
    return Field(", ".join(moves), ", ".join(moves), "a3")


def _code_output(source: random.Random) -> Field:
    value = "\n".join(_words(source, 3))
    return Field(f"```\n{value}\n```", f"```\n{value}\n```", "nothing")


_SPECIAL: Mapping[str, Callable[[random.Random], Field]] = {
    "multi_ref_phrase": _phrases,
    "constrained_generation": _poem,
    "program_judge": _program,
    "symbolic_planning_test": _plan,
    "latex_expr_equality": _latex,
    "text_with_latex_expr_equality": _text_with_latex,
    "general_single_numerical_match": _number,
    "boxed_single_numerical_match": _boxed,
    "positive_int_match": _number,
    "normalized_rmse": _number,
    "number_rel_diff_ratio": _number,
    "angle_seq_float_rmse": _floats,
    "str_set_equality_comma": _comma,
    "str_set_equality_line_break": _lines,
    "dict_equality": _table,
    "dict_precision": _table,
    "dict_exact_str_match_agg_recall": _table,
    "dict_jaccard_agg_jaccard": _sets_by_key,
    "dict_nbbox_iou_tuple_agg_jaccard": _boxes_by_key,
    "nbbox_iou_tuple": _boxes,
    "nbbox_iou_sequence": _boxes,
    "nbbox_iou_single": _one_box,
    "xml_nbbox_iou_single": _xml_box,
    "xml_norm_point_distance": _point,
    "xml_norm_point_in_bbox": _point_in_box,
    "sequence_coords_similarity": _coordinates,
    "chess_move_list_jaccard_index": _chess,
    "code_result_exact_str_match": _code_output,
    "exact_str_match": _letter,
}
_SEQUENCES = ("set_", "sequence_", "jaccard", "longest_")


def _field(metric: str, source: random.Random) -> Field:
    if metric in _SPECIAL:
        return _SPECIAL[metric](source)
    return _sequence(source) if metric.startswith(_SEQUENCES) else _text(source)


def _reply(task: DatasetTask, values: Mapping[str, Any]) -> str:
    if task.parser == "json":
        return f"Let me think about it step by step.\n\n{json.dumps(values)}"
    value = next(iter(values.values()))
    return str(value) if task.parser == "dummy" else f"Let me think about it step by step.\n\nAnswer: {value}"


@dataclass(frozen=True, slots=True)
class Workload:
    """Paths of the data set and the submission, and their sizes."""

    data_root: Path
    submission: Path
    queries: int
    fields_by_metric: Mapping[str, int]


def write_workload(folder: Path, leave_out: frozenset[str] = frozenset(), seed: int = 0) -> Workload:
    """Write the core configuration as parquet and a submission to it, without the tasks of left-out metrics.

    ``worldle`` is included without its geographic score, since no geocoder is measured here.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = random.Random(seed)
    rows: list[dict[str, str]] = []
    submission: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for task in tasks().values():
        if task.subset == "core" and not leave_out.intersection(task.metrics.values()):
            submission.append(_task(task, source, rows, counts))
    (folder / "core").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "core" / "test-00000-of-00001.parquet")
    path = folder / "submission.json"
    path.write_text(json.dumps(submission, indent=4), encoding="utf-8")
    return Workload(folder, path, len(rows), counts)


def _task(
    task: DatasetTask, source: random.Random, rows: list[dict[str, str]], counts: dict[str, int]
) -> dict[str, Any]:
    names = _answer_fields(task)
    info = {
        "field_score_function": {name: task.metrics[name] for name in names},
        "aggregation": {"function": task.aggregation, "field_weights": dict(task.weights)},
        "response_parse_function": task.parser,
    }
    queries = []
    for number in range(task.queries):
        fields = {name: _field(task.metrics[name], source) for name in names}
        is_right = source.random() < 0.5
        for name in names:
            counts[task.metrics[name]] = counts.get(task.metrics[name], 0) + 1
        answer = {name: item.truth for name, item in fields.items()}
        context = {key: value for item in fields.values() for key, value in item.context.items()}
        rows.append(_row(task, number, answer, info, context))
        values = {name: item.right if is_right else item.wrong for name, item in fields.items()}
        queries.append(
            {
                "response": _reply(task, values),
                "correct_answer": answer,
                "global_idx": str(task.first_id + number),
                "images": [],
                "query_text": "Question?",
            }
        )
    example = {"image_paths": [], "example_text": "Example 1:"}
    return {
        "task_name": task.name, "global_images": [], "global_description": "An invented task.",
        "example_info": example, "query_response": queries,
    }  # fmt: skip


def _answer_fields(task: DatasetTask) -> list[str]:
    """Return the fields of the true answer: no unnamed ones, one for the parsers of a single answer."""
    named = [name for name in task.metrics if name]
    return named if task.parser == "json" else named[:1]


def _row(
    task: DatasetTask, number: int, answer: Mapping[str, Any], info: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, str]:
    return {
        "id": str(task.first_id + number), "task_name": task.name, "task_description": "An invented task.",
        "global_media": "[]", "example_text": "Example 1:", "example_media": "[]", "query_text": "Question?",
        "query_media": "[]", "answer": repr(dict(answer)), "metric_info": repr(info), "eval_context": repr(context),
        "taxonomy_tree_path": "", "application": "", "input_format": "", "output_format": "",
    }  # fmt: skip

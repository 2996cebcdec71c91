"""MEGA-Bench: the breakdown, on recorded score files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.megabench.breakdown.merge import PATTERN, TASK_RESULTS, merge, read_folder, read_scores
from lmms_eval.tasks.megabench.breakdown.statistics import breakdown
from lmms_eval.tasks.megabench.facts import Labels, labels
from tests.parity.adapters.megabench import expects_error, refused, same
from tests.parity.superseded import differences, superseded, tree
from tests.parity.vectors import PASSED, Vector, Verdict, failed, line_adapter, path_adapter

MINUS_ONE = "megabench_breakdown_leaves_out_minus_one"


def analysis(results: Sequence[Any], known: Mapping[str, Labels]) -> dict[str, Any]:
    """The content of the two files of a breakdown, by name."""
    return {
        TASK_RESULTS: [result.as_dict() for result in results],
        "summary_and_keyword_stats.json": breakdown(results, known).as_dict(),
    }


def met(got: Any, path: Path, ordered: bool) -> Verdict:
    """Tasks and keywords in the recorded order where they come from a single file."""
    wanted = read_json(path)
    if not same(tree(got), tree(wanted)):
        places = ["/".join(map(str, place)) for place in differences(tree(wanted), tree(got))]
        return failed(f"{path.parent.parent.name}/{path.name}: other numbers at {', '.join(places[:5])}")
    if ordered and order(got) != order(wanted):
        return failed(f"{path.parent.parent.name}/{path.name}: another order")
    return PASSED


def order(content: Any) -> Any:
    """Tasks, or the keywords of each dimension."""
    if isinstance(content, list):
        return [entry["name"] for entry in content]
    return {dimension: list(keywords) for dimension, keywords in content["keyword_stats"].items()}


@path_adapter("megabench_pipeline/breakdown/*")
def check_breakdown(folder: Path) -> Sequence[Verdict]:
    """The corrected files are met; the recorded ones are where no corrected one stands beside them."""
    ordered = sum(path.is_file() for path in (folder / "input").rglob("*")) == 1
    got = analysis(read_folder(folder / "input"), labels())
    verdicts = [met(got[path.name], path, ordered) for path in sorted((folder / "expected_wanted").glob("*.json"))]
    for path in sorted((folder / "expected").glob("*.json")):
        corrected = folder / "expected_wanted" / path.name
        if corrected.is_file():
            recorded = tree(read_json(path))
            allowed = list(differences(recorded, tree(read_json(corrected))))
            verdicts.append(superseded(tree(got[path.name]), recorded, allowed, MINUS_ONE, path.name))
        else:
            verdicts.append(met(got[path.name], path, ordered))
    for path in sorted(folder.glob("published_*.json")):
        verdicts.append(published(path, got["summary_and_keyword_stats.json"]))
    return verdicts


def published(path: Path, got: Mapping[str, Any]) -> Verdict:
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
def breakdown_line(vector: Vector) -> Verdict:
    """All files that the reader takes are merged; tasks and keywords in any order."""
    line = vector.record
    if expects_error(line["expected"]):
        return refused(merged, line["files"])
    known = {
        name: Labels(tuple(meta["skills"]), meta["input_format"], meta["output_format"], meta["num_input"], meta["app"])
        for name, meta in line["task_meta"].items()
    }
    got = analysis(merged(line["files"]), known)
    wanted = {TASK_RESULTS: line["expected_task_results"], "summary_and_keyword_stats.json": line["expected"]}
    wrong = ["/".join(map(str, place)) for place in differences(trees(wanted), trees(got))]
    return failed(f"differs at {', '.join(wrong[:5])}: {got}") if wrong else PASSED


def merged(files: Mapping[str, Any]) -> list[Any]:
    return merge([read_scores(files[name], name) for name in sorted(files) if fnmatchcase(name, PATTERN)])


def trees(files: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tree(content) for name, content in files.items()}

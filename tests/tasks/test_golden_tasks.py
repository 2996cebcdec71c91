"""The recorded task files run unchanged and give the recorded rows, with the documents' own scripted answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import build_from_spec, select_tasks
from tests.cases import for_each
from tests.parity.vectors import GOLDEN_DIR
from tests.tasks.kit import converse

HARNESS = GOLDEN_DIR / "harness"
RUNS = HARNESS / "runs"
TAGS = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
CALLABLE = re.compile(r"^<(function|class) .*>$")
NOT_METRICS = {"doc_id", "target", "resps", "filtered_resps", "token_counts", "doc_hash", "input"}

pytestmark = pytest.mark.skipif(not RUNS.is_dir(), reason=f"the recorded runs are not there ({RUNS})")


def runs() -> list[str]:
    if not RUNS.is_dir():
        return []
    return [run.name for run in sorted(RUNS.iterdir()) if "--tasks" in command(run.name)]


def command(run: str) -> list[str]:
    argv: list[str] = json.loads((RUNS / run / "command.json").read_text())["argv"]
    return argv


def options(argv: list[str]) -> TaskOptions:
    return TaskOptions(
        model_name=argv[argv.index("--model") + 1],
        chat="--force_simple" not in argv and "scripted_only_simple" not in argv,
        reasoning_tags=TAGS,
        predict_only="--predict_only" in argv,
        repeats=int(argv[argv.index("-n") + 1]) if "-n" in argv else None,
        agentic_trace_mode="full" if "--agentic_trace_mode" in argv else "basic",
    )


def tasks_of(run: str) -> list[Any]:
    argv = command(run)
    catalogue = Catalogue([HARNESS / "inputs" / "tasks"], include_defaults=False)
    selection = select_tasks([argv[argv.index("--tasks") + 1]], catalogue, options(argv))
    return [build_from_spec(json.loads(json.dumps(task.spec()))) for task in selection.tasks]


def without_callables(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_callables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_callables(item) for item in value]
    return None if isinstance(value, str) and CALLABLE.match(value) else value


@for_each("run", runs())
def test_recorded_configurations(run: str) -> None:
    recorded = json.loads((RUNS / run / "results.json").read_text())
    patch = json.loads((RUNS / run / "wanted.json").read_text()) if (RUNS / run / "wanted.json").is_file() else {}
    versions = {**recorded["versions"], **patch.get("results", {}).get("versions", {})}
    for task in tasks_of(run):
        text = json.dumps(task.describe()).replace(str(HARNESS / "inputs"), "<INPUTS>")
        made, wanted = without_callables(json.loads(text)), without_callables(recorded["configs"][task.name])
        assert {key: made.get(key) for key in wanted} == wanted
        assert task.num_fewshot == recorded["n-shot"][task.name]
        assert task.version == versions[task.name]
        assert {m.name: m.higher_is_better for m in task.metrics} == recorded["higher_is_better"][task.name]


@for_each("run", runs())
def test_recorded_rows(run: str) -> None:
    patch = json.loads((RUNS / run / "wanted.json").read_text()) if (RUNS / run / "wanted.json").is_file() else {}
    for task in tasks_of(run):
        file = RUNS / run / f"samples_{task.name}.jsonl"
        if not file.is_file():
            continue
        task.load()
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        per_pipeline = len(rows) // len(task.pipelines)
        for number, row in enumerate(rows):
            right = patch.get("samples", {}).get(file.name, {}).get(str(row["doc_id"])) or {}  # null: not to be run
            corrected = {**row, **right}
            check_row(task, task.pipelines[number // per_pipeline], corrected, f"{run}: {row}")


def check_row(task: Any, pipeline: str, row: dict[str, Any], where: str) -> None:
    doc_id = row["doc_id"]
    doc = task.document(doc_id)
    answers = [converse(task, doc_id, Scripted(doc, repeat), repeat)[0] for repeat in range(task.repeats)]
    scored = task.score(doc_id, answers)
    score = next(found for found in scored.scores if found.filter == pipeline)
    assert json.loads(json.dumps(score.metrics)) == {
        key: value for key, value in row.items() if key not in NOT_METRICS | {"raw_resps"}
    }, where
    assert (scored.target, answers[0].input) == (row["target"], row["input"]), where
    if task.repeats == 1 or pipeline != "none":
        filtered = json.loads(json.dumps(score.filtered))
        assert (filtered[0] if len(filtered) == 1 else filtered) == row["filtered_resps"], where


class Scripted:
    """Answers as the recorded plugin does, from the columns of the document."""

    def __init__(self, doc: Any, repeat: int) -> None:
        self._doc, self._calls = doc, repeat

    def __call__(self, request: Request) -> Response:
        if request.kind == "loglikelihood":
            value, greedy = self._doc["sim_ll"][request.index], bool(self._doc["sim_greedy"][request.index])
            return Response(request.id, loglikelihood=value, is_greedy=greedy, is_loss=True)
        many = self._doc.get("sim_responses")
        text = many[self._calls % len(many)] if many else self._doc["sim_response"]
        self._calls += 1
        return Response(request.id, text=text)


def test_the_index_knows_the_recorded_names() -> None:
    index = Catalogue([HARNESS / "inputs" / "tasks"], include_defaults=False)
    assert {"gold_vqa", "gold_group", "gold_tag"} <= set(index.names())
    assert index.tags["gold_tag"] == ["gold_part_a", "gold_part_b"]
    assert index.broken == {}


def test_plugin_tasks_of_the_recorded_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HARNESS / "inputs" / "plugin"))
    task = select_tasks(
        ["plug_task"], Catalogue(plugins=["golden_plugin"], include_defaults=False), TaskOptions()
    ).tasks[0]
    task.load()
    assert len(task) == 4


def test_pictures_of_the_recorded_task() -> None:
    catalogue = Catalogue([HARNESS / "inputs" / "tasks"], include_defaults=False)
    task: Any = select_tasks(["gold_vqa"], catalogue, TaskOptions()).tasks[0]
    task.load()
    images, videos, sounds = task.exchange(0, 0).open()[0].build_messages().extract_media()
    assert (len(images), images[0].mode, videos, sounds) == (1, "RGB", [], [])
    assert Path(task.source.file).name == "gold_vqa.yaml"

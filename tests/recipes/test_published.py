"""Published numbers: the table, models' names, and the comparison with the numbers of a run."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import UnknownNameError
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.recipes.published import (
    TABLE,
    Ours,
    Published,
    PublishedPair,
    RunNumbers,
    check_model,
    compare_published,
    models,
    normalised,
    published_of,
)
from lmms_eval.results.tables import make_latex, make_table
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.utils.files import read_table
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.certainty import certainty
from tests.cases import for_each

SHARES = ScoreRange(0.0, 1.0)
MODEL = "Qwen2.5-VL-7B-Instruct"


def row(value: str = "69.6", unit: str = "%", **more: Any) -> Published:
    known = {"kind": "own", "source": "card", "note": "", "obstacle": "", "thinking": False}
    return Published(model="m", benchmark="b", metric="acc", value=value, unit=unit, **{**known, **more})


ALL = [one for name in models() for one in published_of(name)]


def test_the_table_has_what_is_written_somewhere() -> None:
    rows = read_table(TABLE)
    assert len(rows) == 809
    assert len({id(one) for one in ALL}) == 809
    for one in ALL:
        assert one.source
        assert re.fullmatch(r"\d+(\.\d+)?", one.value)
        assert one.kind in ("own", "cited", "third-party run")
        assert one.unit in ("%", "points of 1000", "points of 2800")
        assert "memory" not in one.source


def test_each_benchmark_has_the_metric() -> None:
    catalogue = Catalogue()
    wanted = {(one.benchmark, one.metric) for one in ALL if not one.obstacle and one.benchmark != "mathvista_testmini"}
    for benchmark in sorted({name for name, _ in wanted}):
        found = select_tasks([benchmark], catalogue, TaskOptions())
        group = next((one for one in found.groups if one.name == benchmark), None)
        metrics = [one.name for one in found.tasks[0].metrics] if group is None else [m.metric for m in group.metrics]
        if not metrics:
            assert benchmark == "mmmu_pro"  # a group without a number
            continue
        absent = {metric for name, metric in wanted if name == benchmark} - set(metrics)
        assert not absent, (benchmark, absent, metrics)


NAMES = {
    "an organisation": ("OpenGVLab/InternVL2_5-8B", "InternVL2.5-8B"),
    "hyphens": ("InternVL-3.5-8B", "OpenGVLab/InternVL3_5-8B-HF"),
    "a folder": ("/models/Qwen2.5-VL-7B-Instruct/", "Qwen2.5-VL-7B-Instruct"),
    "a snapshot": ("/hub/models--Qwen--Qwen3-VL-8B-Instruct/snapshots/0123ab", "qwen3-vl-8b-instruct"),
    "a date": ("gpt-4o-2024-05-13", "GPT-4o-20240513"),
    "a version": ("openbmb/MiniCPM-V-4", "MiniCPM-V-4.0"),
    "blanks": ("Claude 3.5 Sonnet", "claude3.5-sonnet"),
}


@for_each("one, other", NAMES.values(), ids=NAMES)
def test_spellings_of_one_name(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


OTHERS = {
    "another size": ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-72B-Instruct"),
    "another version": ("InternVL2-58B", "InternVL2.5-8B"),
    "quantised": ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B-Instruct-AWQ"),
    "thinking": ("Qwen3-VL-8B-Instruct", "Qwen3-VL-8B-Thinking"),
}


@for_each("one, other", OTHERS.values(), ids=OTHERS)
def test_other_models_have_other_names(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_unknown_models() -> None:
    assert published_of("") == published_of("mine") == ()
    with pytest.raises(UnknownNameError, match=f"unknown model 'Qwen2.5-VL-7B'; did you mean .*{MODEL}.*--published"):
        check_model("Qwen2.5-VL-7B")


# value, low, high -> verdict; the interval of the difference is wider by 0.05 on both sides
VERDICTS = {
    "inside": ((68.1, 65.1, 71.0), "agrees"),
    "at the end": ((60.0, 50.0, 69.6), "agrees"),
    "inside by the rounding": ((60.0, 50.0, 69.56), "agrees"),
    "outside": ((60.0, 50.0, 69.54), "differs"),
    "above": ((80.0, 69.66, 85.0), "differs"),
}


@for_each("ours, verdict", VERDICTS.values(), ids=VERDICTS)
def test_verdicts(ours: tuple[float, float, float], verdict: str) -> None:
    value, low, high = ours
    made = PublishedPair(row(), "acc,none", value, low, high)
    assert made.verdict == verdict
    assert made.ends == pytest.approx((low - 69.65, high - 69.55))
    assert made.difference == pytest.approx(value - 69.6)


def test_words() -> None:
    differs = PublishedPair(row("896", "points of 1000"), "acc,none", 880.0, 860.0, 895.0)
    assert differs.shown == differs.cell == "differs by -16.0 [-36.5, -0.5]"
    assert differs.line("ocrbench") == (
        "ocrbench: published 896 points of 1000 (own: card); here 880.0 [860.0, 895.0]: differs by -16.0 [-36.5, -0.5]"
    )
    absent = PublishedPair(row(thinking=True, note="Pass@1"), reason="no judge")
    assert absent.line("t") == "t: published 69.6 (own, with thinking: card; Pass@1): not comparable: no judge"
    assert (absent.cell, absent.difference) == ("not comparable", None)


def compared(task: RunNumbers, model: str = MODEL) -> list[PublishedPair]:
    return compare_published(model, [task]).get(task.name, [])


def test_units_and_the_order_of_sources() -> None:
    found = compared(RunNumbers("mmmu_val", [Ours("mmmu_acc", "none", 0.586, 0.55, 0.62, SHARES)]))
    assert [one.row.kind for one in found] == ["own", "cited", "cited", "third-party run", "third-party run"]
    assert found[0].value == pytest.approx(58.6)
    assert [one.verdict for one in found] == ["agrees", "agrees", "agrees", "differs", "differs"]
    points = compared(RunNumbers("ocrbench", [Ours("ocrbench_accuracy", "none", 0.864, 0.85, 0.88, SHARES)]))
    assert {one.row.unit: round(one.value or 0) for one in points} == {"points of 1000": 864, "%": 86}
    percent = ScoreRange(0.0, 100.0)
    videos = compared(RunNumbers("videomme", [Ours("videomme_perception_score", "none", 65.1, 64.0, 66.0, percent)]))
    assert videos[0].value == pytest.approx(65.1)


NOTHING = Ours("mmmu_acc", "none", None, reason="nothing was scored")
REASONS = {
    "some documents": (RunNumbers("mmmu_val", [NOTHING], reason="the run has 8 of 900 documents"), "8 of 900"),
    "no number": (RunNumbers("mmmu_val", [NOTHING]), "nothing was scored"),
    "no such metric": (
        RunNumbers("mmmu_val", [Ours("acc", "none", 0.5, 0.4, 0.6, SHARES)]),
        "the published metric is mmmu_acc, and the run has acc",
    ),
    "no judge": (RunNumbers("mmmu_val", [], needs_judge=True), "the published metric is mmmu_acc, and the run has no"),
    "a mean of three": (RunNumbers("hallusion_bench_image", []), "the mean of aAcc, fAcc and qAcc"),
    "a server's split": (RunNumbers("docvqa_test", []), "the benchmark's server scores this split"),
    "no interval": (
        RunNumbers("mmmu_val", [Ours("mmmu_acc", "none", 0.5, within=SHARES)]), "the run's number has no interval"
    ),
    "no range": (
        RunNumbers("mmmu_val", [Ours("mmmu_acc", "none", 0.5, 0.4, 0.6)]), "the range of mmmu_acc is not stated"
    ),
    "a form of the prompt": (
        RunNumbers("mathvista_testmini_cot", [Ours("llm_as_judge_eval", "none", 0.5, 0.4, 0.6, SHARES)]),
        "the source does not state that its prompt is the form cot",
    ),
}  # fmt: skip


@for_each("task, reason", REASONS.values(), ids=REASONS)
def test_what_is_not_comparable_has_a_reason(task: RunNumbers, reason: str) -> None:
    found = compared(task)
    assert found
    for one in found:
        assert one.verdict == "not comparable"
        assert reason in one.reason


def test_the_higher_of_two_prompts_is_not_comparable() -> None:
    ours = Ours("mmmu_acc", "none", 0.56, 0.5, 0.6, SHARES)
    (found, *_) = compared(RunNumbers("mmmu_val", [ours]), "OpenGVLab/InternVL2_5-8B")
    assert "the higher of a direct and a step-by-step prompt" in found.reason


def test_the_recipes_prompt_is_all_of_mathvista() -> None:
    ours = [Ours("llm_as_judge_eval", "none", 0.68, 0.6, 0.7, SHARES)]
    assert compared(RunNumbers("mathvista_testmini_cot", ours, by_recipe=True))[0].verdict == "agrees"


def test_the_reading_of_the_recipe_is_compared() -> None:
    official = Ours("mmmu_acc", "none", 0.4, 0.35, 0.45, SHARES)
    for name in ("recipe_accuracy", "recipe_mmmu_acc"):
        read = Ours(name, "none", 0.586, 0.55, 0.62, SHARES)
        (first, *_) = compared(RunNumbers("mmmu_val", [official, read]))
        assert (first.key, first.verdict) == (f"{name},none", "agrees")


def photo(number: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, number // 256, 60)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """RealWorldQA's layout, with questions of our own."""
    root = tmp_path_factory.mktemp("data")
    question = "Where is it?\nA. left\nB. right\nPlease answer directly with only the letter of the correct option."
    rows = [{"image": photo(n), "question": question, "answer": "AB"[n % 2], "image_path": "x"} for n in range(765)]
    text = {"dtype": "string", "_type": "Value"}
    features = {"image": {"_type": "Image"}, "question": text, "answer": text, "image_path": text}
    table = pa.Table.from_pylist(rows).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    (root / "RealWorldQA").mkdir()
    pq.write_table(table, root / "RealWorldQA" / "test-00000-of-00001.parquet")
    return root


def run(data: Path, **options: Any) -> dict[str, Any]:
    given = {"model": "baseline", "model_args": "strategy=constant,text=A", "tasks": "realworldqa", **options}
    results = simple_evaluate(data_root=str(data), verbosity="ERROR", **given)
    assert results is not None
    return results


def test_a_run_states_the_verdicts(data: Path) -> None:
    results = run(data, published=MODEL)
    first, second = results["published"]["realworldqa"]
    assert (first["published"], first["kind"], first["verdict"]) == ("68.5", "cited", "differs")
    interval = results["intervals"]["realworldqa"]["exact_match,none"]
    assert first["low"] == pytest.approx(100 * interval["low"] - 68.55)
    assert first["high"] == pytest.approx(100 * interval["high"] - 68.45)
    assert first["value"] == pytest.approx(100 * results["results"]["realworldqa"]["exact_match,none"])
    assert second["kind"] == "third-party run"


def test_the_table_and_its_latex(data: Path) -> None:
    results = run(data, published=MODEL)
    first = make_table(results).splitlines()[2]
    assert "|68.5 (+1)|differs by -18.43 [" in first
    latex = make_latex(results).splitlines()
    assert any(line.startswith("{}realworldqa & ") and "68.5 (+1) & differs by $-$18.43" in line for line in latex)
    assert latex[-1].startswith("% realworldqa: 68.50 (third-party run: ")
    assert ": differs by -18.43 [" in latex[-1]
    part = next(one for one in certainty(results)["tasks"]["realworldqa"] if one["title"] == "Published numbers")
    assert [one["verdict"] for one in part["numbers"]] == ["differs", "differs"]
    some = certainty(run(data, published=MODEL, limit=8))["tasks"]["realworldqa"]
    notes = next(one for one in some if one["title"] == "Published numbers")["notes"]
    assert notes[0].endswith("not comparable, for the run has 8 of 765 documents.")


def test_some_documents_are_not_comparable_with_all(data: Path) -> None:
    (first, _) = run(data, published=MODEL, limit=8)["published"]["realworldqa"]
    assert (first["verdict"], first["reason"]) == ("not comparable", "the run has 8 of 765 documents")
    (first, _) = run(data, published=MODEL, sample="9")["published"]["realworldqa"]
    assert first["reason"] == "the run has 9 of 765 documents"


def test_only_if_asked(data: Path) -> None:
    assert "published" not in run(data, limit=2)
    assert "published" not in run(data, limit=2, published=True)  # nothing is published of a baseline
    with pytest.raises(UnknownNameError, match="unknown model 'nobody'"):
        run(data, limit=2, published="nobody")


RECIPES = (
    ("qwen2.5-vl@vlmevalkit", "Qwen/Qwen2.5-VL-7B-Instruct", "68.5 (+1)"),
    ("internvl3@vlmevalkit", "OpenGVLab/InternVL2-8B", "64.4"),
    ("kimi-vl@vlmevalkit", "moonshotai/Kimi-VL-A3B-Instruct", "68.1"),
)


@pytest.mark.parametrize(("recipe", "model", "shown"), RECIPES)
def test_recipes_show_published_numbers(data: Path, recipe: str, model: str, shown: str) -> None:
    results = run(data, recipe=recipe, published=model)
    (first, *_) = results["published"]["realworldqa"]
    assert (first["metric"], first["verdict"]) == ("recipe_accuracy,none", "differs")
    row = next(line for line in make_table(results).splitlines() if "recipe_accuracy" in line)
    assert [cell.strip() for cell in row.split("|")][-3:-1] == [shown, first["shown"]]
    assert f"& {shown} & differs by" in make_latex(results)
    titles = [part["title"] for part in certainty(results)["tasks"]["realworldqa"]]
    assert "Published numbers" in titles

"""Pages over runs of the four demonstrations: their numbers are those of the results documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lmms_eval.cli.main import main
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.servers.stub import StubServer
from tests.tasks.mmie.kit import judged_data, words
from tests.viewer.conftest import Watched

ROWS = """(region) => [...region.querySelectorAll("tbody tr")].map((row) => ({
    few: row.classList.contains("few"),
    cells: [...row.children].map((cell) => {
        const score = cell.querySelector(".score");
        return score ? [...score.children].map((part) => part.textContent) : cell.textContent;
    }),
}))"""
TASKS = {"mega": "megabench_demo", "mile": "milebench_demo", "general": "general_bench_demo", "mmie": "mmie"}
RUNS = {name: "stub" if name == "mmie" else f"baseline@{name}" for name in TASKS}
DIMENSIONS = ("skills", "input_format", "output_format", "input_num", "app")


@dataclass(frozen=True, slots=True)
class Demos:
    """A report of runs, and the results documents that they wrote."""

    report: Path
    documents: Mapping[str, dict[str, Any]]


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Demos:
    """Runs with answers of which some are right, so that numbers differ; MMIE with a judge on loopback."""
    folder = tmp_path_factory.mktemp("demos")
    judged_data(folder / "data")
    answers = {
        "mega": "strategy=constant,text=Answer: B",
        "mile": "strategy=constant,text=A",
        "general": "strategy=gold",
    }
    for name, arguments in answers.items():
        command = ["--model", "baseline", "--model_args", arguments, "--tasks", TASKS[name]]
        assert main(["eval", *command, "--output_path", str(folder / name), "--log_samples"]) == 0
    with StubServer() as model, StubServer() as judge, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "test-key")
        command = words(folder / "data", folder / "mmie", model, judge, "--judge_repeats", "2")
        main(["eval", *command])  # some replies of the judge cannot be read
    files = {name: next((folder / name).rglob("*_results.json")) for name in TASKS}
    write_report([str(folder / name) for name in TASKS], folder / "report", ReportOptions(media="none"))
    return Demos(folder / "report", {name: json.loads(file.read_text()) for name, file in files.items()})


def shown(value: float | None) -> str:
    """A number as pages write it."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return str(int(value))
    if abs(value) < 1e-3:
        return f"{Decimal(f'{value:.2e}'):f}"
    step = Decimal("0.01") if abs(value) >= 10 else Decimal("0.0001")
    return str(Decimal(value).quantize(step, ROUND_HALF_UP))


def score(value: float, ends: Any, reason: str = "") -> list[str]:
    low, high = ends or (None, None)
    return [shown(value), reason if low is None else f"{shown(low)} – {shown(high)}"]


def table(page: Any, label: str) -> dict[str, Any]:
    """Rows by their first cell: the others, and whether they are shaded."""
    region = page.wait_for_selector(f'[role=region][aria-label="{label}"]', state="attached")
    return {row["cells"][0]: (row["cells"][1:], row["few"]) for row in region.evaluate(ROWS)}


def open_run(watched: Watched, demos: Demos, name: str) -> Any:
    page = watched.open(demos.report, f"#/{quote(RUNS[name], safe='')}")
    page.wait_for_selector("h2:has-text('How it was made')")
    return page


def test_megabench(demos: Demos, watched: Watched) -> None:
    page = open_run(watched, demos, "mega")
    found = demos.documents["mega"]["megabench_breakdown"]["demo"]["intervals"]
    for dimension in DIMENSIONS:
        rows = table(page, f"MEGA-Bench by {dimension}")
        assert page.query_selector(f'canvas[aria-label="MEGA-Bench by {dimension}"]')
        assert rows == {
            name: ([score(one["score"], one["ci95"], one.get("no_interval", "")), str(one["count"])], one["count"] < 30)
            for name, one in found["keyword_stats"][dimension].items()
        }
    overall = found["model_summary"]["overall"]
    assert 0 < overall["score"] < 1
    assert table(page, "MEGA-Bench, summary")["overall"][0][0] == score(overall["score"], overall["ci95"])
    mean = demos.documents["mega"]["results"]["megabench_demo"]["macro_mean,none"]
    assert shown(mean) == page.inner_text("tr:has-text('macro_mean') .score b")


def test_milebench(demos: Demos, watched: Watched) -> None:
    check_milebench(open_run(watched, demos, "mile"), demos.documents["mile"])


def check_milebench(page: Any, document: Mapping[str, Any]) -> None:
    """Compare a page of the demonstration with its document; ``make test`` does it in ``test_benchmarks.py``."""
    found = document["milebench_report"]["demo"]

    def row(one: Mapping[str, Any], part: Any) -> Any:
        reason = "n = 1" if one["samples"] == 1 else ""
        ends = None if part["low"] is None else (part["low"], part["high"])
        return [score(part["score"], ends, reason), str(one["samples"])], one["samples"] < 30

    groups = {**found["overall"], **found["groups"]}
    assert table(page, "Groups") == {
        name: row(one, one["official"] or one["partial"]["official"]) for name, one in groups.items()
    }
    assert table(page, "Score by number of pictures") == {
        one["images"]: row(one, one["by_sample"]["official"]) for one in found["by_images"] if one["scope"] == "all"
    }
    assert page.query_selector("canvas[aria-label='Score by number of pictures']")
    page.select_option("label:has-text('Rule') select", "fixed")
    first = found["datasets"]["ActionSequence"]
    assert table(page, "Data sets")["ActionSequence"] == row(first, first["fixed"])
    for name, grid in found["needle_grids"].items():
        cells = table(page, name)
        for depth, scores, counts in zip(grid["depths"], grid["official"], grid["samples"], strict=True):
            expected = [
                "–" if value is None else f"{shown(value)}no intervaln = {count}"
                for value, count in zip(scores, counts, strict=True)
            ]
            assert cells[depth][0] == expected


def test_mmie(demos: Demos, watched: Watched) -> None:
    page = open_run(watched, demos, "mmie")
    found = demos.documents["mmie"]["mmie_report"]["mmie"]
    for kind in ("categories", "fields"):
        page.select_option("label:has-text('By') select", kind)
        assert table(page, f"MMIE by {kind}") == {
            name: ([score(one["mean"], one["interval"]), str(one["scored"])], one["scored"] < 30)
            for name, one in found[kind].items()
        }
    assert found["categories"]["AVG"]["scored"] > 20
    repeats = found["tasks"]["mmie"]["repeats"]
    facts = page.query_selector("[aria-label='Agreement of the judge']").evaluate(ROWS)
    agreement = {row["cells"][2]: row["cells"][3:] for row in facts}
    assert agreement["weighted kappa"] == [[shown(repeats["weighted_kappa"]), ""], str(repeats["n"])]
    assert agreement["Krippendorff's alpha"][0][0] == shown(repeats["krippendorff_alpha"])


def test_general_bench(demos: Demos, watched: Watched) -> None:
    page = open_run(watched, demos, "general")
    found = demos.documents["general"]["general_bench_report"]["general_bench_demo"]
    level = found["general_level"]
    ladder, missing = table(page, "General-Level by level"), table(page, "What the levels lack")
    assert list(ladder) == ["Level 2", "Level 3", "Level 4", "Level 5"]
    for name, (cells, _) in ladder.items():
        key = name.lower().replace(" ", "")
        sensitivity = level["sensitivity"][key]
        assert cells[0] == score(level["levels"][key], sensitivity["interval"], sensitivity["no_interval"])
        assert missing[name][0][0] == str(sensitivity["missing_rows"])
    modalities = table(page, "Levels by modality")
    assert page.query_selector("canvas[aria-label='Levels by modality']")
    for name, one in level["modalities"].items():
        ends = level["sensitivity"]["level2"]["modalities"][name]
        cells, is_few = modalities[name]
        assert cells[0] == score(one["level2"], ends["interval"], ends["no_interval"])
        assert cells[-1] == f"{one['supported']} of {one['total']}" and is_few == (one["supported"] < 30)
    tasks = table(page, "Tasks of General-Bench")
    assert len(tasks) == len(found["tasks"]) == 45


def test_the_first_page_and_what_a_run_rests_on(demos: Demos, watched: Watched) -> None:
    page = watched.open(demos.report)
    numbers = {name: page.inner_text(f"tr:has-text('{run}') .headlines >> nth=0") for name, run in RUNS.items()}
    overall = demos.documents["mega"]["megabench_breakdown"]["demo"]["intervals"]["model_summary"]["overall"]
    assert numbers["mega"].split()[:2] == ["overall", shown(overall["score"])]
    assert numbers["mmie"].split()[:2] == [
        "AVG",
        shown(demos.documents["mmie"]["mmie_report"]["mmie"]["categories"]["AVG"]["mean"]),
    ]
    levels = demos.documents["general"]["general_bench_report"]["general_bench_demo"]["general_level"]["levels"]
    assert numbers["general"].split()[:3] == ["level", "2", shown(levels["level2"])]
    page = open_run(watched, demos, "mmie")
    outcome = demos.documents["mmie"]["outcomes"]["mmie"]
    row = page.inner_text("section:has(h2:text-is('Outcomes')) tbody tr").split()
    assert row[1:3] == [str(outcome["requested"]), str(outcome["scored"])]
    histogram = page.inner_text("section:has(h2:has-text('Latency')) .card")
    assert f"n = {outcome['requested']}" in histogram
    record = json.loads(next((demos.report.parent / "mmie").rglob("run.json")).read_text())
    assert page.inner_text("h3:has-text('continues') + pre") == record["command"]

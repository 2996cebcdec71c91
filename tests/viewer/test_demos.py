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
    few: [...row.querySelectorAll(".few-mark")].some((mark) => mark.textContent === "*"),
    cells: [...row.children].filter((cell) => !cell.classList.contains("plotted")).map((cell) => {
        const score = cell.querySelector(".score");
        if (score) return [...score.children].map((part) => part.textContent);
        return cell.querySelector(".few-mark") ? cell.textContent.replace("*", "") : cell.textContent;
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


Entry = tuple[float, Any, str]
"""A score, the ends of its interval, and why there is none."""


def scores(column: Mapping[str, Entry]) -> dict[str, list[str]]:
    """The scores of a column as pages write them, all in one format."""
    numbers = [
        abs(number) for value, ends, _ in column.values() for number in (value, *(ends or ())) if number is not None
    ]
    digits = 0 if all(float(number).is_integer() for number in numbers) else 4 if max(numbers) < 10 else 2

    def text(number: float) -> str:
        return str(Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))

    return {
        name: [text(value), f"{text(ends[0])} – {text(ends[1])}" if ends else reason]
        for name, (value, ends, reason) in column.items()
    }


def table(page: Any, label: str) -> dict[str, Any]:
    """Rows by their first cell: the others but for the plot, and whether they are marked as over few."""
    region = page.wait_for_selector(f'[role=region][aria-label="{label}"]', state="attached")
    return {row["cells"][0]: (row["cells"][1:], row["few"]) for row in region.evaluate(ROWS)}


def open_run(watched: Watched, demos: Demos, name: str, tab: str = "breakdown") -> Any:
    page = watched.open(demos.report, f"#/{quote(RUNS[name], safe='')}?page={tab}")
    page.wait_for_selector("[role=tabpanel] section")
    return page


def test_megabench(demos: Demos, watched: Watched) -> None:
    page = open_run(watched, demos, "mega")
    found = demos.documents["mega"]["megabench_breakdown"]["demo"]["intervals"]
    for dimension in DIMENSIONS:
        region = page.wait_for_selector(f"[role=region][aria-label='MEGA-Bench by {dimension}']")
        parts = found["keyword_stats"][dimension]
        assert len(region.query_selector_all("svg.plot")) == len(parts)
        column = scores({name: (one["score"], one["ci95"], one.get("no_interval", "")) for name, one in parts.items()})
        assert table(page, f"MEGA-Bench by {dimension}") == {
            name: ([column[name], str(one["count"])], one["count"] < 30) for name, one in parts.items()
        }
    overall = found["model_summary"]["overall"]
    assert 0 < overall["score"] < 1
    written = scores({"overall": (overall["score"], overall["ci95"], "")})["overall"]
    assert table(page, "MEGA-Bench, summary")["overall"][0][0] == written
    mean = demos.documents["mega"]["results"]["megabench_demo"]["macro_mean,none"]
    page = open_run(watched, demos, "mega", "overview")
    assert shown(mean) == page.inner_text("tr:has-text('macro_mean') .score b")
    assert "over 26 tasks" in page.inner_text(".headline")
    assert "59 scored documents" in page.inner_text("main") and page.query_selector("tr:has-text('scored')") is None


def test_milebench(demos: Demos, watched: Watched) -> None:
    check_milebench(open_run(watched, demos, "mile"), demos.documents["mile"])


def check_milebench(page: Any, document: Mapping[str, Any]) -> None:
    """Compare a page of the demonstration with its document; ``make test`` does it in ``test_benchmarks.py``."""
    found = document["milebench_report"]["demo"]

    def rows(parts: Mapping[str, tuple[Mapping[str, Any], Any]]) -> dict[str, Any]:
        entries = {
            name: (part["score"], None if part["low"] is None else (part["low"], part["high"]), "n = 1")
            for name, (_, part) in parts.items()
        }
        column = scores(entries)
        return {name: ([column[name], str(one["samples"])], one["samples"] < 30) for name, (one, _) in parts.items()}

    groups = {**found["overall"], **found["groups"]}
    assert table(page, "Groups") == rows(
        {name: (one, one["official"] or one["partial"]["official"]) for name, one in groups.items()}
    )
    assert table(page, "Score by number of pictures") == rows(
        {one["images"]: (one, one["by_sample"]["official"]) for one in found["by_images"] if one["scope"] == "all"}
    )
    assert page.query_selector("canvas[aria-label='Score by number of pictures']")
    page.select_option("label:has-text('Rule') select", "fixed")
    sets = {name: (one, one["fixed"]) for name, one in found["datasets"].items()}
    assert table(page, "Data sets")["ActionSequence"] == rows(sets)["ActionSequence"]
    for name, grid in found["needle_grids"].items():
        cells = table(page, name)
        for depth, values, counts in zip(grid["depths"], grid["official"], grid["samples"], strict=True):
            expected = [
                "–" if value is None else f"{shown(value)}no intervaln = {count}"
                for value, count in zip(values, counts, strict=True)
            ]
            assert cells[depth][0] == expected


def test_mmie(demos: Demos, watched: Watched) -> None:
    page = open_run(watched, demos, "mmie")
    found = demos.documents["mmie"]["mmie_report"]["mmie"]
    for kind in ("categories", "fields"):
        page.select_option("label:has-text('By') select", kind)
        column = scores({name: (one["mean"], one["interval"], "") for name, one in found[kind].items()})
        assert table(page, f"MMIE by {kind}") == {
            name: ([column[name], str(one["scored"])], one["scored"] < 30) for name, one in found[kind].items()
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
    keys = {name: name.lower().replace(" ", "") for name in ladder}
    levels = {name: (level["levels"][key], level["sensitivity"][key]) for name, key in keys.items()}
    column = scores({name: (value, one["interval"], one["no_interval"]) for name, (value, one) in levels.items()})
    for name, (cells, _) in ladder.items():
        assert cells[0] == column[name]
        assert missing[name][0][0] == str(levels[name][1]["missing_rows"])
    modalities = table(page, "Levels by modality")
    assert page.query_selector("canvas[aria-label='Levels by modality']")
    ends = level["sensitivity"]["level2"]["modalities"]
    column = scores(
        {
            name: (one["level2"], ends[name]["interval"], ends[name]["no_interval"])
            for name, one in level["modalities"].items()
        }
    )
    for name, one in level["modalities"].items():
        cells, is_few = modalities[name]
        assert cells[0] == column[name]
        assert cells[-1] == f"{one['supported']} of {one['total']}" and is_few == (one["supported"] < 30)
    tasks = table(page, "Tasks of General-Bench")
    assert len(tasks) == len(found["tasks"]) == 45


def test_the_first_page_and_what_a_run_rests_on(demos: Demos, watched: Watched) -> None:
    page = watched.open(demos.report)
    numbers = {
        name: (page.get_attribute(f"{row} span[title]:has(.score)", "title"), page.inner_text(f"{row} .score b"))
        for name, run in RUNS.items()
        if (row := f"[aria-label=Runs] tr:has-text('{run}')")
    }
    overall = demos.documents["mega"]["megabench_breakdown"]["demo"]["intervals"]["model_summary"]["overall"]
    assert numbers["mega"] == ("MEGA-Bench, demo set: overall", shown(overall["score"]))
    average = demos.documents["mmie"]["mmie_report"]["mmie"]["categories"]["AVG"]["mean"]
    assert numbers["mmie"] == ("MMIE, mmie: AVG", shown(average))
    levels = demos.documents["general"]["general_bench_report"]["general_bench_demo"]["general_level"]["levels"]
    assert numbers["general"] == ("general_bench_demo: level 2", shown(levels["level2"]))
    page = open_run(watched, demos, "mmie", "details")
    outcome = demos.documents["mmie"]["outcomes"]["mmie"]
    row = page.inner_text("section:has(h2:text-is('Outcomes')) tbody tr").split()
    assert row[1:3] == [str(outcome["requested"]), str(outcome["scored"])]
    histogram = page.inner_text("section:has(h2:has-text('Latency')) .card")
    assert f"n = {outcome['requested']}" in histogram
    record = json.loads(next((demos.report.parent / "mmie").rglob("run.json")).read_text())
    assert page.inner_text("h3:has-text('continues') + pre") == record["command"]

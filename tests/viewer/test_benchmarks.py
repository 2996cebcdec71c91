"""The breakdowns of the four benchmarks, as their results documents state them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import lmms_eval.viewer
from lmms_eval.cli.main import main
from lmms_eval.results.breakdown import FEW
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import Watched
from tests.viewer.test_demos import check_milebench


def keyword(score: float, count: int) -> dict[str, Any]:
    return {"count": count, "score": score, "ci95": [score - 0.1, score + 0.1], "fixed": score, "small_n": count < 10}


PARTS: dict[str, Any] = {
    "prompt_variants": {
        "mmmu": {
            "variants": {},
            "metrics": {
                "acc,none": {
                    "n": 40,
                    "missing": 2,
                    "scores": {
                        "as given": {"score": 0.625, "low": 0.5, "high": 0.75, "method": "wilson"},
                        "terse": {"score": 0.375, "low": None, "high": None, "reason": "n = 1"},
                    },
                    "mean": 0.5,
                    "these": {"low": 0.4375, "high": 0.5625, "method": "t"},
                    "like_these": {"low": None, "high": None, "reason": "fewer than 3 prompts"},
                    "spread": {"sd": 0.1768, "lowest": "terse", "highest": "as given"},
                    "variance": {"questions": 0.1, "prompts": 0.03, "rest": 0.12},
                }
            },
        }
    },
    "megabench_breakdown": {
        "full": {
            "gaps": ["core: 3 of 440 tasks"],
            "intervals": {
                "model_summary": {"core": {"num_eval_tasks": 3, "score": 0.512, "ci95": [0.4, 0.6], "fixed": 0.5}},
                "keyword_stats": {"skills": {"Planning": keyword(0.25, 4)}, "app": {"Coding": keyword(0.75, 31)}},
            },
        }
    },
    "mmie_report": {
        "mmie": {
            "gaps": [],
            "categories": {"SA": {"official": 4.125, "interval": [3.5, 4.75], "scored": 24}},
            "tasks": {
                "mmie": {
                    "repeats": {"askings": 3, "n": 20, "weighted_kappa": 0.625, "krippendorff_alpha": 0.5},
                    "calibration": {"n": 9, "pearson": 0.25, "corrected": {"mean": 2.5, "interval": [1.5, 3.5]}},
                }
            },
        }
    },
    "general_bench_report": {
        "general_bench": {
            "general_level": {
                "levels": {"level2": 4.35, "level3": 3.5},
                "level_reached": 3,
                "modalities": {
                    name: {"supported": 7, "total": 99, "wins": 1, "level2": 8.5, "level3": 2.5}
                    for name in ("Image", "Video", "Audio")
                },
                "language": {"T": 115, "supported": 28, "wins": 27, "score": 24.35},
                "sensitivity": {
                    level: {
                        "interval": [1.71, 6.7], "no_interval": "", "missing_rows": 567, "if_at_specialist": 63.41,
                        "wins_needed": wins,
                        "modalities": {"Image": {"interval": [0.5, 9.5], "no_interval": ""},
                                       "Video": {"interval": None, "no_interval": "0 in every draw"}},
                    }
                    for level, wins in (("level2", 0), ("level3", None))
                },
            },
            "tasks": [
                {"task": f"{name}_x", "measure": "acc", "status": "scored", "official": value, "strict": value,
                 "stderr": 1.0, "unit": "percent", "answered": 20, "expected": 20}
                for name, value in (("image_comprehension", 40), ("video_comprehension", 30), ("nlp", 62.5))
            ],
        }
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def reports(quiz_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a MileBench run, and of one whose document holds the parts of the other benchmarks."""
    folder = tmp_path_factory.mktemp("benchmarks")
    arguments = ["--model", "baseline", "--model_args", "strategy=constant,text=A", "--tasks", "milebench_demo"]
    assert main(["eval", *arguments, "--output_path", str(folder / "mile"), "--log_samples"]) == 0
    shutil.copytree(quiz_runs[0], folder / "quiz")
    (results,) = (folder / "quiz").glob("*_results.json")
    results.write_text(json.dumps(json.loads(results.read_text()) | PARTS))
    write_report([str(folder / "mile"), str(folder / "quiz")], folder / "report", ReportOptions(media="none"))
    return folder / "report"


def words(element: Any) -> str:
    return " ".join(element.inner_text().split())


def test_milebench_has_a_curve_and_needle_grids(reports: Path, watched: Watched) -> None:
    page = watched.open(reports, "#/baseline%40mile?page=breakdown")
    section = page.wait_for_selector("section:has(h2:has-text('MileBench'))")
    text = words(section)
    assert "Score by number of pictures" in text
    assert "29.46 11.45 – 57.44" in text
    assert "TextNeedleInAHaystack Depth of the needle" in text
    assert "no interval n = 1" in text
    assert page.query_selector("section canvas[aria-label='Score by number of pictures']")


def test_numbers_of_a_demonstration_are_those_of_its_document(reports: Path, watched: Watched) -> None:
    """The other demonstrations: ``test_demos.py``, in ``make test-slow``."""
    page = watched.open(reports, "#/baseline%40mile?page=breakdown")
    page.wait_for_selector("section:has(h2:has-text('MileBench'))")
    (document,) = (reports.parent / "mile").rglob("*_results.json")
    check_milebench(page, json.loads(document.read_text()))


def test_pages_mark_few_documents_as_the_cells_do() -> None:
    source = (Path(lmms_eval.viewer.__file__).parent / "web/src/amounts.ts").read_text()
    assert f"const FEW = {FEW};" in source


def test_megabench_shows_its_dimensions_at_once(reports: Path, watched: Watched) -> None:
    page = watched.open(reports, "#/baseline%40quiz?page=breakdown")
    section = page.wait_for_selector("section:has(h2:has-text('MEGA-Bench'))")
    text = words(section)
    assert "0.5120 0.4000 – 0.6000" in text
    assert "Skills" in text and "Application" in text
    few, many = (section.query_selector(f"tr:has-text('{name}')") for name in ("Planning", "Coding"))
    assert "0.2500 0.1500 – 0.3500 4*" in words(few)
    assert few.query_selector(".few-mark").get_attribute("title") == "fewer than 30"
    assert words(many).endswith(" 31")
    assert "* fewer than 30 tasks" in text


def test_prompts_have_bars_their_spread_and_variance(reports: Path, watched: Watched) -> None:
    page = watched.open(reports, "#/baseline%40quiz?page=breakdown")
    section = page.wait_for_selector("section:has(h2:has-text('Prompts'))")
    text = words(section)
    assert "as given 0.6250 0.5000 – 0.7500 40" in text
    assert "terse 0.3750 n = 1 40" in text
    assert "mean, these prompts 0.5000 0.4375 – 0.5625 40" in text
    assert "mean, prompts like these 0.5000 fewer than 3 prompts 40" in text
    assert "SD of the prompts 0.1768, from terse to as given. Variance: questions 0.1000, prompts 0.0300" in text
    assert "2 documents without a number with one of the prompts left out" in text
    plots = page.query_selector_all("[role=region][aria-label='acc by prompt'] svg.plot")
    assert len(plots) == 4 and all(plot.query_selector("rect") for plot in plots)


def test_mmie_tells_how_far_the_judge_agrees(reports: Path, watched: Watched) -> None:
    page = watched.open(reports, "#/baseline%40quiz?page=breakdown")
    text = words(page.wait_for_selector("section:has(h2:has-text('MMIE'))"))
    assert "3.5000 – 4.7500" in text
    assert "weighted kappa 0.6250 20*" in text
    assert "mean corrected for the judge's bias 2.5000 1.5000 – 3.5000 9*" in text


def test_general_bench_has_levels_with_intervals(reports: Path, watched: Watched) -> None:
    page = watched.open(reports, "#/baseline%40quiz?page=breakdown")
    section = page.wait_for_selector("section:has(h2:has-text('General-Bench'))")
    text = words(section)
    assert "4.3500 1.7100 – 6.7000 21*" in text
    assert "Level 3 567 63.41 out of reach" in text
    assert "8.5000 0.5000 – 9.5000" in text
    assert "8.5000 0 in every draw" in text
    assert page.query_selector("section canvas[aria-label='Levels by modality']")


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a run with pictures, a video and a sound."""
    folder = tmp_path_factory.mktemp("media")
    names = "megabench_demo,general_bench_demo_audio_comprehension_speech_command"
    arguments = ["--model", "baseline", "--tasks", names, "--output_path", str(folder / "out"), "--log_samples"]
    assert main(["eval", *arguments]) == 0
    write_report([str(folder / "out")], folder / "report", ReportOptions())
    return folder / "report"


def test_boxes_are_drawn_over_the_picture(media: Path, watched: Watched) -> None:
    page = watched.open(media, "#/baseline/megabench_demo/30")
    box = page.wait_for_selector("svg rect.answer", state="attached").bounding_box()
    picture = page.query_selector("figure img").bounding_box()
    assert box["x"] == pytest.approx(picture["x"] + 0.1 * picture["width"], abs=3)
    assert box["width"] == pytest.approx(0.2 * picture["width"], abs=6)
    assert page.evaluate("document.querySelectorAll('svg rect.reference').length") == 2


def test_frames_of_a_video_with_their_times_and_a_sound(media: Path, watched: Watched) -> None:
    page = watched.open(media, "#/baseline/megabench_demo/40")
    page.wait_for_selector(".strip img")
    assert page.inner_text(".strip span:first-child").strip() == "0 s"
    assert "frames seen by the model" in page.inner_text("figure.video")
    page = watched.open(media, "#/baseline/general_bench_demo_audio_comprehension_speech_command/0")
    sound = page.wait_for_selector("audio", state="attached")
    seconds = "sound => new Promise(done => { sound.onloadedmetadata = () => done(sound.duration); sound.load(); })"
    assert sound.evaluate(seconds) > 0

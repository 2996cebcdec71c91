"""``--sample N:neyman``: a sample over strata of earlier scores, whose chances the value and its interval undo."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.evaluation.drawing import DRAW
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.stats.finite import DrawnScores, weighted_interval
from lmms_eval.utils.numbers import SHARES
from tests.cases import for_each
from tests.evaluation import kit

DOCUMENTS = 200
EXACT = "exact_match,none"


def is_right(seed: int, doc_id: int) -> bool:
    """Documents from 150 on are hard to predict, the others mostly easy."""
    chance = 0.5 if doc_id >= 150 else 0.97
    return random.Random(f"{seed}: {doc_id}").random() < chance


def solves(seed: int) -> Callable[[Request], Response]:
    return lambda request: kit.right(request) if is_right(seed, request.doc_id) else Response(request.id, text="no")


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., RunReport]:
    kit.tasks(tmp_path, DOCUMENTS)

    def begin(out: str, seed: int = 9, **options: Any) -> RunReport:
        chosen = {"model": "told", "log_samples": True, "output_path": str(tmp_path / out), **options}
        return run(kit.config(tmp_path, **chosen), kit.Told(solves(seed)))

    return begin


def earlier(tmp_path: Path, seed: int, changes: dict[str, Any] | None = None) -> str:
    """Write the samples of an earlier run, and return its path."""
    scores = [float(is_right(seed, doc_id)) for doc_id in range(DOCUMENTS)]
    return str(kit.samples(tmp_path / f"earlier{seed}.jsonl", scores, **(changes or {})))


def test_documents_come_from_strata_and_the_value_weights_them_by_size(
    start: Callable[..., RunReport], tmp_path: Path
) -> None:
    anchors = ",".join(earlier(tmp_path, seed) for seed in (1, 2, 3))
    report = start("now", sample="60:neyman", anchors=anchors)
    entry = report.results["sampled"][kit.NAME]
    assert (entry["design"], entry["asked"], entry["of"], entry["runs"]) == ("neyman", 60, 200, anchors.split(","))
    assert len(entry["strata"]) >= 2 and sum(one["of"] for one in entry["strata"].values()) == DOCUMENTS
    lowest, *_, highest = entry["strata"].values()
    assert lowest["asked"] / lowest["of"] > 1.2 * highest["asked"] / highest["of"]
    (folder,) = kit.run_folders(tmp_path / "now")
    kept = json.loads((folder / DRAW).read_text())["draws"][kit.NAME]
    assert kept["digest"] == entry["digest"]
    strata = [
        DrawnScores(*[[float(is_right(9, doc_id)) for doc_id in doc_ids]] * 2, size)
        for _, size, doc_ids in kept["strata"]
    ]
    found = weighted_interval(strata, SHARES)
    assert isinstance(found, tuple)
    value, interval = found
    assert report.results["results"][kit.NAME][EXACT] == pytest.approx(value)
    stated = report.results["intervals"][kit.NAME][EXACT]
    assert (stated["low"], stated["high"], stated["method"]) == (interval.low, interval.high, "combined strata")
    assert stated["estimand"] == entry["intervals"][EXACT]["estimand"] == "benchmark accuracy"
    assert report.results["results"][kit.NAME]["exact_match_stderr,none"] == "N/A"
    truth = sum(is_right(9, doc_id) for doc_id in range(DOCUMENTS)) / DOCUMENTS
    assert interval.low <= truth <= interval.high
    assert any("drawn by Neyman's allocation by seed 0 from" in line for line in report.lines)
    for name in ("earlier1.jsonl", "earlier2.jsonl", "earlier3.jsonl"):
        (tmp_path / name).unlink()
    again = rescore(tmp_path / "now", {"log_samples": True})  # needs no earlier run
    assert again.results["sampled"] == report.results["sampled"]
    assert again.results["results"] == report.results["results"]


def test_the_draw_is_part_of_the_run_key(start: Callable[..., RunReport], tmp_path: Path) -> None:
    first, second = earlier(tmp_path, 1), earlier(tmp_path, 2)
    keys = [start("now", sample="60:neyman", anchors=anchors).results["run_key"] for anchors in (first, second, first)]
    assert keys[0] == keys[2] != keys[1]
    whole = start("whole", sample="200:neyman", anchors=first)
    assert "sampled" not in whole.results


def test_a_failed_document_counts_from_end_to_end(start: Callable[..., RunReport], tmp_path: Path) -> None:
    anchors = earlier(tmp_path, 1)
    report = start("now", sample="60:neyman", anchors=anchors)
    (folder,) = kit.run_folders(tmp_path / "now")
    drawn = json.loads((folder / DRAW).read_text())["draws"][kit.NAME]["strata"][0][2][0]

    def fails(request: Request) -> Response:
        return Response.failure(request.id, "timeout", "-") if request.doc_id == drawn else solves(9)(request)

    chosen = {"model": "told", "output_path": str(tmp_path / "failing"), "error_budget": 0.1}
    failing = run(kit.config(tmp_path, **chosen, sample="60:neyman", anchors=anchors), kit.Told(fails))
    narrow, wide = (one.results["intervals"][kit.NAME][EXACT] for one in (report, failing))
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


@for_each(
    ("changes", "message"),
    [
        ({"exact_match": 1.0}, "the earlier scores are the same for all documents"),
        ({"exact_match": 7.0}, "lies from 0 to 1"),
        ({"doc_id": 900}, "no sample of the 200 documents"),
        ({"exact_match": None}, "no exact_match,none of any document"),
    ],
)
def test_what_makes_no_strata_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    kit.tasks(tmp_path, DOCUMENTS)
    anchors = earlier(tmp_path, 1, changes)
    model = kit.Told(solves(9))
    with pytest.raises(LmmsEvalError, match=message) as caught:
        run(kit.config(tmp_path, model="told", sample="60:neyman", anchors=anchors), model)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value) and model.asked == []


def test_too_few_documents_for_two_strata_are_refused(start: Callable[..., RunReport], tmp_path: Path) -> None:
    with pytest.raises(LmmsEvalError, match="no two parts with 8 documents each"):
        start("now", sample="12:neyman", anchors=earlier(tmp_path, 1))


def test_comparisons_leave_such_a_task_out(start: Callable[..., RunReport], tmp_path: Path) -> None:
    anchors = earlier(tmp_path, 1)
    start("now", sample="60:neyman", anchors=anchors)
    (file,) = (tmp_path / "now").glob(f"**/*_samples_{kit.NAME}.jsonl")
    with pytest.raises(DataError, match="drew documents with unequal chances"):
        read_runs([str(tmp_path / "now")])
    later = start("later", 8, baseline=str(file))
    assert "paired" not in later.results["results"][kit.NAME]
    assert not any(key.startswith("paired") for key in later.results["results"][kit.NAME])

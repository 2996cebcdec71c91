"""Differences of runs against how a run differs from itself."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.table import comparison_csv, comparison_json, comparison_text
from lmms_eval.compare.verdicts import CompareOptions, Difference
from lmms_eval.stats.repeats import rerun_noise
from lmms_eval.utils.numbers import SHARES
from tests.compare.runs import column, run, stopped, task

OPTIONS = CompareOptions(draws=200)
Z = NormalDist().inv_cdf(0.975)


def noisy(answers: float, high: float | None) -> dict[str, Any]:
    return {"noise_floor": {"quiz": {"scores": {"acc,none": {"answers": answers, "answers_high": high}}}}}


def repeated(error: float, low: float | None, high: float | None, n: int) -> dict[str, Any]:
    again = {"stderr": error, "low": low, "high": high}
    return {"variance": {"quiz": {"acc,none": {"n": n, "again": again}}}}


def made(name: str, right: int, document: Mapping[str, Any] | None, n: int = 100, **facts: Any) -> RunRows:
    rows = task([column([float(number < right) for number in range(n)], **facts)])
    return structs.replace(run(name, rows), results=document)


def row_of(first: RunRows, second: RunRows) -> Difference:
    (row,) = compare_runs([first, second], OPTIONS).pairs[0].rows
    return row


def test_error_half_width_and_interval_follow_from_both_variances() -> None:
    row = row_of(made("a", 70, noisy(0.02, 0.05)), made("b", 67, noisy(0.04, 0.07)))
    found = row.reruns
    assert found is not None and found.interval is not None
    assert found.error == pytest.approx(math.sqrt((0.02 + 0.04) / 100))
    assert found.half_width == pytest.approx(Z * found.error)
    assert found.half_width_high == pytest.approx(Z * math.sqrt((0.05 + 0.07) / 100))
    assert found.is_beyond is False
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (row.value - found.half_width_high, row.value + found.half_width_high)
    )


def test_beyond_needs_the_upper_end() -> None:
    inner, outer = row_of(made("a", 70, noisy(0.005, 0.01)), made("b", 66, None)), 0.04
    assert inner.reruns is not None and inner.reruns.half_width_high is not None
    assert inner.reruns.half_width < inner.reruns.half_width_high < outer
    assert inner.reruns.is_beyond is True
    within = row_of(made("a", 70, noisy(0.005, 0.03)), made("b", 66, None))
    assert within.reruns is not None and within.reruns.half_width < outer and within.reruns.is_beyond is False


def test_one_run_suffices_for_the_noise_but_not_for_the_interval() -> None:
    row = row_of(made("a", 70, None), made("b", 67, noisy(0.02, 0.05)))
    assert row.reruns is not None and row.reruns.error == pytest.approx(math.sqrt(2 * 0.02 / 100))
    assert row.reruns.interval is None
    assert row.reruns.no_interval == "a does not know how its answers vary (--repeat_share)"
    assert row_of(made("a", 70, None), made("b", 67, {})).reruns is None


def test_repeats_say_the_same_in_the_units_of_documents() -> None:
    n, error = 100, 1.5  # of a number in percent
    document = repeated(error, 70 - 2 * Z * error, 70 + 2 * Z * error, n)
    row = row_of(made("a", 70, document, scale=100.0), made("b", 67, document, scale=100.0))
    assert row.reruns is not None and row.reruns.error == pytest.approx(math.sqrt(2) * error / 100)
    assert row.reruns.half_width_high == pytest.approx(2 * row.reruns.half_width)


def test_without_an_upper_end_nothing_is_claimed() -> None:
    for document in (noisy(0.02, None), repeated(0.02, None, None, 100)):
        row = row_of(made("a", 70, document), made("b", 67, document))
        assert row.reruns is not None
        assert (row.reruns.half_width_high, row.reruns.is_beyond, row.reruns.interval) == (None, None, None)
        assert row.reruns.no_interval == "no range with two ends"
    assert row_of(made("a", 70, noisy("much", 1.0)), made("b", 67, {"noise_floor": 3})).reruns is None  # type: ignore[arg-type]


def test_runs_that_stopped_early_have_no_such_line() -> None:
    ids = list(map(str, range(100)))
    rows = [task([float(number < 70) for number in range(100)], ids=ids, early_stop=stopped(100, 400)) for _ in "ab"]
    runs = [structs.replace(run(name, one), results=noisy(0.02, 0.05)) for name, one in zip("ab", rows, strict=True)]
    assert row_of(*runs).reruns is None


def test_text_and_files() -> None:
    found = compare_runs([made("a", 70, noisy(0.02, 0.05)), made("b", 67, noisy(0.02, 0.05))], OPTIONS)
    text = comparison_text(found)
    assert (
        "  the same requests sent twice differ by SD 2.00 pp, in 95 % by at most 3.92 pp (upper end 6.20 pp): "
        "this difference is within rerun noise\n  if both were run again on this list: -3.20 pp to +9.20 pp"
    ) in text
    (line,) = csv.DictReader(io.StringIO(comparison_csv(found)))
    assert (line["beyond_rerun_noise"], float(line["rerun_error"])) == ("False", pytest.approx(0.02))
    assert float(line["rerun_low"]) == pytest.approx(-0.032, abs=1e-3)
    written = json.loads(comparison_json(found))["pairs"][0]["rows"][0]["reruns"]
    assert written["is_beyond"] is False and written["interval"]["method"] == "normal"
    plain = compare_runs([made("a", 70, None), made("b", 67, None)], OPTIONS)
    assert "run again" not in comparison_text(plain)
    (line,) = csv.DictReader(io.StringIO(comparison_csv(plain)))
    assert line["rerun_error"] == line["rerun_low"] == ""


def test_two_runs_of_one_server_are_within_rerun_noise() -> None:
    """A server whose answers to a question differ in 3 % of pairs."""
    generator = np.random.default_rng(5)
    replaced, n, beyond, held = (1 - math.sqrt(1 - 2 * 0.03)) / 2, 600, 0, 0
    usual = np.arange(n) % 3 > 0
    for _ in range(100):
        runs = []
        for name in "ab":
            first, second = (usual ^ (generator.random(n) < replaced) for _ in "12")
            pairs = list(zip(first[:60].astype(float).tolist(), second[:60].astype(float).tolist(), strict=True))
            noise = rerun_noise(pairs, SHARES)
            held += noise.scores.low <= 0.03 <= noise.scores.high
            rows = task(first.astype(float).tolist())
            runs.append(structs.replace(run(name, rows), results=noisy(noise.answers, noise.answers_high)))
        found = row_of(*runs).reruns
        assert found is not None
        beyond += found.is_beyond is True
    assert beyond <= 5 and held >= 188

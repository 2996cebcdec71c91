"""``--anchors``: scores of earlier runs make the interval of a random order narrower, and never wrong."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.engine.headline import Anchors, HeadlinePart, Prefix, RandomOrder
from lmms_eval.engine.looks import Looked
from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.evaluation.anchors import ANCHORS, KeptAnchors, read_anchors
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.utils.numbers import ScoreRange
from tests.evaluation import kit

DOCUMENTS = 300
HALF = 0.06


def is_right(seed: int, doc_id: int) -> bool:
    """Whether a run solves a document: easy ones nearly always, others by chance."""
    chance = random.Random(f"document {doc_id}").betavariate(0.2, 0.1)
    return random.Random(f"{seed}: {doc_id}").random() < chance


def solves(seed: int) -> Callable[[Request], Response]:
    return lambda request: kit.right(request) if is_right(seed, request.doc_id) else Response(request.id, text="no")


def earlier(tmp_path: Path, *seeds: int) -> str:
    """Write the samples of earlier runs, and return their paths as ``--anchors`` takes them."""
    scores = {seed: [float(is_right(seed, doc_id)) for doc_id in range(DOCUMENTS)] for seed in seeds}
    return ",".join(str(kit.samples(tmp_path / f"run{seed}.jsonl", scores[seed])) for seed in seeds)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., RunReport]:
    kit.tasks(tmp_path, DOCUMENTS)

    def begin(out: str, model: int = 0, **options: Any) -> RunReport:
        chosen = {"model": "told", "log_samples": True, "output_path": str(tmp_path / out), **options}
        return run(kit.config(tmp_path, **chosen), kit.Told(solves(model)))

    return begin


def of_runs(tmp_path: Path, *names: str) -> str:
    return ",".join(str(tmp_path / name) for name in names)


def test_a_run_with_anchors_ends_earlier_and_names_them(start: Callable[..., RunReport], tmp_path: Path) -> None:
    whole = start("now", 9).results["results"][kit.NAME]["exact_match,none"]
    names = earlier(tmp_path, 1, 2, 3)
    plain = start("plain", 9, until=f"halfwidth<={HALF}").results["early_stop"][kit.NAME]
    report = start("anchored", 9, until=f"halfwidth<={HALF}", anchors=names)
    stop, anchors = report.results["early_stop"][kit.NAME], report.results["anchors"][kit.NAME]
    assert stop["asked"] < 0.8 * plain["asked"]
    assert stop["interval"]["low"] <= whole <= stop["interval"]["high"]
    assert anchors["method"] == stop["interval"]["method"] == "betting with anchors"
    assert report.results["intervals"][kit.NAME]["exact_match,none"]["estimand"] == "benchmark accuracy"
    assert anchors["runs"] == names.split(",") and anchors["r_squared"] > 0.3
    assert anchors["fit"] == "mean" and anchors["cross_validated"] > 0.2
    assert (anchors["known"], anchors["of"], anchors["asked"]) == (DOCUMENTS, DOCUMENTS, stop["asked"])
    assert stop["interval"]["low"] <= anchors["estimate"] <= stop["interval"]["high"]
    assert any(f"{anchors['estimate']:.4f} with --anchors" in line for line in report.lines)
    (folder,) = kit.run_folders(tmp_path / "anchored")
    kept = KeptAnchors.read(folder)
    assert kept is not None and [one.digest for one in kept.anchors.values()] == [anchors["digest"]]
    again = rescore(tmp_path / "anchored", {"log_samples": True})
    assert again.results["anchors"] == report.results["anchors"]
    assert again.results["early_stop"][kit.NAME] == stop


def test_a_resumed_run_keeps_the_anchors_of_its_first_start(start: Callable[..., RunReport], tmp_path: Path) -> None:
    names = earlier(tmp_path, 1, 2)
    first = start("out", 9, until=f"halfwidth<={2 * HALF}", anchors=names)
    kit.samples(tmp_path / "run2.jsonl", [float(is_right(5, doc_id)) for doc_id in range(DOCUMENTS)])
    second = start("out", 9, until=f"halfwidth<={HALF}", anchors=names)
    digests = [report.results["anchors"][kit.NAME]["digest"] for report in (first, second)]
    assert digests[0] == digests[1]
    assert first.results["early_stop"][kit.NAME]["asked"] < second.results["early_stop"][kit.NAME]["asked"]
    with pytest.raises(LmmsEvalError, match="this run began with those of"):
        start("out", 9, until=f"halfwidth<={HALF}", anchors=earlier(tmp_path, 1))
    whole = start("out", 9, order="random", anchors=names)
    assert whole.results["state"] == "complete"
    estimate = whole.results["anchors"][kit.NAME]["estimate"]
    assert math.isclose(estimate, whole.results["results"][kit.NAME]["exact_match,none"])
    (folder,) = kit.run_folders(tmp_path / "out")
    (folder / ANCHORS).write_bytes(b"{")
    with pytest.raises(UsageError, match="damaged"):
        KeptAnchors.read(folder)


def test_bad_anchors_end_the_run_before_anything_is_asked(start: Callable[..., RunReport], tmp_path: Path) -> None:
    start("whole", 1)
    start("some", 1, limit=20)
    start("early", 1, until="halfwidth<=0.2")
    (file,) = (tmp_path / "whole").glob(f"**/*_samples_{kit.NAME}.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]

    def file_of(name: str, change: dict[str, Any]) -> None:
        (tmp_path / name).write_text("".join(json.dumps({**row, **change}) + "\n" for row in rows))

    file_of("20260101_000000_samples_other.jsonl", {})
    file_of("changed.jsonl", {"doc_hash": "0" * 64})
    file_of("wide.jsonl", {"exact_match": 7.0})
    file_of("unscored.jsonl", {"exact_match": None})
    early = sorted((tmp_path / "early").glob(f"**/*_samples_{kit.NAME}.jsonl"))[0]
    (tmp_path / "first.jsonl").write_bytes(early.read_bytes())
    cases = {
        "nowhere": "no run",
        "20260101_000000_samples_other.jsonl": "samples of other, not of bench_text",
        "changed.jsonl": "another content",
        "wide.jsonl": "lies from 0 to 1",
        "unscored.jsonl": "no exact_match,none of any document",
        "early": "stopped early in this run's random order",
        "first.jsonl": "stopped early in this run's random order",
        "empty": "no samples of",
    }
    (tmp_path / "empty").mkdir()
    for name, says in cases.items():
        model = kit.Told(solves(9))
        options = {"model": "told", "output_path": str(tmp_path / "bad"), "until": "halfwidth<=0.1"}
        with pytest.raises(LmmsEvalError, match=says) as caught:
            run(kit.config(tmp_path, **options, anchors=of_runs(tmp_path, name)), model)
        assert caught.value.exit_code == 2 and "\n" not in str(caught.value) and model.asked == []
    with pytest.raises(LmmsEvalError, match="no sample of the 280 documents"):
        start("bad", 9, until="halfwidth<=0.1", anchors=of_runs(tmp_path, "some"), offset=20)
    with pytest.raises(LmmsEvalError, match="--order random"):
        start("bad", 9, anchors=of_runs(tmp_path, "whole"))
    part = HeadlinePart(kit.NAME, "exact_match", "none", ScoreRange(0, 1), baseline={0: 1.0})
    with pytest.raises(LmmsEvalError, match="no number of this run"):
        read_anchors(of_runs(tmp_path, "whole"), [part], {}, RandomOrder())
    start("begun", 9, until="halfwidth<=0.2")
    with pytest.raises(LmmsEvalError, match="began without them"):
        start("begun", 9, until="halfwidth<=0.1", anchors=of_runs(tmp_path, "whole"))
    # Another order: what is known of its documents does not depend on this run's.
    assert start("seeded", 9, seed="3", until="halfwidth<=0.1", anchors=of_runs(tmp_path, "early")).exit_code == 0


@pytest.mark.parametrize("is_macro", [False, True], ids=["one sequence", "strata"])
@pytest.mark.parametrize("helps", [True, False], ids=["good anchors", "bad anchors"])
def test_the_interval_holds_at_all_looks_whatever_the_anchors(is_macro: bool, helps: bool) -> None:
    total, draws, right = 120, 40, 0
    source = random.Random(7)
    scores = [float(source.random() < 0.7) for _ in range(total)]
    shares = {doc: 0.1 + 0.8 * (score if helps else 1 - score) for doc, score in enumerate(scores)}
    strata = {doc: str(doc % 3 // 2) for doc in range(total)} if is_macro else None
    names = [strata[doc] if strata else "" for doc in range(total)]
    truth = statistics.fmean(
        statistics.fmean(score for score, name in zip(scores, names, strict=True) if name == wanted)
        for wanted in sorted(set(names))
    )
    anchors = Anchors(("earlier",), shares, total)
    part = HeadlinePart("t", "acc", "none", ScoreRange(0, 1), strata=strata, is_macro=is_macro, anchors=anchors)
    for _ in range(draws):
        order = source.sample(range(total), total)
        missing = order[5]
        prefix, is_held = Prefix([part], {"t": order}), True
        for stop in range(10, total + 1, 22):
            done = set(order[:stop])

            def find(_part: HeadlinePart, doc: int, done: set[int] = done, missing: int = missing) -> float | None:
                if doc not in done:
                    raise KeyError(doc)
                return None if doc == missing else scores[doc]

            prefix.advance(find)
            interval = prefix.interval()
            is_held &= interval.low - 1e-9 <= truth <= interval.high + 1e-9
        right += is_held
        last = prefix.interval()
        width = 1 / (2 * names.count(names[missing])) if is_macro else 1 / total
        assert math.isclose(last.high - last.low, width, abs_tol=1e-9)
    assert right >= 0.95 * draws - 3 * math.sqrt(0.95 * 0.05 * draws)


def test_at_the_last_document_the_ordinary_interval_is_shown() -> None:
    scores = [1.0, 0.0, 1.0, 1.0] * 5
    anchors = Anchors(("earlier",), {doc: 0.9 * score for doc, score in enumerate(scores)}, 20)
    parts = [HeadlinePart("t", "acc", "none", ScoreRange(0, 1), anchors=one) for one in (None, anchors)]
    prefixes = [Prefix([part], {"t": range(20)}) for part in parts]
    for prefix in prefixes:
        prefix.advance(lambda _, doc: scores[doc])
    assert prefixes[0].shown_interval() == prefixes[1].shown_interval()
    values = [prefix.value() for prefix in prefixes]
    assert values[0] == 0.75 and math.isclose(values[1] or 0.0, 0.75)
    looked = Looked(parts[1], range(20), 20, dict(enumerate(scores)))
    mean = looked.anchored()
    assert mean is not None and math.isclose(mean.r_squared or 0.0, 0.99)
    assert looked.gives(0.75) and Looked(parts[0], range(20), 20, {}).anchored() is None
    equal = Looked(parts[1], range(20), 4, dict.fromkeys((0, 2, 3), 1.0)).anchored()
    assert equal is not None and equal.r_squared is None

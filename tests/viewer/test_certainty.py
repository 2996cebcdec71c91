"""The section on certainty of a run's page: parts of results documents, and real runs in headless Chromium."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.viewer.certainty import LIKE_THESE, LIST, certainty, estimand_of
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.cases import for_each
from tests.viewer.conftest import HOSTILE, Watched
from tests.viewer.test_comparison import content

ENDS = {"low": 0.2, "high": 0.6, "method": "wilson", "estimand": "generalised accuracy"}
ON_LIST = {"low": 0.3, "high": 0.5, "method": "betting", "estimand": "benchmark accuracy"}
NONE = {"low": None, "high": None, "reason": "no repeats of the judge"}


def document(value: float = 0.4, interval: Mapping[str, Any] = ENDS, **parts: Any) -> dict[str, Any]:
    """Return a results document with one task; ``parts`` are entries of the task."""
    return {
        "results": {"quiz": {"acc,none": value}},
        "intervals": {"quiz": {"acc,none": interval}},
        "higher_is_better": {"quiz": {"acc": True}},
        **{key: {"quiz": entry} for key, entry in parts.items()},
    }


def parts_of(found: Mapping[str, Any]) -> dict[str, Any]:
    return {part["title"]: part for part in certainty(found)["tasks"].get("quiz", [])}


def intervals(part: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["name"], one["low"], one["high"], one["about"]) for one in part["numbers"]]


@for_each(
    ("interval", "about"),
    [
        (ENDS, LIKE_THESE),
        (ON_LIST, LIST),
        ({"low": 0, "high": 1, "method": "betting with anchors"}, LIST),  # older results state no estimand
        ({"low": 0, "high": 1, "method": "empirical bernstein", "estimand": ["x"]}, LIST),
        ({"low": 0, "high": 1}, LIKE_THESE),
        ({"low": None, "high": None, "reason": "n = 1"}, ""),
        ({}, ""),
    ],
)
def test_an_interval_says_what_it_is_about(interval: Mapping[str, Any], about: str) -> None:
    assert estimand_of(interval) == about


def test_a_plain_run_has_no_section() -> None:
    assert certainty(document(clusters={"by": "none", "count": 9, "documents": 9})) == {"lines": [], "tasks": {}}
    assert certainty({}) == {"lines": [], "tasks": {}}


def test_sources_of_variance_are_shares_with_an_interval_for_each_question() -> None:
    again = {"stderr": 0.05, "low": 0.35, "high": 0.45, "method": "wilson, effective n"}
    row = {"n": 50, "questions": 0.06, "answers": 0.02, "judge": None}
    row |= {"like_these": ENDS | {"stderr": 0.1}, "again": again, "rejudged": NONE | {"stderr": None}}
    found = parts_of(document(variance={"acc,none": row}) | {"judge": {"model": "jury"}})["Sources of variance"]
    expected = "75 % of the variance of one answer's score (acc) comes from questions, 25 % from sampling the answers."
    assert found["sentence"] == expected
    assert [(one["name"], one["value"]) for one in found["shares"]] == [
        ("questions", 0.06), ("sampling the answers", 0.02),
    ]  # fmt: skip
    assert intervals(found) == [("acc", 0.2, 0.6, LIKE_THESE), ("acc", 0.35, 0.45, "this list, if run again")]
    assert found["notes"] == ["Without repeats of the judge, the variance of verdicts counts as that of the answers."]


@for_each(
    "row",
    [
        {"questions": 0.1, "answers": None, "judge": None},  # nothing to divide
        {"questions": 0.0, "answers": 0.0, "judge": 0.0},
        {"questions": "much", "answers": [1]},
        None,
    ],
)
def test_variance_that_cannot_be_divided_is_not_shown(row: Any) -> None:
    assert parts_of(document(variance={"acc,none": row})) == {}


def test_a_sample_has_an_interval_for_the_list_and_one_for_questions_like_these() -> None:
    sampled = {"design": "stratified", "seed": 3, "asked": 150, "of": 4000, "intervals": {"acc,none": ON_LIST}}
    found = parts_of(document(sampled=sampled))["Random sample"]
    assert found["sentence"] == "150 of 4,000 documents, drawn at random by strata by seed 3."
    assert intervals(found) == [("acc", 0.3, 0.5, LIST), ("acc", 0.2, 0.6, LIKE_THESE)]


@for_each(
    ("low", "high", "higher", "verdict"),
    [
        (0.1, 0.4, True, "ahead on this list"),
        (-0.4, -0.1, True, "behind on this list"),
        (-0.4, -0.1, False, "ahead on this list"),
        (-0.1, 0.1, True, "cannot tell"),
    ],
)
def test_a_run_that_stopped_early_is_ahead_on_the_list_and_never_better(
    low: float, high: float, higher: bool, verdict: str
) -> None:
    difference = {"low": low, "high": high, "method": "betting", "level": 0.95}
    stop = {"rule": "decided:old", "asked": 30, "of": 400, "interval": ON_LIST, "difference": difference}
    whole = document(interval=ON_LIST, early_stop=stop) | {"higher_is_better": {"quiz": {"acc": higher}}}
    found = parts_of(whole)["Stopped early"]
    assert found["sentence"] == "30 of 400 documents count: the run stopped once decided:old was met."
    assert intervals(found) == [("acc", 0.3, 0.5, LIST), ("difference from the baseline", low, high, LIST)]
    assert found["numbers"][1]["verdict"] == verdict


def test_anchors_name_the_estimate_what_they_explain_and_what_was_not_asked() -> None:
    anchors = {"metric": "acc", "filter": "none", "runs": ["a", "b"], "known": 400, "of": 400, "asked": 187}
    anchors |= {"estimate": 0.45, "r_squared": 0.503, "method": "betting with anchors"}
    stop = {"rule": "halfwidth<=0.1", "asked": 187, "of": 400, "interval": ON_LIST}
    parts = parts_of(document(interval=ON_LIST, anchors=anchors, early_stop=stop))
    assert parts["Stopped early"]["numbers"] == []  # the interval is about the estimate, not about the mean
    found = parts["Anchors"]
    assert "the scores of 2 earlier runs, which explain 50 % of the variance (R² = 0.50)" in found["sentence"]
    assert intervals(found)[0] == ("acc, estimate", 0.3, 0.5, LIST)
    assert found["numbers"][0]["value"] == 0.45
    assert found["notes"] == ["213 documents were not asked.", "Earlier runs: a, b"]


def test_human_scores_correct_the_judge() -> None:
    scores = {"metric": "acc,none", "judge": 0.4, "corrected": 0.35, "labels": 60, "documents": 300}
    scores |= {"interval": ENDS | {"low": 0.25}, "on_list": ON_LIST, "drawn": "taken as random"}
    scores |= {"agreement": {"n": 60, "bias": 0.05, "pearson": None}}
    found = parts_of(document(human_scores=scores))["Human scores"]
    assert found["sentence"] == "60 human scores of 300 documents correct the judge's score (acc)."
    assert intervals(found) == [
        ("corrected", 0.25, 0.6, LIKE_THESE),
        ("corrected", 0.3, 0.5, LIST),
        ("by the judge alone", 0.2, 0.6, LIKE_THESE),
    ]
    assert found["notes"][0] == "The labelled documents are taken as drawn at random."
    assert found["notes"][1].endswith("differs from people's by +0.0500.")


def test_the_noise_floor_is_the_share_that_changes_if_run_again() -> None:
    changed = {"n": 20, "changed": 3, "share": 0.15, "low": 0.03, "high": 0.38}
    found = parts_of(
        document(noise_floor={"asked": 21, "answered": 20, "answers": changed, "scores": {"acc,none": changed}})
    )["Noise floor"]
    assert found["sentence"].startswith("21 documents were asked a second time with the same requests; 20 have both")
    assert intervals(found) == [
        (f"share of changed {name}", 0.03, 0.38, "this list, if run again") for name in ("answers", "acc")
    ]


def test_reducers_follow_the_metric_that_they_reduce() -> None:
    whole = document()
    names = ("acc", "acc_pass@4", "acc_maj@8", "acc_pass^2", "acc_passed", "f1_mean@4")
    whole["results"]["quiz"] = {f"{name},none": 0.4 for name in names}
    whole["intervals"]["quiz"] = {f"{name},none": ENDS for name in names}
    found = parts_of(whole)["Several answers to a document"]
    assert [one["name"] for one in found["numbers"]] == [
        "acc", "acc pass@4", "acc maj@8", "acc pass^2", "f1", "f1 mean@4",
    ]  # fmt: skip


def test_missing_documents_clusters_and_first_documents() -> None:
    bounds = {"acc,none": {"n": 19, "low": 0.3, "high": 0.7, "reason": ""}}
    clusters = {"by": "column page", "count": 88, "documents": 400, "effective": 20.87}
    whole = document(outcomes={"n": {"acc,none": 381}, "missing_bounds": bounds}, clusters=clusters)
    parts = parts_of(whole | {"n-samples": {"quiz": {"original": 900, "effective": 400}}, "config": {"limit": 400}})
    assert parts["Documents without a score"]["sentence"].startswith("19 of 400 documents have no score.")
    assert intervals(parts["Documents without a score"]) == [("acc", 0.3, 0.7, LIKE_THESE)]
    expected = "Intervals are over 88 clusters (400 documents) by the column page. They allow at most the certainty of"
    assert parts["Clusters"]["sentence"] == f"{expected} 20.9 clusters of one size."
    assert parts["First documents only"]["sentence"].startswith("The first 400 of 900 documents (--limit).")
    media = {"by": "first medium", "count": 2, "documents": 4, "media": "sent_media"}  # as of an older version
    assert parts_of(document(clusters=media))["Clusters"]["sentence"] == (
        "Intervals are over 2 clusters (4 documents) by the first medium of a document."
    )


def test_differences_from_a_baseline_and_losses_in_controls_have_both_ends() -> None:
    paired = {"baseline": "old", "unit": "percent", "difference": 1.5, "ci_lower": -3.0, "ci_upper": 6.0}
    gap = {"score": 0.1, "plain": 0.4, "gap": 0.3, "interval": ENDS, "p": 0.00001, "n": 20}
    whole = document(paired={"acc,none": paired | {"pvalue": 0.5, "n": 381}})
    whole["controls"] = {"quiz": {"chance": {"uniform": 0.25}, "no-media": {"acc,none": gap, "f1,none": gap}}}
    found, parts = certainty(whole), parts_of(whole)
    (row,) = parts["Against the baseline"]["numbers"]
    assert (row["value"], row["low"], row["high"], row["unit"], row["note"]) == (1.5, -3.0, 6.0, "pp", "p = 0.5000")
    assert parts["Against the baseline"]["sentence"] == "Difference from old, 381 documents that both runs have."
    depending = document(paired={"acc,none": paired | {"pvalue": 0.01, "n": 381, "depends": "depends on 3 documents"}})
    (row,) = parts_of(depending)["Against the baseline"]["numbers"]
    assert row["note"] == "p = 0.0100 (depends on 3 documents)"
    control = parts["Controls"]["numbers"][0]
    assert (control["low"], control["high"], control["note"]) == (0.2, 0.6, "p <0.0001*")
    assert found["lines"] == [
        "Gap_P is of each row alone; corrected over all 2 rows (Holm), 2 gaps differ from 0 at 0.05"
    ]


@for_each(
    ("until", "count"),
    [("decided:0.5", 2), ("decided:0.5; quiz: decided:0.7", 2), ("halfwidth<=0.1", 0), ("nonsense", 0), (7, 0)],
)
def test_decisions_of_several_tasks_are_counted_together(until: Any, count: int) -> None:
    samples = {"quiz": {}, "other": {}, "quiz@no-media": {}}
    lines = certainty({"config": {"resolved_cli_args": {"until": until}}, "n-samples": samples})["lines"]
    assert [line.split(" is wrong")[0] for line in lines] == [f"decided: each of {count} decisions"] * (count > 0)


@for_each("entry", [None, 3, "text", [], {"acc,none": 5}, {"intervals": 4, "asked": 1, "of": "x", "n": {}}])
def test_parts_of_another_form_are_passed_over(entry: Any) -> None:
    keys = (
        "variance",
        "sampled",
        "early_stop",
        "anchors",
        "human_scores",
        "clusters",
        "outcomes",
        "paired",
        "controls",
        "noise_floor",
    )
    assert certainty(document(**dict.fromkeys(keys, entry)))["tasks"] == {}


TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: docs.jsonl}}}}
test_split: test
doc_to_text: question
doc_to_target: answer
cluster_key: "{key}"
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repeated answers to clustered questions, and a run that stopped early; names are hostile."""
    folder, draw = tmp_path_factory.mktemp("certain"), random.Random(1)
    colours, key = ("red", "blue", "green"), HOSTILE[1]
    docs = [{"question": f"{n}?", "answer": draw.choice(colours), key: n // 5} for n in range(60)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (folder / "pages.yaml").write_text(TASK.format(name="pages", key=key))
    common = ["eval", "--model", "baseline", "--tasks", "pages", "--include_path", str(folder), "--log_samples"]
    chosen = ["--model_args", f"strategy=random_choice,options={'|'.join(colours)}", "--repeats", "4"]
    repeated = [*common, *chosen, "--reduce", "pass@2", "--output_path", str(folder / "repeated")]
    rule = ["--until", "decided:0.5", "--model_args", "strategy=gold", "--output_path", str(folder / "early")]
    assert [main(repeated), main([*common, *rule])] == [0, 0]
    write_report([str(folder / "repeated"), str(folder / "early")], folder / "report", ReportOptions())
    return folder / "report"


def test_what_is_redacted_is_in_no_sentence(report: Path, tmp_path: Path) -> None:
    run = str(report.parent / "repeated")
    write_report([run], tmp_path / "r", ReportOptions(redact=frozenset({"variance", "by"})))
    parts = {part["title"]: part for part in content(tmp_path / "r", "run-0")["certainty"]["tasks"]["pages"]}
    assert list(parts) == ["Several answers to a document", "Clusters"]
    assert HOSTILE[1] not in json.dumps(parts)


def test_the_page_shows_each_part_with_its_intervals(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/baseline%40repeated")
    page.wait_for_selector("#certainty")
    assert [one.inner_text() for one in page.query_selector_all("#certainty h3")] == [
        "Sources of variance", "Several answers to a document", "Clusters",
    ]  # fmt: skip
    shares = page.get_attribute("#certainty svg.shares", "aria-label")
    assert "questions" in shares and "sampling the answers" in shares
    first, again = (
        row.inner_text().split("\t") for row in page.query_selector_all("[aria-label='Sources of variance'] tbody tr")
    )
    assert (first[4], again[4]) == ("questions like these", "this list, if run again")
    assert "–" in first[2] and first[1] == again[1]
    assert "exact_match pass@2" in page.inner_text("[aria-label='Several answers to a document']")
    assert f"12 clusters (60 documents) by the column {HOSTILE[1]}" in page.inner_text("#certainty")  # as a text
    assert page.query_selector_all("#certainty img") == []
    assert "95 % intervals about questions like these" in page.inner_text(".tabled:has([aria-label=Results])")


def test_the_page_of_a_run_that_stopped_early_is_about_its_list(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/baseline%40early")
    page.wait_for_selector("#certainty")
    assert "the run stopped once decided:0.5 was met" in page.inner_text("#certainty")
    row = page.inner_text("[aria-label='Stopped early'] tbody tr").split("\t")
    assert (row[0], row[4], row[-1]) == ("exact_match", LIST, "betting")
    assert "95 % intervals about this list" in page.inner_text(".tabled:has([aria-label=Results])")
    assert page.get_attribute("[aria-label=Results] .score", "title") == "95 % interval about this list"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_section_fits_a_narrow_page(report: Path, watched: Watched, theme: str) -> None:
    watched.page.emulate_media(color_scheme=theme)
    watched.page.set_viewport_size({"width": 360, "height": 800})
    for run in ("repeated", "early"):
        page = watched.open(report, f"#/baseline%40{run}")
        page.wait_for_selector("#certainty table")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        about = page.locator("#certainty tbody small.narrow").first  # in its own column on a wide page
        assert about.is_visible() and about.inner_text() in (LIST, LIKE_THESE)


def test_a_comparison_with_a_run_that_stopped_early_is_about_the_list(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/:compare")
    page.wait_for_selector("[aria-label=Differences] tbody tr")
    row = page.inner_text("[aria-label=Differences] tbody tr")
    assert "about this list" in row and "this list" in page.inner_text("section:has-text('Differences') p")
    assert "Nothing is called equivalent" in page.inner_text(".notes")

"""``--order random`` and ``--until`` in whole runs of a model that needs no weights."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config import build_config
from lmms_eval.engine.looks import Sampling
from lmms_eval.errors import LmmsEvalError
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.sampling import sampling_of
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.results.tables import make_table

TASK = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files: {{test: {name}.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: question
doc_to_target: answer
{more}
metric_list:
  - {{metric: {metric}, aggregation: {aggregation}, higher_is_better: true}}
"""
GROUP = """group: votes
task: [vote_a, vote_b]
aggregate_metric_list:
  - {metric: exact_match, aggregation: mean, weight_by_size: false}
"""
AGGREGATIONS = {
    "owned": "!function utils.own",
    "macro": "!function utils.macro, range: [0, 100], strata: {column: topic, scale: 100}",
    "few": "!function utils.macro, range: [0, 100], strata: {column: topic, scale: 100}",
    "lying": "!function utils.plain, range: [0, 1], strata: topic",
}
UTILS = """
def own(values):
    return sum(values) / len(values)


def topical(doc, results):
    return {"by_topic": {"topic": doc["topic"], "score": float(results[0] == doc["answer"])}}


def macro(values):
    topics = {}
    for value in values:
        topics.setdefault(value["topic"], []).append(value["score"])
    return 100 * sum(sum(scores) / len(scores) for scores in topics.values()) / len(topics)


def plain(values):
    return sum(value["score"] for value in values) / len(values)


def scored(doc, results):
    return {"points": float(results[0] == doc["answer"])}


def report(tasks, stem):
    from lmms_eval.api.outcome import BenchmarkReport

    return BenchmarkReport("".join(f"{name}: {task.withheld or 'official'}" for name, task in tasks.items()))
"""


def topic(number: int) -> str:
    """Most documents are of the first topic."""
    return ("history", "botany", "trade", "music")[max(0, number % 8 - 4)]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    for name, count in (
        ("vote_a", 300),
        ("vote_b", 120),
        ("owned", 40),
        ("free", 40),
        ("reported", 200),
        ("macro", 400),
        ("lying", 60),
        ("few", 24),
    ):
        draw = random.Random(name)
        rows = [
            {"question": f"Question {number}", "answer": draw.choice("AAB"), "topic": topic(number)}
            for number in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        more = {
            "free": "process_results: !function utils.scored",
            "reported": "report: !function utils.report",
            "macro": "process_results: !function utils.topical",
            "lying": "process_results: !function utils.topical",
            "few": "process_results: !function utils.topical",
        }.get(name, "")
        metric = {"free": "points", "macro": "by_topic", "lying": "by_topic", "few": "by_topic"}.get(
            name, "exact_match"
        )
        (folder / f"{name}.yaml").write_text(
            TASK.format(name=name, more=more, metric=metric, aggregation=AGGREGATIONS.get(name, "mean"))
        )
    (folder / "votes.yaml").write_text(GROUP)
    (folder / "utils.py").write_text(UTILS)
    return folder


@pytest.fixture
def start(tasks: Path, tmp_path: Path) -> Any:
    def begin(out: str = "out", says: str = "A", **options: Any) -> RunReport:
        values = {
            "model": "baseline",
            "model_args": f"strategy=constant,text={says}",
            "include_path": str(tasks),
            "output_path": str(tmp_path / out),
            "log_samples": True,
            "verbosity": "WARNING",
            **options,
        }
        return run(build_config(values, {}), command="lmms-eval again")

    return begin


def samples(folder: Path, task: str) -> list[dict[str, Any]]:
    (file,) = folder.glob(f"*_samples_{task}.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_run_that_ends_early_is_marked_everywhere(start: Any, tmp_path: Path) -> None:
    report = start(tasks="vote_a", until="halfwidth<=0.08")
    assert report.exit_code == 0
    results = report.results
    stop = results["early_stop"]["vote_a"]
    asked = stop["asked"]
    assert 20 < asked < 300 == stop["of"]
    assert stop["rule"] == "halfwidth<=0.08" and stop["order"].startswith("random:0:")
    interval = stop["interval"]
    assert (interval["high"] - interval["low"]) / 2 <= 0.08 and interval["level"] == 0.95 and interval["method"]
    assert {one["estimand"] for one in results["intervals"]["vote_a"].values()} == {"benchmark accuracy"}
    assert results["state"] == "stopped early"
    outcome = results["outcomes"]["vote_a"]
    assert (outcome["scored"], outcome["not_asked"], outcome["withheld"]) == (asked, 300 - asked, False)
    assert outcome["coverage"] == asked / 300
    value = results["results"]["vote_a"]["exact_match,none"]
    mark = f"{value:.4f} (stopped early: {asked} of 300)"
    assert mark in report.table and mark in make_table(results)
    assert results["intervals"]["vote_a"]["exact_match,none"]["low"] == interval["low"]
    rows = samples(tmp_path / "out", "vote_a")
    assert len(rows) == asked and value == sum(row["exact_match"] for row in rows) / asked
    assert any("the same command without --until asks the rest" in line for line in report.lines)
    # The same command shows the same end, under the same stamp; scoring again too.
    again = start(tasks="vote_a", until="halfwidth<=0.08")
    assert again.results["timing"]["asked"] == 0
    assert again.results["early_stop"] == results["early_stop"] and again.table.splitlines()[-1] in report.table
    assert samples(tmp_path / "out", "vote_a") == rows
    scored = rescore(tmp_path / "out", {"log_samples": True}, ends=True)
    assert (scored.exit_code, scored.results["state"]) == (0, "stopped early")
    kept = scored.results["early_stop"]["vote_a"]
    assert {**kept, "rule": stop["rule"]} == stop


def test_without_until_the_rest_is_asked(start: Any) -> None:
    early = start(tasks="vote_a", until="halfwidth<=0.1")
    stricter = start(tasks="vote_a", until="halfwidth<=0.07")
    assert stricter.results["early_stop"]["vote_a"]["asked"] > early.results["early_stop"]["vote_a"]["asked"]
    whole = start(tasks="vote_a")
    assert whole.results["state"] == "complete" and "early_stop" not in whole.results
    assert whole.results["timing"]["resumed"] > 0 and whole.results["outcomes"]["vote_a"]["scored"] == 300
    assert whole.results["run_key"] == early.results["run_key"]


def test_a_group_ends_as_one(start: Any) -> None:
    report = start(tasks="votes", until="votes: halfwidth<=10%")
    stops = report.results["early_stop"]
    assert set(stops) == {"votes", "vote_a", "vote_b"}
    assert stops["votes"]["asked"] == stops["vote_a"]["asked"] + stops["vote_b"]["asked"] < 420
    assert abs(stops["vote_a"]["asked"] - 2.5 * stops["vote_b"]["asked"]) <= 2.5  # the strata grow together
    interval = stops["votes"]["interval"]
    assert (interval["high"] - interval["low"]) / 2 <= 0.1
    assert report.table.count(f"(stopped early: {stops['votes']['asked']} of 420)") == 2
    assert stops["vote_a"]["rule"] == "votes: halfwidth<=10%"


def test_the_error_of_several_decisions_is_named(start: Any) -> None:
    line = "decided: each of 2 decisions is wrong with a probability of at most 5 %, any of them with at most 10 %"
    assert line in start(tasks="votes", until="decided:0.5").lines
    assert not any("decisions" in one for one in start(tasks="votes", until="votes: decided:0.5", out="group").lines)


def test_a_macro_mean_over_strata_ends_early(start: Any, tmp_path: Path) -> None:
    report = start(tasks="macro", until="halfwidth<=10%", seed="3")
    stop = report.results["early_stop"]["macro"]
    assert 40 < stop["asked"] < 400 == stop["of"] and stop["order"].startswith("strata:3:")
    interval = stop["interval"]
    assert (interval["high"] - interval["low"]) / 2 <= 10 and interval["method"] == "empirical bernstein"
    rows = samples(tmp_path / "out", "macro")
    counts = Counter(topic(row["doc_id"]) for row in rows)
    assert all(abs(counts[name] - stop["asked"] / 8) <= 1 for name in ("botany", "trade", "music"))  # an even pace
    value = report.results["results"]["macro"]["by_topic,none"]
    right = Counter(topic(row["doc_id"]) for row in rows if row["target"] == "A")
    assert value == pytest.approx(25 * sum(right[name] / counts[name] for name in counts))
    assert interval["low"] <= value <= interval["high"]
    assert f"{value:.4f} (stopped early: {stop['asked']} of 400)" in report.table
    again = start(tasks="macro", until="halfwidth<=10%", seed="3", out="again")
    assert again.results["early_stop"] == report.results["early_stop"]
    scored = rescore(tmp_path / "out", {"log_samples": True}, ends=True)
    assert {**scored.results["early_stop"]["macro"], "rule": stop["rule"]} == stop
    start(tasks="macro", out="base")
    against = start(tasks="macro", says="C", until=f"decided:{tmp_path / 'base'}", out="other")
    assert against.results["early_stop"]["macro"]["difference"]["high"] < 0


def test_the_macro_mean_of_megabench_ends_early(start: Any) -> None:
    report = start(tasks="megabench_demo", model_args="strategy=gold", until="halfwidth<=0.27")
    stop = report.results["early_stop"]["megabench_demo"]
    assert 26 <= stop["asked"] < 59 == stop["of"]  # of each of the 26 tasks one at least
    assert report.results["intervals"]["megabench_demo"]["macro_mean,none"]["low"] == stop["interval"]["low"] > 0.45
    assert f"1.0000 (stopped early: {stop['asked']} of 59)" in report.table


def test_several_macro_means_are_shown_as_one_over_all_strata(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Sampling | None] = []

    def noted(*arguments: Any) -> Sampling | None:
        found.append(sampling_of(*arguments))
        return found[-1]

    monkeypatch.setattr("lmms_eval.evaluation.sampling.sampling_of", noted)
    start(tasks="macro,few", order="random", limit=7)  # of the first seven documents three topics
    start(tasks="macro,vote_a", order="random")
    first, second = found
    assert first is not None and {part.task: part.weight for part in first.shown} == {"few": 3.0, "macro": 3.0}
    assert second is not None and second.shown == ()  # ranges of 0 to 100 and 0 to 1


def test_strata_that_are_none_give_no_interval(start: Any) -> None:
    report = start(tasks="lying", until="decided:0.05")
    assert report.results["early_stop"]["lying"]["interval"] is None
    assert report.results["intervals"]["lying"]["by_topic,none"]["reason"] == "no mean over its strata"


def test_decided_against_a_baseline(start: Any, tmp_path: Path) -> None:
    start(out="base", tasks="vote_a,vote_b")
    base = tmp_path / "base"
    report = start(says="B", tasks="vote_a", until=f"decided:{base}", baseline=str(base))
    stop = report.results["early_stop"]["vote_a"]
    assert stop["asked"] < 300 and stop["difference"]["high"] < 0
    paired = report.results["paired"]["vote_a"]["exact_match,none"]
    assert paired["ci_upper"] == pytest.approx(100 * stop["difference"]["high"]) and paired["pvalue"] is None
    assert paired["n"] == stop["asked"] and paired["estimand"] == "benchmark accuracy"
    group = start(out="g", says="B", tasks="votes", until=f"votes: decided:{base}")
    assert group.results["early_stop"]["votes"]["asked"] < 420
    alike = start(out="alike", tasks="vote_a", until=f"decided:{base}")
    assert alike.results["state"] == "complete"


@pytest.mark.parametrize("until", ["", "halfwidth<=0.12"])
def test_a_baseline_that_ended_early_is_compared_over_what_counts(start: Any, tmp_path: Path, until: str) -> None:
    early = start(out="base", tasks="vote_a", until="halfwidth<=0.1").results["early_stop"]["vote_a"]["asked"]
    report = start(says="B", tasks="vote_a", baseline=str(tmp_path / "base"), **({"until": until} if until else {}))
    paired = report.results["paired"]["vote_a"]["exact_match,none"]
    own = report.results["early_stop"]["vote_a"]["asked"] if until else 300
    assert paired["n"] == min(early, own) and paired["pvalue"] is None
    assert paired["baseline_early"] == f"stopped early: {early} of 300"
    assert paired["ci_lower"] < paired["difference"] < paired["ci_upper"] < 0
    (line,) = (line for line in report.lines if line.startswith("vote_a: the baseline"))
    assert f"stopped early: {early} of 300 documents: compared over these alone" in line


def test_the_order_alone_changes_no_result(start: Any, capfd: pytest.CaptureFixture[str]) -> None:
    by_cost, at_random = start(out="a", tasks="vote_a"), start(out="b", tasks="vote_a", order="random")
    assert by_cost.table == at_random.table
    assert by_cost.results["run_key"] == at_random.results["run_key"]
    few = start(out="c", tasks="vote_a", until="decided:0.1", limit=12)
    assert few.results["early_stop"]["vote_a"]["of"] == 12 or few.results["state"] == "complete"
    assert "no live interval" not in capfd.readouterr().err


def test_a_report_says_nothing_official_of_a_task_that_ended_early(start: Any) -> None:
    assert "reported: official" in start(out="a", tasks="reported", order="random").table
    report = start(tasks="reported", until="halfwidth<=0.1")
    asked = report.results["early_stop"]["reported"]["asked"]
    assert f"reported: stopped early: {asked} of 200" in report.table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": "owned", "until": "halfwidth<=0.1"}, "exact_match of task owned is aggregated by a function of the"),
        ({"tasks": "free", "until": "halfwidth<=0.1"}, "points of task free has no range with two ends"),
        ({"tasks": "vote_a", "until": "vote_b: halfwidth<=0.1"}, "no such task or group in this run; it has vote_a"),
        ({"tasks": "vote_a", "until": "decided:1.5"}, "the score of vote_a lies from 0 to 1"),
        ({"tasks": "vote_a", "until": "decided:nothing"}, "neither a samples file nor a preset"),
        ({"tasks": "vote_a", "until": "decided:/no/such.jsonl"}, "no such file"),
        ({"tasks": "vote_a,owned", "until": "halfwidth<=0.1"}, "cannot be decided before the end"),
    ],
)
def test_what_cannot_be_decided_is_refused_before_anything_is_asked(
    start: Any, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(LmmsEvalError, match=message) as raised:
        start(**options)
    assert raised.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_baseline_of_too_few_documents_or_another_scale_is_refused(start: Any, tmp_path: Path) -> None:
    few, other = tmp_path / "few.jsonl", tmp_path / "other.jsonl"
    line = '{{"doc_id": {}, "filtered_resps": ["A"], "target": "A", "exact_match": {}}}\n'
    few.write_text("".join(line.format(number, 1.0) for number in range(5)))
    other.write_text("".join(line.format(number, 70.0) for number in range(50)))
    with pytest.raises(LmmsEvalError, match="of 5 of the 300 documents of vote_a; a decision needs 10"):
        start(tasks="vote_a", until=f"decided:{few}")
    with pytest.raises(LmmsEvalError, match="has 70 for document 0 of vote_a, whose exact_match lies from 0 to 1"):
        start(tasks="vote_a", until=f"decided:{other}")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tasks": "owned"}, "exact_match of task owned is aggregated by a function of the task's own"),
        ({"tasks": "vote_a", "predict_only": True}, "--predict_only makes no scores"),
    ],
)
def test_why_there_is_no_live_interval_is_said_once(start: Any, options: dict[str, Any], reason: str) -> None:
    from loguru import logger

    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), level="INFO")
    try:
        start(order="random", **options)
    finally:
        logger.remove(sink)
    assert sum(f"no live interval: {reason}" in line for line in lines) == 1

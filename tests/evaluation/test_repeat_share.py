"""Whole runs with ``--repeat_share``: documents that are asked a second time at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.table import comparison_csv, comparison_text
from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.evaluation.preview.run import dry_run
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.results.run import load
from tests.cases import for_each
from tests.evaluation import judged_kit, kit
from tests.evaluation.test_batches import ROUNDS
from tests.evaluation.test_controls import Chat, Simple, picture_task
from tests.servers.stub import StubServer

YAML = """task: flipping
dataset_path: json
dataset_kwargs: {data_files: {test: flipping.jsonl}}
test_split: test
doc_to_text: question
doc_to_target: answer
generation_kwargs: {max_new_tokens: 16, until: []}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def flipping_task(tmp: Path, documents: int) -> None:
    """Questions that the server answers right in two of three cases, unless it changes its answer."""
    folder = tmp / "tasks"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(documents):
        usual, other = ("yes", "no") if number % 3 else ("no", "yes")
        rows.append({"question": f"Question {number}. ELSE={other} ANSWER={usual}", "answer": "yes"})
    (folder / "flipping.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "flipping.yaml").write_text(YAML)


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    with StubServer(flips=0.03) as found:
        yield found


def asked(tmp: Path, server: StubServer, name: str = "out", **over: Any) -> RunReport:
    values = {
        "model": "openai",
        "model_args": f"model=stub,base_url={server.url},api_key=k,num_concurrent=16",
        "tasks": "flipping",
        "output_path": str(tmp / name),
        "repeat_share": 0.05,
        **over,
    }
    return run(kit.config(tmp, **values))


def floor_of(report: RunReport, task: str = "flipping") -> dict[str, Any]:
    found: dict[str, Any] = report.results["noise_floor"][task]
    return found


def times(server: StubServer) -> list[int]:
    """How often each question was asked, by the number of times."""
    counts = list(server.stats()["by_body"].values())
    return [counts.count(number) for number in range(1, 4)]


def test_a_server_that_changes_3_percent_of_its_answers(tmp_path: Path, server: StubServer) -> None:
    flipping_task(tmp_path, 1000)
    first = asked(tmp_path, server, "first", repeat_share=0.5, log_samples=True)
    second = asked(tmp_path, server, "second", repeat_share=0.5, log_samples=True)
    for report in (first, second):
        scores = floor_of(report)["scores"]["exact_match,none"]
        assert (scores["n"], floor_of(report)["asked"]) == (500, 500)
        assert scores["low"] <= 0.03 <= scores["high"]
        assert scores["answers"] == pytest.approx(scores["share"] / 2)
        assert f"|{scores['share']:.4g}" in report.table.replace(" ", "") and "Flips_CI95" in report.table
        assert report.results["results"].keys() == {"flipping"} == report.results["configs"].keys()
        split = report.results["variance"]["flipping"]["exact_match,none"]
        assert split["again"]["low"] < 2 / 3 < split["again"]["high"]
        assert split["again"]["high"] - split["again"]["low"] < 0.5 * (
            split["like_these"]["high"] - split["like_these"]["low"]
        )
    line = next(line for line in first.lines if "asked again" in line and "changed" in line)
    assert line.startswith("flipping: of 500 documents asked again, changed: answer on ")
    compared = compare_runs(read_runs([str(tmp_path / "first"), str(tmp_path / "second")]))
    (row,) = compared.pairs[0].rows
    assert row.reruns is not None and row.reruns.is_beyond is False
    expected = [floor_of(one)["scores"]["exact_match,none"]["answers"] for one in (first, second)]
    assert row.reruns.error == pytest.approx((sum(expected) / 1000) ** 0.5)
    assert row.reruns.interval is not None and row.reruns.interval.low < 0 < row.reruns.interval.high
    text = comparison_text(compared)
    assert "this difference is within rerun noise" in text and "if both were run again on this list: " in text
    assert ",False," in comparison_csv(compared)
    assert "Flips" in load(tmp_path / "first").table


def test_the_second_requests_are_the_same_and_come_last(tmp_path: Path) -> None:
    flipping_task(tmp_path, 40)
    with StubServer() as server:
        report = asked(tmp_path, server, repeat_share=0.75, model_args=f"model=m,base_url={server.url},api_key=k,"
                       "num_concurrent=1", gen_kwargs="temperature=0.7")  # fmt: skip
        bodies = server.bodies()
        assert times(server) == [10, 30, 0]
    assert [bodies.index(body) < 40 for body in bodies] == [True] * 64  # the stub keeps the first 64
    assert len({json.dumps(body) for body in bodies[:40]}) == 40 and "seed" in bodies[0]
    assert floor_of(report)["scores"]["exact_match,none"]["high"] == pytest.approx(1 - 0.025 ** (1 / 30))


def test_a_few_documents_are_all_asked_again_and_many_at_least_20_of(tmp_path: Path, server: StubServer) -> None:
    flipping_task(tmp_path, 60)
    assert floor_of(asked(tmp_path, server, "a", limit=5))["asked"] == 5
    assert floor_of(asked(tmp_path, server, "b"))["asked"] == 20
    assert floor_of(asked(tmp_path, server, "c", repeat_share=0.5))["asked"] == 30
    assert floor_of(asked(tmp_path, server, "d", order="random"))["asked"] == 20
    assert floor_of(asked(tmp_path, server, "e", sample="40"))["asked"] == 20


def test_a_completed_run_is_extended_and_its_key_does_not_change(tmp_path: Path) -> None:
    flipping_task(tmp_path, 40)
    with StubServer() as server:
        first = asked(tmp_path, server, repeat_share=0)
        again = asked(tmp_path, server, repeat_share=0.5, resume=True)
        larger = asked(tmp_path, server, repeat_share=0.6, resume=True)
        assert times(server) == [16, 24, 0]
    assert first.results["run_key"] == again.results["run_key"]
    assert first.results["prompt_fingerprint"] == again.results["prompt_fingerprint"]
    assert first.results["results"] == again.results["results"] and "noise_floor" not in first.results
    assert (floor_of(again)["answered"], floor_of(larger)["answered"]) == (20, 24)


def test_a_run_that_ends_between_the_first_and_the_second_requests_asks_nothing_twice(tmp_path: Path) -> None:
    flipping_task(tmp_path, 40)
    with StubServer() as server:
        words = f"model=m,base_url={server.url},api_key=k,num_concurrent=1"
        kept = asked(tmp_path, server, model_args=words, repeat_share=0.5, max_tokens=450)
        sent = server.stats()["total"]
        assert kept.exit_code == 3 and 40 < sent < 60
        assert floor_of(kept)["answered"] == sent - 40
        whole = asked(tmp_path, server, model_args=words, repeat_share=0.5)
        assert times(server) == [20, 20, 0] and whole.exit_code == 0
    assert floor_of(whole)["answered"] == 20


def test_no_cache_answers_the_second_request(tmp_path: Path) -> None:
    flipping_task(tmp_path, 30)
    with StubServer() as server:
        asked(tmp_path, server, "a", use_cache=str(tmp_path / "cache"))
        second = asked(tmp_path, server, "b", use_cache=str(tmp_path / "cache"))
        assert server.stats()["total"] == 30 + 20 + 20
    assert second.results["cache"]["hit"] == 30 and second.results["cache"]["skipped"] == 20


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_answers_and_verdicts_are_asked_again(tmp_path: Path, scoring: str) -> None:
    judged_kit.rated_task(tmp_path / "tasks", 30, scoring=scoring)
    with StubServer() as server:
        judge = {"judge_model": "openai:stub", "judge_base_url": server.url, "judge_args": "api_key=k"}
        report = asked(tmp_path, server, tasks="rated", use_cache=str(tmp_path / "cache"), judge_repeats=2, **judge)
        again = asked(tmp_path, server, "b", tasks="rated", use_cache=str(tmp_path / "cache"), judge_repeats=2, **judge)
        assert server.stats()["total"] == 30 * 3 + 2 * 20 * 3
    assert report.exit_code == 0 and again.results["judge"]["by_task"].keys() == {"rated", "rated@again"}
    split = report.results["variance"]["rated"]["rating,none"]
    assert split["answers"] == 0 == split["judge"] and split["questions"] > 0
    assert split["rejudged"]["stderr"] == 0
    # The metric states no range, so nothing bounds how far two ratings of an answer could lie apart.
    assert split["again"]["reason"] == "no range with two ends"


def test_a_second_answer_that_fails_is_asked_by_the_next_start(tmp_path: Path) -> None:
    failed = []

    def answer(request: Any) -> Any:
        if request.task.asks_again and request.doc_id == 3 and not failed:
            failed.append(request.id)
            return kit.Response.failure(request.id, "timeout", "no answer")
        return kit.right(request)

    chosen = {"model": "told", "repeat_share": 1.0}
    report = run(kit.config(tmp_path, **chosen), kit.Told(answer))
    assert report.exit_code == 3 and floor_of(report, kit.NAME)["answered"] == kit.DOCUMENTS - 1
    assert report.results["results"][kit.NAME]["exact_match,none"] == 1.0
    assert any(line.startswith("bench_text@again: 5 scored, 0 unscored, 1 failed of 6") for line in report.lines)
    model = kit.Told(answer)
    again = run(kit.config(tmp_path, **chosen), model)
    assert model.asked == [3] and floor_of(again, kit.NAME)["answered"] == kit.DOCUMENTS
    assert again.exit_code == 0


def test_log_probabilities_and_scoring_again(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    rows = [{"question": f"Which, {number}?", "choices": ["a", "b"], "answer": number % 2} for number in range(6)]
    (tmp_path / "tasks" / "flipping.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tasks" / "flipping.yaml").write_text(
        YAML.replace("generation_kwargs: {max_new_tokens: 16, until: []}", "output_type: multiple_choice")
        .replace("metric: exact_match", "metric: acc") + 'doc_to_choice: "{{choices}}"\n'
    )  # fmt: skip
    chosen = kit.config(tmp_path, tasks="flipping", model_args="strategy=random_choice", repeat_share=0.1)
    report = run(chosen)
    found = floor_of(report)
    assert found["answers"]["changed"] == 0 == found["scores"]["acc,none"]["changed"]  # the seed is the same
    assert rescore(tmp_path / "out", {}).results["noise_floor"] == report.results["noise_floor"]


def test_the_dry_run_counts_them(tmp_path: Path) -> None:
    lines = "\n".join(dry_run(kit.config(tmp_path, repeat_share=0.1))[0])
    assert "bench_text@again: 6 of 6 documents" in lines and "Total: 12 requests" in lines


@for_each("option, why", [
    ({"until": "halfwidth<=0.1"}, "--repeat_share does not go with --until, which ends a task"),
    ({"predict_only": True, "log_samples": True}, "--repeat_share does not go with --predict_only, which makes no"),
    ({"repeats": 2}, "--repeat_share does not go with --repeats, which already shows"),
    ({"repeat_share": 1.5}, "--repeat_share: must lie between 0 and 1; got 1.5"),
    ({"repeat_share": -0.1}, "--repeat_share: must be at least 0; got -0.1"),
    ({"repeat_share": "many"}, "--repeat_share: should be a valid number"),
])  # fmt: skip
def test_what_does_not_go_with_it(option: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        kit.config(tmp_path, **{"repeat_share": 0.1, **option})
    assert why in str(caught.value)


def test_tasks_that_ask_several_times_anyway_are_left_out(tmp_path: Path) -> None:
    flipping_task(tmp_path, 4)
    twice = YAML.replace("task: flipping", "task: twice") + "repeats: 2\n"
    (tmp_path / "tasks" / "twice.yaml").write_text(twice)
    said: list[str] = []
    handler = logger.add(lambda message: said.append(str(message)), level="WARNING")
    report = run(kit.config(tmp_path, tasks="flipping,twice", repeat_share=0.5))
    logger.remove(handler)
    assert report.results["noise_floor"].keys() == {"flipping"}
    assert any("--repeat_share: twice already asks each document several times" in line for line in said)
    with pytest.raises(UsageError, match="--repeat_share: twice already asks each document several times"):
        run(kit.config(tmp_path, tasks="twice", repeat_share=0.5, output_path=str(tmp_path / "b")))


@pytest.mark.parametrize("plugin", [Simple, Chat])
def test_class_plugins_get_the_same_requests_under_the_name_of_the_control(
    plugin: type[Simple], tmp_path: Path
) -> None:
    picture_task(tmp_path, 4)
    model = plugin()
    chosen = kit.config(tmp_path, model="told", tasks="probe", repeat_share=1.0, ablate="no-media")
    report = run(chosen, model)
    assert report.results["noise_floor"]["probe"]["answers"]["changed"] == 0
    assert report.results["controls"]["probe"].keys() == {"chance", "no-media"}
    assert {task for task, _ in model.shown} == {"probe", "probe@no-media", "probe@again"}
    for doc_id in range(4):
        (first, pictures), (second, again) = model.shown["probe", doc_id], model.shown["probe@again", doc_id]
        assert first == second
        assert [one.tobytes() for one in pictures] == [one.tobytes() for one in again] != []


def test_all_rounds_are_asked_again(tmp_path: Path) -> None:
    flipping_task(tmp_path, 3)
    (tmp_path / "tasks" / "two.py").write_text(ROUNDS)
    (tmp_path / "tasks" / "flipping.yaml").write_text(
        "task: flipping\ndataset_path: json\ndataset_kwargs: {data_files: {test: flipping.jsonl}}\ntest_split: test\n"
        "output_type: generate_until_multi_round\ndoc_to_messages: !function two.messages\n"
        "doc_to_visual: !function two.visuals\ndoc_to_text: !function two.text\ndoc_to_target: answer\n"
        "process_results: !function two.score\ngeneration_kwargs: {max_new_tokens: 16}\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
    )
    with StubServer() as server:
        report = asked(tmp_path, server)
        stats = server.stats()
    assert stats["total"] == 12
    assert all(count % 2 == 0 for count in stats["by_body"].values())
    assert floor_of(report)["answers"] == {
        "n": 3,
        "changed": 0,
        "share": 0.0,
        "low": 0.0,
        "high": pytest.approx(0.708, abs=1e-3),
    }

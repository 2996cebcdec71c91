"""Judged tasks over whole runs, with a judge behind a server on loopback."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config import RunConfig, build_config
from lmms_eval.engine.response_cache import CacheFile
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import ConfigError, ModelError, UsageError
from lmms_eval.evaluation import writing
from lmms_eval.evaluation.rescore import rescore, run_folder
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.judges import register_script
from lmms_eval.judges.providers import Judge
from lmms_eval.models.baseline import Baseline
from tests.evaluation.judged_kit import NAME, rated_task
from tests.evaluation.kit import Told, fails_on, right
from tests.servers.stub import StubServer

SECRET = "sk-very-secret-0123456789abcdef"
DOCUMENTS = 6
MEAN = 2.5


def config(tmp: Path, **over: Any) -> RunConfig:
    if not (tmp / "tasks").exists():
        rated_task(tmp / "tasks", DOCUMENTS)
    values = {
        "model": "told",
        "tasks": NAME,
        "include_path": str(tmp / "tasks"),
        "output_path": str(tmp / "out"),
        "log_samples": True,
        "timezone": "UTC",
        **over,
    }
    return build_config(values, {})


def judged(server: StubServer, **over: Any) -> dict[str, Any]:
    return {"judge_model": "jury", "judge_base_url": server.url, "judge_args": f"api_key={SECRET}", **over}


def rating(report: RunReport) -> Any:
    return report.results["results"][NAME]["rating,none"]


def rows(tmp: Path) -> list[dict[str, Any]]:
    (path,) = (tmp / "out").rglob("*_samples_rated.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_a_judge_rates_and_everything_is_recorded(tmp_path: Path, scoring: str) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS, scoring=scoring)
    with StubServer(key=SECRET) as server:
        report = run(config(tmp_path, **judged(server)), Told())
        assert server.stats()["total"] == DOCUMENTS
        body = server.bodies()[0]
    assert (body["model"], body["temperature"]) == ("jury", 0)
    assert rating(report) == MEAN
    part = report.results["judge"]
    assert (part["model"], part["provider"], part["base_url"]) == ("jury", "openai", server.url)
    assert (part["asked"], part["answered"], part["judge_unparsable"], part["failed"]) == (DOCUMENTS, DOCUMENTS, 0, 0)
    assert part["output_tokens"] > 0
    usage = report.results["usage"]
    assert usage["by_source"]["judge"]["n_api_calls"] == DOCUMENTS
    total = usage["by_source"]["model"]["n_api_calls"] + DOCUMENTS
    assert usage["total"]["n_api_calls"] == usage["by_task"][NAME]["n_api_calls"] == total
    (verdict,) = rows(tmp_path)[3]["judge"]
    assert (verdict["name"], verdict["text"], verdict["model"]) == ("rating", "3", "jury")
    assert len(verdict["prompt"]) == 16
    written = "".join(path.read_text(errors="replace") for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert SECRET not in written


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_results_state_the_sources_of_the_variance(tmp_path: Path, scoring: str) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS, scoring=scoring)
    with StubServer() as server:
        given = judged(server, judge_repeats=2, repeats=3, reduce="pass^2")
        report = run(config(tmp_path, **given), Told())
    assert report.results["results"][NAME]["rating_pass^2,none"] == MEAN
    found = report.results["variance"][NAME]["rating,none"]
    assert (found["n"], found["answers"], found["judge"]) == (DOCUMENTS, 0.0, 0.0)
    assert found["questions"] == pytest.approx(3.5)
    interval = report.results["intervals"][NAME]["rating,none"]
    assert (found["like_these"]["low"], found["like_these"]["high"]) == (interval["low"], interval["high"])
    assert found["again"] == {"stderr": 0.0, "low": None, "high": None, "reason": "no spread"}
    (line,) = (line for line in report.lines if "variance" in line)
    assert line.startswith("rated: rating: variance 100% questions, 0% answers, 0% judge; [")
    assert line.endswith("no interval if the same answers were judged again")


def test_unreadable_replies_are_asked_again_then_scored_as_the_task_says(tmp_path: Path) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS, unreadable=(1, 5))
    with StubServer() as server:
        report = run(config(tmp_path, **judged(server, judge_retries=3, judge_error_budget=1.0)), Told())
        assert server.stats()["total"] == DOCUMENTS + 2 * 3
    assert rating(report) == pytest.approx(9 / 6)
    assert report.exit_code == 0
    assert report.results["judge"]["judge_unparsable"] == 2
    assert any("2 of 6 replies of the judge could not be read" in line for line in report.lines)
    assert report.results["judge"]["replies"] == DOCUMENTS + 6
    (verdict,) = rows(tmp_path)[1]["judge"]
    assert verdict["replies"] == ["cannot say"] * 4
    assert verdict["accepted"] is False


@pytest.mark.parametrize(("fault", "shown"), [("500", "HTTP 500"), ("401", "401")])
def test_a_judge_that_fails_leaves_samples_unscored(tmp_path: Path, fault: str, shown: str) -> None:
    model = Told()
    with StubServer(fault=fault) as server:
        report = run(config(tmp_path, **judged(server, judge_args="max_retries=0")), model)
    assert len(model.asked) == DOCUMENTS
    outcome = report.results["outcomes"][NAME]
    assert (outcome["unscored"], outcome["failed"], report.exit_code) == (DOCUMENTS, 0, 3)
    assert all(shown in reason for reason in outcome["reasons"])
    assert (fault == "401") == any("stopped judging early" in line for line in report.lines)


def test_without_a_judge_the_reason_says_so_and_score_judges_later(tmp_path: Path) -> None:
    model = Told()
    report = run(config(tmp_path), model)
    assert report.results["outcomes"][NAME]["unscored"] == DOCUMENTS
    assert "judge" not in report.results
    (results,) = (tmp_path / "out").rglob("*_results.json")
    with StubServer() as server:
        later = rescore(results, judged(server))
        assert server.stats()["total"] == DOCUMENTS
        assert rating(later) == MEAN
        assert later.exit_code == 0
        again = rescore(tmp_path / "out", judged(server))
        assert server.stats()["total"] == DOCUMENTS  # the verdicts are in the journal
    assert rating(again) == MEAN
    assert [path.name for path in (tmp_path / "out").rglob("*_results.json")] == [results.name]
    assert json.loads(results.read_text())["results"][NAME]["rating,none"] == MEAN
    assert [row["judge"][0]["text"] for row in rows(tmp_path)] == [str(number) for number in range(DOCUMENTS)]
    assert len(model.asked) == DOCUMENTS


def test_score_asks_the_model_nothing(tmp_path: Path) -> None:
    run(config(tmp_path), Told(fails_on(2)), "lmms-eval --model told --tasks rated")
    with StubServer() as server:
        report = rescore(tmp_path / "out", judged(server))
    assert report.exit_code == 3
    assert report.results["outcomes"][NAME]["failed"] == 1
    assert any(line.endswith("\n  lmms-eval --model told --tasks rated") for line in report.lines)
    assert any("asks the model nothing" in reason for reason in report.results["outcomes"][NAME]["reasons"])


def test_score_finds_answers_of_processes_without_shared_files(tmp_path: Path) -> None:
    """Only their scored documents came to the first process."""
    run(config(tmp_path), Told())
    (responses,) = (tmp_path / "out").rglob("responses-0.jsonl")
    responses.unlink()
    with StubServer() as server:
        report = rescore(tmp_path / "out", judged(server))
    assert (report.exit_code, rating(report)) == (0, MEAN)


def test_score_by_another_judge_replaces_the_verdicts(tmp_path: Path) -> None:
    with StubServer() as server:
        run(config(tmp_path, **judged(server)), Told())
        other = rescore(tmp_path / "out", judged(server, judge_model="appeal"))
        assert server.stats()["total"] == 2 * DOCUMENTS
    assert other.results["judge"]["model"] == "appeal"
    assert {row["judge"][0]["model"] for row in rows(tmp_path)} == {"appeal"}


def test_score_refuses_what_is_another_run(tmp_path: Path) -> None:
    run(config(tmp_path), Told())
    with pytest.raises(UsageError, match="--limit"):
        rescore(tmp_path / "out", {"limit": 2})
    with pytest.raises(UsageError, match="0 recorded runs"):
        run_folder(tmp_path / "tasks")
    (tmp_path / "tasks" / "rated.jsonl").write_text('{"question": "other", "answer": "a", "rating": "1"}\n')
    with pytest.raises(UsageError, match="another configuration"):
        rescore(tmp_path / "out", {})


def test_score_finds_a_run_that_was_moved(tmp_path: Path) -> None:
    run(config(tmp_path, model_args="pretrained=org/small"), Told())
    (tmp_path / "out").rename(tmp_path / "moved")
    with StubServer() as server:
        report = rescore(tmp_path / "moved", judged(server))
    assert rating(report) == MEAN
    assert not (tmp_path / "out").exists()
    assert len(list((tmp_path / "moved").rglob("*_results.json"))) == 1


def test_the_judge_changes_scores_not_answers(tmp_path: Path) -> None:
    with StubServer() as server:
        first = run(config(tmp_path), Told())
        model = Told()
        second = run(config(tmp_path, resume=True, **judged(server)), model)
    assert model.asked == []
    assert first.results["run_key"] == second.results["run_key"]
    assert rating(second) == MEAN


def test_judge_calls_are_cached_across_runs(tmp_path: Path) -> None:
    with StubServer() as server:
        for number, name in enumerate(("one", "two")):
            over = judged(server, use_cache=str(tmp_path / "cache"), output_path=str(tmp_path / name))
            report = run(config(tmp_path, **over), Told())
            assert report.results["judge"]["cache"]["hit"] == number * DOCUMENTS
        assert server.stats()["total"] == DOCUMENTS
    assert rating(report) == MEAN


def test_recorded_replies_judge_again_without_a_server(tmp_path: Path) -> None:
    with StubServer() as server:
        run(config(tmp_path, **judged(server)), Told())
    (journal,) = (tmp_path / "out").rglob("judgements-0.jsonl")
    kept = tmp_path / "replies.jsonl"
    kept.write_bytes(journal.read_bytes())
    report = run(config(tmp_path, judge_model=f"replay:{kept}", output_path=str(tmp_path / "again")), Told())
    assert rating(report) == MEAN


def test_mistakes_end_before_the_model_is_built(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--judge_args"):
        config(tmp_path, judge_args="api_key=x")
    with pytest.raises(ModelError, match="judge"):
        run(config(tmp_path, judge_model="replay:nowhere.jsonl"), Told(right))
    misspelt = {"judge_base_url": "http://127.0.0.1:9", "judge_args": "num_concurent=2"}
    with pytest.raises(ModelError, match="num_concurent"):
        run(config(tmp_path, judge_model="j", **misspelt), Told())


def test_the_example_of_the_guide_works(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "judges.md").read_text(encoding="utf-8")
    code, yaml = (
        re.search(rf"<!-- file: examples/task/{name} -->\n```\w+\n(.*?)```", guide, re.DOTALL).group(1)  # type: ignore[union-attr]
        for name in ("rated.py", "rated_colours.yaml")
    )
    folder = tmp_path / "tasks"
    shutil.copytree(Path(__file__).parents[2] / "examples" / "task", folder)
    (folder / "rated.py").write_text(code)
    (folder / "rated_colours.yaml").write_text(yaml)
    register_script("guide", lambda messages, request: f"{messages.text()[-20:]} Rating: 8")
    report = run(config(tmp_path, model="baseline", tasks="rated_colours", judge_model="scripted:guide"))
    assert report.results["results"]["rated_colours"]["rating,none"] == 0.8
    assert report.results["judge"]["answered"] == 5
    unscored = run(config(tmp_path, model="baseline", tasks="rated_colours"))
    assert unscored.results["outcomes"]["rated_colours"]["reasons"] == {"unscored: no judge: give --judge_model": 5}


def test_a_local_model_judges_in_its_own_thread(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    report = run(config(tmp_path, judge_model="hf:embedded", judge_retries=0, limit=2), Told())
    part = report.results["judge"]
    assert (part["model"], part["provider"], part["questions"], part["failed"]) == ("embedded", "hf", 2, 0)
    assert part["answered"] + part["judge_unparsable"] == 2
    assert report.results["outcomes"][NAME]["scored"] == 2


@pytest.fixture
def closings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what a run closes, in order."""
    register_script("guide", lambda _messages, _request: "Rating: 8")
    found: list[str] = []
    for kind, name in ((Judge, "judge"), (Baseline, "model"), (RunStore, "store"), (CacheFile, "cache file")):

        def close(one: Any, *, name: str = name, close: Any = kind.close) -> None:
            found.append(name)
            close(one)

        monkeypatch.setattr(kind, "close", close)
    return found


def test_the_judge_is_closed_when_the_model_cannot_be_built(tmp_path: Path, closings: list[str]) -> None:
    with pytest.raises(ModelError, match="strategy"):
        run(config(tmp_path, model="baseline", model_args="strategy=none_such", judge_model="scripted:guide"))
    assert closings == ["judge"]


def test_judge_and_model_are_closed_when_the_model_cannot_answer_the_tasks(
    tmp_path: Path, closings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Baseline, "kinds", frozenset({"loglikelihood"}))
    with pytest.raises(ModelError, match="does not answer"):
        run(config(tmp_path, model="baseline", judge_model="scripted:guide"))
    assert closings == ["model", "judge"]


def test_what_a_run_opens_is_closed_in_reverse_order(
    tmp_path: Path, closings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"model": "baseline", "judge_model": "scripted:guide", "use_cache": str(tmp_path / "cache")}
    run(config(tmp_path, **options))
    checked, *rest = closings
    assert (checked, rest) == ("cache file", ["cache file", "cache file", "store", "model", "judge"])
    closings.clear()

    def fail(*_arguments: Any, **_named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "write_atomically", fail)
    with pytest.raises(OSError, match="No space"):
        run(config(tmp_path, **options, resume=True))
    assert closings == ["cache file", "cache file", "cache file", "store", "model", "judge"]
    (folder,) = (tmp_path / "out").rglob("run.json")
    assert not (folder.parent / "owner.json").exists()

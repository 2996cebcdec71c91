"""``--until`` with what decides late or from elsewhere: a judge, the response cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.judges import register_script
from tests.evaluation import kit
from tests.evaluation.judged_kit import NAME, rated_task
from tests.servers.stub import StubServer

DOCUMENTS = 240
RULE = "halfwidth<=10%"


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    folder = rated_task(tmp_path / "tasks", DOCUMENTS)
    text = (folder / "rated.yaml").read_text()
    (folder / "rated.yaml").write_text(text.replace("aggregation: mean", "aggregation: mean\n    range: [0, 9]"))
    return tmp_path


def stopped(report: RunReport, task: str) -> dict[str, Any]:
    assert report.exit_code == 0 and report.results["state"] == "stopped early"
    found: dict[str, Any] = report.results["early_stop"][task]
    return found


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_a_judged_run_ends_at_the_same_document_whoever_answers_first(rated: Path, scoring: str) -> None:
    if scoring == "process":
        with open(rated / "tasks" / "rated.yaml", "a") as file:
            file.write("scoring: process\n")
    options = {"tasks": NAME, "model": "told", "until": RULE, "log_samples": True}
    with StubServer(delay=0.01) as server:
        judge = {"judge_model": "jury", "judge_base_url": server.url, "judge_args": "api_key=x,num_concurrent=8"}
        model = kit.Told()
        report = run(kit.config(rated, **options, **judge), model)
        stop = stopped(report, NAME)
        assert 40 < stop["asked"] < DOCUMENTS
        assert server.stats()["total"] >= stop["asked"]
        again = run(kit.config(rated, **options, **judge, output_path=str(rated / "again")), kit.Told())
    assert stopped(again, NAME) == stop and again.results["results"] == report.results["results"]
    register_script("rates", lambda _, request: request.build_messages().text().partition("ANSWER=")[2])
    scripted = run(
        kit.config(rated, **options, judge_model="scripted:rates", output_path=str(rated / "scripted")), kit.Told()
    )
    assert stopped(scripted, NAME) == stop
    scored = rescore(rated / "out", {"log_samples": True, "judge_model": "scripted:rates"}, ends=True)
    assert {**stopped(scored, NAME), "rule": stop["rule"]} == stop


def test_a_run_out_of_the_cache_ends_at_the_same_document(tmp_path: Path) -> None:
    kit.tasks(tmp_path, 400)

    def often_right(request: Request) -> Response:
        return kit.right(request) if request.doc_id % 3 else Response(request.id, text="no")

    def cached(out: str, model: kit.Told, **over: Any) -> RunReport:
        chosen = {"model": "told", "use_cache": str(tmp_path / "cache"), "output_path": str(tmp_path / out), **over}
        return run(kit.config(tmp_path, **chosen), model)

    first, second = kit.Told(often_right), kit.Told(often_right)
    stop = stopped(cached("one", first, until="halfwidth<=0.1"), kit.NAME)
    again = cached("two", second, until="halfwidth<=0.1")
    assert stopped(again, kit.NAME) == stop and stop["asked"] < 200
    assert not set(first.asked) & set(second.asked)
    assert again.results["cache"]["hit"] >= stop["asked"]
    # A whole run into the cache: then none is asked.
    cached("whole", kit.Told(often_right))
    third = kit.Told(often_right)
    assert stopped(cached("three", third, until="halfwidth<=0.1"), kit.NAME) == stop and third.asked == []

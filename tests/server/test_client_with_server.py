"""The clients with a real server: from a submission to typed scores and samples."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.entrypoints import AsyncEvalClient, EvalClient
from lmms_eval.errors import DataError, EvaluationServerError, JobFailedError
from tests.server.process import ServerProcess, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("client")
    text_task(folder / "tasks", 20)
    with running_server(folder / "server", "--include_path", str(folder / "tasks")) as running:
        yield running


def test_from_a_submission_to_its_scores(server: ServerProcess) -> None:
    with EvalClient(str(server.client.base_url)) as client:
        assert client.is_healthy()
        assert "bench_text" in client.list_tasks()
        assert "hf" in client.list_models()
        gold = {"strategy": "gold"}
        first = client.evaluate("baseline", ["bench_text"], gold, limit=8, seed=3, idempotency_key="k1")
        again = client.evaluate("baseline", ["bench_text"], gold, limit=8, seed=3, idempotency_key="k1")
        assert first["job_id"] == again["job_id"]
        job = client.wait_for_job(first["job_id"], poll_interval=0.1, timeout=120)
        assert job["request"]["seed"] == 3
        results = client.results(first["job_id"])
        assert {one.n for one in results.scores} == {8}
        (score, *_) = results.scores
        assert results.score("bench_text", score.metric) == 1.0
        with pytest.raises(DataError, match="0 numbers nothing of bench_text; it has bench_text: "):
            results.score("bench_text", "nothing")
        page = client.samples(first["job_id"], offset=6, limit=5, where="score == 1")
        assert (page["total"], len(page["samples"])) == (8, 2)
        assert client.get_queue_status()["queued_jobs"] == []


def test_jobs_that_do_not_complete(server: ServerProcess) -> None:
    async def ask() -> None:
        async with AsyncEvalClient(str(server.client.base_url)) as client:
            with pytest.raises(EvaluationServerError, match="limitt"):
                await client.evaluate("baseline", ["bench_text"], limitt=3)
            with pytest.raises(EvaluationServerError, match="unknown task 'no_such_task'"):
                await client.evaluate("baseline", ["no_such_task"])
            wrong = await client.evaluate("replay", ["bench_text"], model_args="path=no_such_samples.jsonl")
            with pytest.raises(JobFailedError, match=r"no_such_samples\.jsonl"):
                await client.wait_for_job(wrong["job_id"], poll_interval=0.1, timeout=120)
            with pytest.raises(EvaluationServerError, match="no results") as caught:
                await client.results(wrong["job_id"])
            assert caught.value.status == 404
            jobs = [await client.evaluate("baseline", ["bench_text"]) for _ in range(2)]
            await client.cancel_job(jobs[1]["job_id"])
            with pytest.raises(JobFailedError, match="was cancelled"):
                await client.wait_for_job(jobs[1]["job_id"], poll_interval=0.1, timeout=120)
            await client.wait_for_job(jobs[0]["job_id"], poll_interval=0.1, timeout=120)

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"model": "baselin"}, "model: unknown model 'baselin'; did you mean baseline?"),
        (
            {"model": "local-chat-completions"},
            "did you mean openai --model_args base_url=URL,model=M? (lm-eval",
        ),
        ({"model_args": {"strategyy": "gold"}}, "model_args: unknown argument 'strategyy'; did you mean strategy?"),
        (
            {"tasks": ["bench_text", "MMBench_DEV_EN"]},
            "unknown task 'MMBench_DEV_EN'; did you mean mmbench_en_dev?",
        ),
        ({"recipe": "qwen2_5_vll"}, "recipe: unknown recipe 'qwen2_5_vll'"),
        ({"recipe": "no_such_recipe:fast"}, "recipe: unknown recipe"),
        ({"gen_kwargs": {"temperatur": 0}}, "gen_kwargs: unknown generation option 'temperatur'; did you mean 'temper"),
        ({"gen_kwargs": "temperature=hot"}, "gen_kwargs: generation option 'temperature' must be"),
        ({"tasks": "bench_text"}, "give a list of at least one name"),
        ({"tasks": []}, "give a list of at least one name"),
        ({"until": "soon"}, "--until: 'soon' is not a rule"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistakes_are_refused_on_submission_with_their_field(
    server: ServerProcess, more: dict[str, Any], text: str
) -> None:
    answer = server.client.post("/evaluate", json={"model": "baseline", "tasks": ["bench_text"], **more})
    assert answer.status_code == 422 and text in answer.json()["detail"][0]["msg"], answer.text
    assert answer.json()["detail"][0]["loc"] == ["body", next(iter(more))]
    assert server.client.get("/queue").json()["queue_size"] == 0

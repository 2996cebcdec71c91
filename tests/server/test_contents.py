"""What a real server tells of real runs: scores, samples, files, log, events, figures; and checkpoints merged."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.server.outcome import results_files
from lmms_eval.server.store import Job
from tests.cases import for_each
from tests.server.process import ServerProcess, running_server

PLUGIN = Path(__file__).parent
SECRET = "canary-5Zq81xT0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    work = tmp_path_factory.mktemp("contents")
    text_task(work / "tasks", 12)
    (work / "shared").mkdir()
    words = ("--include_path", str(work / "tasks"), "--plugins", "faulty_plugin", "--allow_path", str(work / "shared"))
    more = ("--parallel", "2", "--grace", "3")
    variables = {"PYTHONPATH": str(PLUGIN), "SOME_API_KEY": SECRET, "LMMS_EVAL_SERVER_TOKEN": SECRET + "2"}
    with running_server(work / "server", *words, *more, **variables) as running:
        yield running


@pytest.fixture(scope="module")
def job(server: ServerProcess) -> str:
    job = server.submit(model="faulty", tasks=["bench_text"], seed=[1, 2, 3, 4], gen_kwargs={"until": [",", "\"'"]})
    assert server.wait(job)["status"] == "completed"
    return job


def _get(server: ServerProcess, path: str, **parameters: Any) -> Any:
    answer = server.client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_scores_are_told_as_numbers(server: ServerProcess, job: str) -> None:
    (model,) = _get(server, f"/jobs/{job}/results")["models"].values()
    (row,) = model["scores"]
    assert (row["task"], row["metric"], row["value"], row["n"]) == ("bench_text", "exact_match", 1.0, 12)
    assert 0 < row["low"] < row["high"] <= 1
    assert model["results"]["bench_text"]["exact_match,none"] == 1.0


def test_a_benchmark_that_writes_results_of_its_own_has_scores(server: ServerProcess) -> None:
    job = server.submit(model="baseline", model_args={"strategy": "gold"}, tasks=["megabench_demo"])
    told = server.wait(job)
    assert (told["status"], len(told["result"])) == ("completed", 1), told
    assert [*server.folder.glob(f"jobs/{job}/output/**/task_results.json")]  # the benchmark's, no run's
    (model,) = _get(server, f"/jobs/{job}/results")["models"].values()
    assert {row["task"] for row in model["scores"]} == {"megabench_demo"}
    assert _get(server, f"/jobs/{job}/samples")["total"] == 59


@for_each("name", ["task", "coco_captions_val2014_alg", "2026", "3d_task", "20260101_000000_megabench"])
def test_results_of_a_run_are_told_from_other_files(tmp_path: Path, name: str) -> None:
    job = Job("j", 1, "completed", {"model": "m"}, str(tmp_path), "2026-01-01T00:00:00+00:00")
    output = tmp_path / "output"
    for folder in (output, output / "model", output / "20260101_000000_megabench_demo"):
        folder.mkdir(exist_ok=True, parents=True)
        (folder / f"{name}_results.json").write_text("[]")
    assert results_files(job) == []
    run = output / "model" / "20260101_000000_results.json"
    run.write_text("{}")
    assert results_files(job) == [run]


def test_options_reach_the_run_as_they_were_given(server: ServerProcess, job: str) -> None:
    told = server.job(job)
    assert told["request"]["seed"] == [1, 2, 3, 4]
    (files,) = told["result"].values()
    arguments = json.loads(Path(files["results"]).read_text())["config"]["resolved_cli_args"]
    assert arguments["gen_kwargs"] == {"until": [",", "\"'"]}
    assert arguments["seed"] == [1, 2, 3, 4]


def test_samples_come_in_pages(server: ServerProcess, job: str) -> None:
    page = _get(server, f"/jobs/{job}/samples", offset=10, limit=5)
    assert [page["total"], [sample["doc_id"] for sample in page["samples"]]] == [12, [10, 11]]
    some = _get(server, f"/jobs/{job}/samples", task="bench_text", where="doc_id >= 4", offset=2, limit=3)
    assert [some["total"], [sample["doc_id"] for sample in some["samples"]]] == [8, [6, 7, 8]]
    for parameters in ({"limit": 0}, {"limit": 501}, {"offset": -1}, {"task": "none"}, {"where": "colour == 1"}):
        assert server.client.get(f"/jobs/{job}/samples", params=parameters).status_code == 400, parameters


def test_files_come_as_an_archive_and_one_by_one(server: ServerProcess, job: str) -> None:
    content = server.client.get(f"/jobs/{job}/files").content
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    names = archive.namelist()
    (results,) = [name for name in names if name.endswith("_results.json")]
    assert server.client.get(f"/jobs/{job}/files/{results}").content == archive.read(results)
    assert any(name.endswith("/scores-0.jsonl") for name in names)
    output = server.folder / "jobs" / job / "output"
    (output / "link").symlink_to("/etc/passwd")
    (output / "linked").symlink_to("/etc")
    for name in ("link", "linked/passwd", "%2e%2e/job.json", "..%2fjob.json", "%2fetc%2fpasswd"):
        assert server.client.get(f"/jobs/{job}/files/{name}").status_code == 404, name
    again = zipfile.ZipFile(io.BytesIO(server.client.get(f"/jobs/{job}/files").content))
    assert again.namelist() == names


def test_no_secret_of_the_environment_is_in_an_answer_or_a_file(server: ServerProcess, job: str) -> None:
    archive = zipfile.ZipFile(io.BytesIO(server.client.get(f"/jobs/{job}/files").content))
    texts = [archive.read(name) for name in archive.namelist()]
    for path in (f"/jobs/{job}", f"/jobs/{job}/results", f"/jobs/{job}/log", "/metrics", "/version", "/queue"):
        texts.append(server.client.get(path).content)
    texts += [path.read_bytes() for path in server.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(texts) > 10
    assert not any(SECRET.encode() in text for text in texts)


def test_runs_in_one_output_folder_are_told_apart(server: ServerProcess, tmp_path: Path) -> None:
    shared = server.folder.parent / "shared" / "out"
    jobs = {
        limit: server.submit(
            model="faulty", tasks=["bench_text"], limit=limit, output_dir=str(shared), model_args={"pretrained": "o/m"}
        )
        for limit in (3, 5)
    }
    for limit, job in jobs.items():
        told = server.wait(job)
        assert told["status"] == "completed", told
        assert set(told["result"]) == {"o__m"}
        assert _get(server, f"/jobs/{job}/samples")["total"] == limit
        archive = zipfile.ZipFile(io.BytesIO(server.client.get(f"/jobs/{job}/files").content))
        assert sum(name.endswith("_results.json") for name in archive.namelist()) == 1


def test_events_go_on_behind_the_last_one(server: ServerProcess, job: str) -> None:
    def events(place: str) -> list[tuple[str, str, Any]]:
        text = server.client.get(f"/jobs/{job}/events", headers={"Last-Event-ID": place}).text
        found = []
        for block in text.strip().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines())
            found.append((lines["event"], lines.get("id", ""), json.loads(lines["data"])))
        return found

    whole = events("0")
    assert [kind for kind, _, _ in whole][-1] == "state"
    assert whole[-1][2]["status"] == "completed"
    (progress,) = [told for kind, _, told in whole if kind == "progress"]
    assert (progress["state"], progress["requested"], progress["done"], progress["failed"]) == ("complete", 12, 12, 0)
    log = "".join(told["text"] for kind, _, told in whole if kind == "log")
    last = [place for kind, place, _ in whole if kind == "log"][-1]
    assert log == server.client.get(f"/jobs/{job}/log").text
    assert [kind for kind, _, _ in events(last) if kind == "log"] == []
    (rest,) = [told["text"] for kind, _, told in events("100") if kind == "log"]
    assert log.encode().endswith(rest.encode()) and len(rest.encode()) == len(log.encode()) - 100
    assert server.client.get(f"/jobs/{job}/events", headers={"Last-Event-ID": "x"}).status_code == 400


def test_events_of_a_run_that_goes_on_tell_its_end(server: ServerProcess) -> None:
    job = server.submit(model="faulty", tasks=["bench_text"], model_args={"mode": "hang"})
    states = []
    with server.client.stream("GET", f"/jobs/{job}/events") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: ") and "status" in line:
                states.append(json.loads(line[6:])["status"])
                if states == ["running"]:
                    server.client.delete(f"/jobs/{job}")
    assert states == ["running", "cancelled"]


def test_figures_and_versions(server: ServerProcess, job: str) -> None:
    text = server.client.get("/metrics").text
    assert 'lmms_eval_jobs{state="completed"}' in text
    assert 'route="/jobs/{job_id}"' in text
    assert job not in text
    assert _get(server, "/version")["python"].count(".") == 2
    assert "bench_text" in _get(server, "/tasks")["tasks"]
    assert "faulty" in _get(server, "/models")["models"]
    page = server.client.get("/docs")
    assert "POST /evaluate" in page.text
    assert "<script" not in page.text and "src=" not in page.text
    fields = _get(server, "/openapi.json")["paths"]["/evaluate"]["post"]["requestBody"]["content"]["application/json"]
    assert {"model", "num_gpus", "seed", "until", "where"} <= set(fields["schema"]["properties"])


def test_requests_that_are_refused(server: ServerProcess) -> None:
    whole = {"model": "faulty", "tasks": ["bench_text"]}
    for status, more, part in (
        (422, {"limt": 3}, "did you mean limit?"),
        (422, {"limit": "many"}, "limit"),
        (422, {"where": "doc_id =="}, "--where"),
        (403, {"trust_remote_code": True}, "--allow_code"),
        (403, {"include_path": "/etc"}, "--allow_code"),
        (403, {"output_dir": "/etc/out"}, "--allow_path"),
        (403, {"model_args": {"base_url": "http://10.0.0.1/v1"}}, "--allow_path URL"),
        (403, {"model_args": "api_key=abc"}, "environment"),
    ):
        answer = server.client.post("/evaluate", json={**whole, **more})
        assert answer.status_code == status, (more, answer.text)
        assert part in answer.text, (more, answer.text)
    assert server.client.post("/evaluate", content=b"{").status_code == 422


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_sharded_checkpoint_is_merged(server: ServerProcess) -> None:
    import torch
    import torch.distributed.checkpoint as shards
    from safetensors.torch import load_file

    checkpoint = server.folder.parent / "shared" / "checkpoint"
    weights = {"layer.weight": torch.arange(6.0).reshape(2, 3)}
    shards.save({"model": weights}, checkpoint_id=str(checkpoint / "pytorch_model_fsdp_0"), no_dist=True)
    answer = server.client.post("/merge", json={"checkpoint_path": str(checkpoint)}, timeout=120)
    assert answer.status_code == 200, answer.text
    (file,) = Path(answer.json()["merged_path"]).glob("*.safetensors")
    assert {name: value.tolist() for name, value in load_file(file).items()} == {
        "layer.weight": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    }
    for status, path in ((404, checkpoint / "none"), (400, server.folder.parent / "shared"), (403, "/etc")):
        assert server.client.post("/merge", json={"checkpoint_path": str(path)}).status_code == status, path

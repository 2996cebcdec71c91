"""``--use_cache`` over whole runs: what is the same question, and what another one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from benchmarks.workload import picture_task
from lmms_eval.api.model import lmms
from lmms_eval.config import build_config
from lmms_eval.errors import UsageError
from lmms_eval.evaluation import caching
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.cases import for_each
from tests.evaluation.kit import DOCUMENTS, NAME, Told, config, right, tasks

SECRET = "sk-very-secret-0123456789abcdef"


@pytest.fixture
def said() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logger.add(lambda message: lines.append(str(message)), level="INFO")
    yield lines
    logger.remove(handler)


def cached(tmp: Path, out: str, model: Any, **over: Any) -> RunReport:
    """A run into an output folder of its own, with the common cache."""
    chosen = {"model": "told", "use_cache": str(tmp / "cache"), "output_path": str(tmp / out), **over}
    return run(config(tmp, **chosen), model)


def part(report: RunReport) -> dict[str, int]:
    return {name: number for name, number in report.results["cache"].items() if name != "path" and number}


def test_a_second_identical_run_asks_nothing(tmp_path: Path, said: list[str]) -> None:
    first = cached(tmp_path, "one", Told())
    model = Told()
    again = cached(tmp_path, "two", model, log_samples=True)
    assert model.asked == []
    assert (part(first), part(again)) == ({"stored": DOCUMENTS}, {"hit": DOCUMENTS})
    assert again.results["cache"]["path"] == str(tmp_path / "cache" / "responses.db")
    assert again.results["timing"]["asked"] == 0
    assert again.results["results"] == first.results["results"]
    assert again.results["prompt_fingerprint"] == first.results["prompt_fingerprint"]
    (line,) = [line for line in said if f"{DOCUMENTS} hit" in line]
    assert str(tmp_path / "cache" / "responses.db") in line


def test_without_the_option_there_is_no_cache(tmp_path: Path) -> None:
    assert "cache" not in run(config(tmp_path)).results


CHANGED: dict[str, dict[str, Any]] = {
    "model": {"object": "other"},
    "model argument": {"model_args": "pretrained=b"},
    "generation option": {"gen_kwargs": "max_new_tokens=17"},
    "further generation option": {"gen_kwargs": "min_p=0.1"},
    "system prompt": {"system_instruction": "Be brief."},
    "format of pictures": {"image_encode_format": "JPEG"},
}
THE_SAME: dict[str, dict[str, Any]] = {
    "batch size": {"batch_size": 7},
    "run-only model arguments": {"model_args": "pretrained=a,num_concurrent=3,timeout=9,max_retries=2"},
    "secret": {"model_args": f"pretrained=a,api_key={SECRET}"},
    "preparation": {"media_workers": 1, "prefetch_mb": 9},
    "statistics": {"bootstrap_iters": 10, "error_budget": 0.5},
    "one document": {"limit": 3},
    "seed": {"seed": "5,6,7,8"},
}


def second(tmp: Path, over: dict[str, Any]) -> tuple[list[int], RunReport]:
    """Documents that a second run asks, and its report."""
    usual = {"model_args": "pretrained=a"}
    cached(tmp, "one", Told(), **usual)
    model = Told(name=over.pop("object", "told"))
    report = cached(tmp, "two", model, **{**usual, **over})
    return model.asked, report


@for_each("over", CHANGED.values(), ids=CHANGED)
def test_one_factor_changed_is_a_miss(tmp_path: Path, over: dict[str, Any]) -> None:
    asked, report = second(tmp_path, dict(over))
    assert sorted(asked) == list(range(DOCUMENTS))
    assert part(report) == {"stored": DOCUMENTS}


@for_each("over", THE_SAME.values(), ids=THE_SAME)
def test_what_changes_no_answer_is_a_hit(tmp_path: Path, over: dict[str, Any]) -> None:
    asked, report = second(tmp_path, dict(over))
    assert asked == []
    assert part(report) == {"hit": over.get("limit", DOCUMENTS)}


def test_one_prompt_changed_is_one_miss(tmp_path: Path) -> None:
    cached(tmp_path, "one", Told())
    data = tmp_path / "tasks" / f"{NAME}.jsonl"
    data.write_text(data.read_text().replace("Question 2:", "Question two:"))
    model = Told()
    assert part(cached(tmp_path, "two", model)) == {"hit": DOCUMENTS - 1, "stored": 1}
    assert model.asked == [2]


def test_another_picture_under_the_same_path_is_a_miss(tmp_path: Path) -> None:
    picture_task(tmp_path / "tasks", 4, pictures=4)
    over = {"tasks": "bench_image"}
    cached(tmp_path, "one", Told(), **over)
    paths = [tmp_path / "tasks" / f"bench_image_{number}.jpg" for number in (1, 2)]
    content = paths[0].read_bytes()
    paths[0].write_bytes(paths[1].read_bytes())
    os.utime(paths[0], ns=(10**18, 10**18))
    assert paths[0].read_bytes() != content
    model = Told()
    assert part(cached(tmp_path, "two", model, **over)) == {"hit": 3, "stored": 1}
    assert model.asked == [1]


def test_weights_written_anew_under_the_same_path_are_a_miss(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.bin").write_bytes(b"1")
    over = {"model_args": f"pretrained={weights}"}
    cached(tmp_path, "one", Told(), **over)
    (weights / "model.bin").write_bytes(b"22")
    assert part(cached(tmp_path, "two", Told(), **over)) == {"stored": DOCUMENTS}


def test_sampled_generation_is_skipped(tmp_path: Path) -> None:
    for out in ("one", "two"):
        model = Told()
        report = cached(tmp_path, out, model, gen_kwargs="temperature=0.7")
        assert (part(report), len(model.asked)) == ({"skipped": DOCUMENTS}, DOCUMENTS)


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    cached(tmp_path, "one", Told(), model_args=f"base_url=http://me:{SECRET}@h.example/v1,api_key={SECRET},x=1")
    files = list((tmp_path / "cache").iterdir())
    assert len(files) >= 2
    for file in files:
        assert SECRET.encode() not in file.read_bytes()
    report = cached(tmp_path, "two", Told(), model_args="base_url=http://me:other@h.example/v1,x=1")
    assert part(report) == {"hit": DOCUMENTS}  # so no secret can be in the keys


def test_the_baseline_answers_from_documents_not_prompts(tmp_path: Path) -> None:
    def ask(out: str) -> RunReport:
        return run(config(tmp_path, use_cache=str(tmp_path / "c.db"), output_path=str(tmp_path / out)))

    ask("one")
    assert part(ask("two")) == {"hit": DOCUMENTS}
    data = tmp_path / "tasks" / f"{NAME}.jsonl"
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    data.write_text("".join(json.dumps({**row, "answer": "changed"}) + "\n" for row in rows))
    report = ask("three")
    assert part(report) == {"stored": DOCUMENTS}
    assert report.results["results"][NAME]["exact_match,none"] == 1.0


class Plugin(lmms):
    is_simple = True

    def generate_until(self, requests: list[Any]) -> list[str]:
        return [request.args[0].partition("ANSWER=")[2] for request in requests]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> list[Any]:
        raise NotImplementedError


@pytest.mark.parametrize("make", [lambda: Told(name=""), Plugin], ids=["no identity", "plugin object"])
def test_a_model_object_that_nothing_tells_from_others_is_not_cached(
    tmp_path: Path, make: Callable[[], Any], said: list[str]
) -> None:
    for out in ("one", "two"):
        assert part(cached(tmp_path, out, make())) == {"skipped": DOCUMENTS}
    assert any("nothing is cached" in line for line in said)


def test_a_class_plugin_by_name_is_cached_by_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "_is_known", lambda collected: True)  # as if the registry had built it
    first, again = cached(tmp_path, "one", Plugin()), cached(tmp_path, "two", Plugin())
    assert (part(first), part(again)) == ({"stored": DOCUMENTS}, {"hit": DOCUMENTS})
    assert again.results["results"][NAME]["exact_match,none"] == 1.0
    assert again.results["prompt_fingerprint"] == first.results["prompt_fingerprint"]
    assert again.results["timing"]["asked"] == 0


def test_an_interrupted_or_failed_run_leaves_what_it_has(tmp_path: Path) -> None:
    def breaks(request: Any) -> Any:
        if request.doc_id == 4:
            raise RuntimeError("the server is gone")
        return right(request)

    with pytest.raises(RuntimeError):
        cached(tmp_path, "one", Told(breaks))
    model = Told()
    report = cached(tmp_path, "two", model)
    assert 4 in model.asked and part(report)["hit"] == DOCUMENTS - len(model.asked) > 0


def test_a_path_that_cannot_be_used_is_told_before_the_model_is_built(tmp_path: Path) -> None:
    tasks(tmp_path)
    (tmp_path / "file").write_text("x")
    values = {"model": "no such model", "tasks": NAME, "use_cache": str(tmp_path / "file" / "below")}
    with pytest.raises(UsageError, match=r"response cache .* cannot be opened"):
        run(build_config(values))

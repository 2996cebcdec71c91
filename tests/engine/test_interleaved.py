"""Runs of a model that answers with pictures: storing, scoring, resuming, caching and gathering."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import GeneratedImage, Request, Response
from lmms_eval.api.task import Selection, TaskOptions
from lmms_eval.engine.drive import AskReport
from lmms_eval.engine.evaluate import EngineOptions, RunScores, evaluate
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.records import response_record
from lmms_eval.engine.response_cache import CacheFile, CacheKeys, ResponseCache, is_good
from lmms_eval.engine.share import Share
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.engine.team import Team
from lmms_eval.errors import JournalError
from lmms_eval.results.samples_file import sample_rows
from lmms_eval.tasks.yaml.task import YamlTask
from tests.engine.fakes import FakeModel
from tests.engine.scoring_task import workers
from tests.engine.test_team import team_of
from tests.painting import DIFFERENT, painted, png
from tests.tasks.kit import Function, loaded

ROWS = [{"question": f"ANSWER=a{number}", "answer": f"a{number}"} for number in range(12)]
CODE = """
from pathlib import Path


def process_results(doc, results):
    parts = getattr(results[0], "parts", ())
    pictures = [part for part in parts if not isinstance(part, str)]
    sizes = [len(Path(picture.path).read_bytes()) for picture in pictures]
    return {"acc": float(results[0] == doc["answer"]), "sizes": sizes, "order": [isinstance(p, str) for p in parts]}
"""
ACC = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]


def task(folder: Path, scoring: str = "inline", **changes: Any) -> YamlTask:
    """Twelve documents, scored by text and pictures."""
    functions = {"process_results": Function("utils.process_results"), "metric_list": ACC, "scoring": scoring}
    options = changes.pop("options", None)
    return loaded(folder, {**functions, "doc_to_text": "question", **changes}, CODE, options, ROWS)


def run(folder: Path, asked: YamlTask, model: Model, cache: ResponseCache | None = None) -> RunScores:
    store = RunStore(folder, "scoring")
    try:
        options = EngineOptions(grace_s=1.0, cache=cache, score_workers=workers(1))
        result = evaluate([plan_task(asked, None, 0)], Selection((asked,)), model, store, options)
    finally:
        store.close()
        if cache is not None:
            cache.close()
    assert result is not None
    return result


def rows(folder: Path, result: RunScores) -> list[dict[str, Any]]:
    store = RunStore(folder, "scoring")
    found = json.loads(json.dumps(list(sample_rows(result.tasks[0].task, store, result.tasks[0].doc_ids))))
    store.close()
    return [{key: value for key, value in row.items() if key != "elapsed"} for row in found]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "images").iterdir())


def picture(number: int) -> GeneratedImage:
    return generated_image(png(number % DIFFERENT))


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_scoring_sees_the_pictures_and_samples_list_them(tmp_path: Path, scoring: str) -> None:
    result = run(tmp_path / "run", task(tmp_path / "task", scoring), FakeModel(painted))
    assert result.tasks[0].metrics[0].value == 1.0  # "a0 " is right: texts are trimmed as ever
    assert files(tmp_path / "run") == sorted(picture(number).file_name for number in range(DIFFERENT))
    found = rows(tmp_path / "run", result)
    for row in found:
        image = picture(row["doc_id"])
        named = {"type": "image", "path": f"images/{image.file_name}", "sha256": image.sha256}
        text = f"a{row['doc_id']}"
        assert row["parts"] == [{"type": "text", "text": text}, named, {"type": "text", "text": " "}]
        assert (row["sizes"], row["order"]) == ([len(png(row["doc_id"] % DIFFERENT))], [True, False])
        assert row["filtered_resps"] == f"{text} "
    journals = "".join(path.read_text() for path in (tmp_path / "run").glob("*.jsonl"))
    assert "PNG" not in journals and "iVBOR" not in journals and str(tmp_path) not in journals


def test_worker_processes_and_threads_give_the_same(tmp_path: Path) -> None:
    found = [
        rows(tmp_path / scoring, run(tmp_path / scoring, task(tmp_path / "task", scoring), FakeModel(painted)))
        for scoring in ("inline", "process")
    ]
    assert found[0] == found[1]


def test_reasoning_is_cut_from_the_text_and_pictures_stay(tmp_path: Path) -> None:
    def thinks(request: Request) -> Response:
        thought = ["<think>", picture(0), "</think>"]
        return Response.interleaved(request.id, [*thought, *painted(request).parts])

    options = TaskOptions(reasoning_tags=(("<think>", "</think>"),))
    result = run(tmp_path / "run", task(tmp_path / "task", options=options), FakeModel(thinks))
    assert result.tasks[0].metrics[0].value == 1.0
    assert all(len(row["sizes"]) == 1 for row in rows(tmp_path / "run", result))


def test_text_filters_and_metrics_work_on(tmp_path: Path) -> None:
    chosen = {
        "process_results": None,
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "filter_list": [
            {"name": "upper", "filter": [{"function": "uppercase"}, {"function": "take_first"}]},
            {
                "name": "number",
                "filter": [{"function": "regex", "regex_pattern": "(a\\d+)"}, {"function": "take_first"}],
            },
        ],
    }
    result = run(tmp_path / "run", task(tmp_path / "task", **chosen), FakeModel(painted))
    values = {metric.filter: metric.value for metric in result.tasks[0].metrics}
    assert values == {"upper": 0.0, "number": 1.0}


def test_an_answer_without_pictures_has_an_ordinary_row(tmp_path: Path) -> None:
    plain = FakeModel(lambda request: Response(request.id, text="a"))
    found = rows(tmp_path / "run", run(tmp_path / "run", task(tmp_path / "task"), plain))
    assert not any("parts" in row for row in found)
    assert not (tmp_path / "run" / "images").exists()


def test_repeats_list_the_parts_of_each_answer(tmp_path: Path) -> None:
    def second_alone(request: Request) -> Response:
        return painted(request) if request.repeat else Response(request.id, text="plain")

    result = run(tmp_path / "run", task(tmp_path / "task", repeats=2), FakeModel(second_alone))
    row = rows(tmp_path / "run", result)[3]
    assert row["raw_resps"] == ["plain", "a3 "]
    assert row["parts"][0] == [{"type": "text", "text": "plain"}]
    assert [part["type"] for part in row["parts"][1]] == ["text", "image", "text"]


def test_rounds_list_the_parts_of_each_round_and_see_earlier_ones(tmp_path: Path) -> None:
    code = """
def doc_to_text(doc, previous_output=None, round_idx=None, previous_round_info=None, **_):
    if round_idx is None:
        return doc["question"]
    shown = len(getattr(previous_output[-1], "images", ()))
    return None, f"{shown} ANSWER=second", round_idx >= 2, None, None


def process_results(doc, results):
    return {"acc": float(sum(len(getattr(text, "images", ())) for text in results[0]))}
"""
    changes = {
        "output_type": "generate_until_multi_round",
        "doc_to_text": Function("utils.doc_to_text"),
        "process_results": Function("utils.process_results"),
        "metric_list": ACC,
    }
    asked = loaded(tmp_path / "task", changes, code, rows=ROWS[:2])

    def first_alone(request: Request) -> Response:
        return painted(request) if not request.round else Response(request.id, text=request.context)

    result = run(tmp_path / "run", asked, FakeModel(first_alone))
    assert result.tasks[0].metrics[0].value == 1.0
    row = rows(tmp_path / "run", result)[0]
    assert row["filtered_resps"] == ["a0 ", "1 ANSWER=second"]
    assert [[part["type"] for part in of_round] for of_round in row["parts"]] == [["text", "image", "text"], ["text"]]


def test_a_picture_is_on_disk_before_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def checked(response: Response, prompt: str) -> dict[str, Any]:
        seen.extend(part for part in response.parts if isinstance(part, GeneratedImage))
        assert all(Path(str(image.path)).is_file() and image.data is None for image in seen)
        return response_record(response, prompt)

    monkeypatch.setattr("lmms_eval.engine.store.response_record", checked)
    run(tmp_path / "run", task(tmp_path / "task"), FakeModel(painted))
    assert len(seen) == len(ROWS)


def test_a_second_start_asks_only_what_lost_its_picture(tmp_path: Path) -> None:
    first = run(tmp_path / "run", task(tmp_path / "task"), FakeModel(painted))
    before = rows(tmp_path / "run", first)
    model = FakeModel(painted)
    run(tmp_path / "run", task(tmp_path / "task"), model)
    assert model.asked == []
    (tmp_path / "run" / "images" / picture(3).file_name).unlink()
    (tmp_path / "run" / "images" / picture(1).file_name).write_bytes(png(1)[:20])
    again = run(tmp_path / "run", task(tmp_path / "task"), model)
    assert sorted(int(request.split("/")[1]) for request in model.asked) == [1, 3, 11]
    assert rows(tmp_path / "run", again) == before
    assert again.prompt_fingerprint == first.prompt_fingerprint


def test_a_full_disk_ends_the_run_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "images").write_text("in the way")
    with pytest.raises(JournalError, match="make room and start the same command again"):
        run(tmp_path / "run", task(tmp_path / "task"), FakeModel(painted, batch=1))
    assert (tmp_path / "run" / "responses-0.jsonl").read_text() == ""
    (tmp_path / "run" / "images").unlink()
    assert run(tmp_path / "run", task(tmp_path / "task"), FakeModel(painted)).tasks[0].outcome.scored == len(ROWS)


def test_a_full_disk_ends_asynchronous_models_too(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "images").write_text("in the way")
    with pytest.raises(JournalError, match="cannot write the picture"):
        run(tmp_path / "run", task(tmp_path / "task"), Asynchronous())


def test_what_is_no_picture_fails_alone(tmp_path: Path) -> None:
    def one_bad(request: Request) -> Response:
        if request.doc_id == 5:
            return Response.interleaved(request.id, ["x", GeneratedImage.from_bytes(b"nope", "image/png")])
        return painted(request)

    outcome = run(tmp_path / "run", task(tmp_path / "task"), FakeModel(one_bad)).tasks[0].outcome
    assert (outcome.scored, outcome.failed) == (len(ROWS) - 1, 1)
    assert next(iter(outcome.reasons)).startswith("failed: malformed: a picture of 4 bytes")


def test_a_document_whose_scoring_raises_shows_its_parts(tmp_path: Path) -> None:
    raises = {"process_results": Function("utils.raises"), "metric_list": ACC, "doc_to_text": "question"}
    asked = loaded(tmp_path / "task", raises, "def raises(doc, results):\n    return 1 / 0", None, ROWS)
    store = RunStore(tmp_path / "run", "scoring")
    result = evaluate([plan_task(asked, None, 0)], Selection((asked,)), FakeModel(painted), store, EngineOptions())
    assert result is not None
    row = next(sample_rows(asked, store, [0]))
    store.close()
    assert row["status"] == "failed" and "ZeroDivisionError" in row["error"]
    assert [part["type"] for part in row["parts"]] == ["text", "image", "text"]


class Asynchronous(Model):
    """``painted`` on an event loop."""

    async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:  # type: ignore[override]
        while requests := await stream.take_async(3):
            for request in requests:
                yield painted(request)


def test_asynchronous_models(tmp_path: Path) -> None:
    assert run(tmp_path / "run", task(tmp_path / "task"), Asynchronous()).tasks[0].metrics[0].value == 1.0
    assert len(files(tmp_path / "run")) == DIFFERENT


def cache(tmp: Path) -> ResponseCache:
    return ResponseCache(CacheFile(tmp / "c.db"), CacheKeys({"backend": "tests.Fake"}, False), "fake")


def test_a_cache_hit_brings_the_pictures_to_the_new_run(tmp_path: Path) -> None:
    first = run(tmp_path / "1", task(tmp_path / "task"), FakeModel(painted), cache(tmp_path))
    model = FakeModel(painted)
    again = run(tmp_path / "2", task(tmp_path / "task"), model, cache(tmp_path))
    assert model.asked == [] and again.asking.cache["hit"] == len(ROWS)
    assert rows(tmp_path / "2", again) == rows(tmp_path / "1", first)
    assert files(tmp_path / "2") == files(tmp_path / "1")
    for name in files(tmp_path / "2"):
        assert (tmp_path / "2/images" / name).read_bytes() == (tmp_path / "1/images" / name).read_bytes()


def test_a_damaged_picture_in_the_cache_is_never_answered_with(tmp_path: Path) -> None:
    run(tmp_path / "1", task(tmp_path / "task"), FakeModel(painted), cache(tmp_path))
    held = cache(tmp_path)
    record = b"substr(CAST(record AS TEXT), 1, length(CAST(record AS TEXT)) - 9) || 'AAAA' || '\"}}}'"
    held.file._connection.execute(f"UPDATE responses SET record = CAST({record.decode()} AS BLOB)")
    held.close()
    model = FakeModel(painted)
    again = run(tmp_path / "2", task(tmp_path / "task"), model, cache(tmp_path))
    assert len(model.asked) == again.asking.cache["damaged"] == len(ROWS)


def test_a_full_disk_at_a_cache_hit_ends_the_run(tmp_path: Path) -> None:
    run(tmp_path / "1", task(tmp_path / "task"), FakeModel(painted), cache(tmp_path))
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "images").write_text("in the way")
    with pytest.raises(JournalError, match="cannot write the picture"):
        run(tmp_path / "2", task(tmp_path / "task"), FakeModel(painted), cache(tmp_path))


def test_pictures_without_text_are_good_answers() -> None:
    assert is_good(Response.interleaved("i", [picture(1)]))
    assert not is_good(Response.interleaved("i", [" "]))
    assert not is_good(Response("i", text="", parts=(GeneratedImage("0" * 64, "image/png"),)))  # no bytes to keep


def noted(team: Team) -> list[str]:
    """Names of the values that this process publishes from now on."""
    published: list[str] = []
    publish_bytes = team.publish_bytes

    def publish(name: str, data: bytes) -> None:
        published.append(name)
        publish_bytes(name, data)

    team.publish_bytes = publish  # type: ignore[method-assign]
    return published


def test_processes_without_shared_files_bring_their_pictures_together(tmp_path: Path) -> None:
    teams = team_of(2)
    published = noted(teams[1])
    found: dict[int, RunScores | None] = {}

    def slowly(request: Request) -> Response:
        time.sleep(0.02)
        return painted(request)

    def work(rank: int) -> None:
        asked = task(tmp_path / f"task{rank}")
        store = RunStore(tmp_path / f"run{rank}", "scoring", rank)
        share, plans = Share(teams[rank], shared_files=False), [plan_task(asked, None, 0)]
        options = EngineOptions(StreamLimits(least_requests=1), grace_s=1.0)
        found[rank] = evaluate(plans, Selection((asked,)), FakeModel(slowly, 1), store, options, share)
        store.close()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = found[0]
    assert result is not None and found[1] is None
    alone = run(tmp_path / "alone", task(tmp_path / "task"), FakeModel(painted))
    assert rows(tmp_path / "run0", result) == rows(tmp_path / "alone", alone)
    sent = [name for name in published if name.startswith("images/")]
    assert len(sent) == len(set(sent)) == len(files(tmp_path / "run1")) > 0
    assert files(tmp_path / "run0") == files(tmp_path / "alone")


def test_a_large_picture_goes_once_in_pieces_and_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.engine.share.RECORDS_AT_ONCE", 1)
    big = generated_image(png(1, side=1) + bytes(3_000_000))
    first, second = team_of(2)
    published = noted(second)
    sender, receiver = RunStore(tmp_path / "1", "scoring", 1), RunStore(tmp_path / "0", "scoring")
    sender.images.take_in(Response.interleaved("t/0/0/0/0", [big]))
    named = {"sha256": big.sha256, "media_type": big.media_type}
    for doc_id in range(2):
        answer = {"value": "", "parts": [named], "input": ""}
        sender.add_score({"task": "t", "doc_id": doc_id, "answers": [answer], "scores": []})
    Share(second, shared_files=False).gather(sender, AskReport())
    assert Share(first, shared_files=False).gather(receiver, AskReport())
    assert published.count(f"images/1/{big.file_name}") == 1
    assert receiver.images.read(big) == big.data
    assert receiver.done() == {"t": {0, 1}}
    assert not first.store.check([f"{second._name('images/1')}/{big.file_name}"])  # let go again
    for store in (sender, receiver):
        store.close()

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.errors import DataError, RunLockedError, UsageError
from lmms_eval.evaluation import run as run_module
from lmms_eval.evaluation.record import open_record
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.results.tables import make_table
from tests.cases import for_each
from tests.evaluation.kit import DOCUMENTS, NAME, Told, config, fails_on, inputs_of, right, run_folders, tasks

SCORE = "exact_match,none"


def told(tmp: Path, model: Told, **over: Any) -> RunReport:
    return run(config(tmp, model="told", log_samples=True, **over), model)


def samples(tmp: Path) -> list[dict[str, Any]]:
    (path,) = (tmp / "out").rglob("*_samples_*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_clean_run(tmp_path: Path) -> None:
    model = Told()
    report = told(tmp_path, model)
    assert report.exit_code == 0
    assert report.results["results"][NAME][SCORE] == 1.0
    (path,) = (tmp_path / "out").rglob("*_results.json")
    assert json.loads(path.read_text()) == json.loads(json.dumps(report.results))
    assert [row["doc_id"] for row in samples(tmp_path)] == list(range(DOCUMENTS))
    assert f"|{NAME}" in report.table.replace(" ", "") and any(line.startswith("written: ") for line in report.lines)
    assert not model.closed and sorted(model.asked) == list(range(DOCUMENTS))
    assert list(report.results["timing"])[:4] == ["collect", "ask", "score", "aggregate"]


def test_a_withheld_run_goes_on_by_the_same_command(tmp_path: Path) -> None:
    first = told(tmp_path, Told(fails_on(1, 4)))
    assert first.exit_code == 3 and first.results["state"] == "withheld"
    assert [row["status"] for row in samples(tmp_path)].count("failed") == 2
    model = Told()
    again = told(tmp_path, model)
    assert (again.exit_code, sorted(model.asked)) == (0, [1, 4])
    assert again.results["results"][NAME][SCORE] == 1.0
    assert again.results["date"] == first.results["date"] and again.results["timing"]["resumed"] == DOCUMENTS - 2
    assert [row["status"] for row in samples(tmp_path)] == ["scored"] * DOCUMENTS  # the same file, written anew


def test_the_launcher_that_restarts_gets_no_exit_code_3(tmp_path: Path) -> None:
    report = told(tmp_path, Told(fails_on(1)), max_restarts=2)
    assert (report.exit_code, report.results["state"]) == (0, "withheld")


def test_a_completed_run_is_asked_anew_and_with_resume_it_is_not(tmp_path: Path) -> None:
    told(tmp_path, Told())
    anew, resumed = Told(), Told()
    told(tmp_path, anew)
    told(tmp_path, resumed, resume=True)
    assert len(anew.asked) == DOCUMENTS and resumed.asked == []
    assert len(list((tmp_path / "out").rglob("*_results.json"))) == 2


@for_each(
    ("file", "field", "asked"),
    [("scores-0.jsonl", b'"exact_match":1.0', []), ("responses-0.jsonl", b'"text":"', [0])],
    ids=["score", "answer"],
)
def test_a_damaged_line_is_scored_or_asked_again(tmp_path: Path, file: str, field: bytes, asked: list[int]) -> None:
    told(tmp_path, Told())
    (folder,) = run_folders(tmp_path)
    data = (folder / file).read_bytes()
    flipped = field[:-2] + bytes([field[-2] ^ 2]) + field[-1:]
    (folder / file).write_bytes(data.replace(field, flipped, 1))
    if asked:  # a document is asked again for its score alone
        (folder / "scores-0.jsonl").unlink()
    model = Told()
    report = told(tmp_path, model, resume=True)
    assert report.results["results"][NAME][SCORE] == 1.0
    assert model.asked == asked


def test_new_reasoning_tags_only_score_again(tmp_path: Path) -> None:
    def thinking(request: Request) -> Response:
        return Response(request.id, text=f"<hm>well</hm>{right(request).text}")

    first = told(tmp_path, Told(thinking))
    assert first.results["results"][NAME][SCORE] == 0.0
    model = Told(thinking)
    again = told(tmp_path, model, reasoning_tags='[["<hm>", "</hm>"]]', resume=True)
    assert model.asked == [] and again.results["results"][NAME][SCORE] == 1.0


def test_an_interrupt_writes_what_there_is_and_the_next_start_goes_on(tmp_path: Path) -> None:
    answered: list[int] = []

    def interrupts(request: Request) -> Response:
        if not answered:
            os.kill(os.getpid(), signal.SIGTERM)
        answered.append(request.doc_id)
        return right(request)

    first = told(tmp_path, Told(interrupts))
    assert first.exit_code == 143
    assert first.results["results"][NAME][SCORE] is None and first.results["state"] == "interrupted"
    model = Told()
    assert told(tmp_path, model).results["results"][NAME][SCORE] == 1.0
    assert sorted([*answered, *model.asked]) == list(range(DOCUMENTS))
    assert 0 < len(answered) < DOCUMENTS


def test_a_model_that_raises_keeps_its_answers_and_gives_the_folder_free(tmp_path: Path) -> None:
    def overflows(request: Request) -> Response:
        if request.doc_id == 3:
            raise ArithmeticError("overflow")
        return right(request)

    with pytest.raises(ArithmeticError):
        told(tmp_path, Told(overflows))
    (folder,) = run_folders(tmp_path)
    assert not (folder / "owner.json").exists()
    model = Told()
    assert told(tmp_path, model).exit_code == 0
    assert 0 < len(model.asked) < DOCUMENTS


def test_a_broken_aggregation_is_exit_code_1_and_the_same_command_only_aggregates(tmp_path: Path) -> None:
    tasks(tmp_path)
    yaml, utils = tmp_path / "tasks" / f"{NAME}.yaml", tmp_path / "tasks" / "utils.py"
    yaml.write_text(yaml.read_text().replace("aggregation: mean", "aggregation: !function utils.total"))
    utils.write_text(
        "from pathlib import Path\n\n\ndef total(values):\n"
        "    if not Path(__file__).with_name('weights').exists():\n        raise ValueError('no weights')\n"
        "    return sum(values)\n"
    )
    first = told(tmp_path, Told())
    assert first.exit_code == 1 and any("raised ValueError: no weights" in line for line in first.lines)
    (tmp_path / "tasks" / "weights").touch()
    model = Told()
    again = told(tmp_path, model)
    assert (again.exit_code, model.asked) == (0, [])
    assert again.results["results"][NAME][SCORE] == DOCUMENTS


def test_a_model_that_is_built_here_is_closed_also_when_the_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmms_eval.models.baseline import Baseline

    closed: list[Baseline] = []
    monkeypatch.setattr(Baseline, "close", lambda self: closed.append(self))
    chosen = config(tmp_path)
    run(chosen)
    assert len(closed) == 1
    record = open_record(chosen, inputs_of(chosen))
    closed.clear()
    with pytest.raises(RunLockedError):
        run(chosen)
    assert len(closed) == 1
    record.folder.release()


def test_a_baseline_that_is_no_samples_file_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text("not json\n")
    model = Told()
    with pytest.raises(DataError, match=r"b\.jsonl, line 1"):
        told(tmp_path, model, baseline=str(tmp_path / "b.jsonl"))
    assert model.asked == []


def test_a_run_is_compared_with_an_earlier_one(tmp_path: Path) -> None:
    def wrong_on_0(request: Request) -> Response:
        return right(request) if request.doc_id else Response(request.id, text="?")

    told(tmp_path, Told(wrong_on_0, name="earlier"))
    (path,) = (tmp_path / "out").rglob("*_samples_*.jsonl")
    entry = told(tmp_path, Told(), baseline=str(path)).results["results"][NAME]
    assert entry["paired_baseline_score"] == pytest.approx(100 * (DOCUMENTS - 1) / DOCUMENTS)
    assert (entry["paired_ci_lower"] + entry["paired_ci_upper"]) / 2 == pytest.approx(100 / DOCUMENTS)


def test_several_processes_without_a_launcher_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    run_module._joined.cache_clear()
    try:
        with pytest.raises(UsageError, match="use accelerate launch or torchrun"):
            run(config(tmp_path))
    finally:
        run_module._joined.cache_clear()


def test_without_an_output_path_an_object_without_identity_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    chosen = config(tmp_path, model="told", output_path=None)
    for answer in (fails_on(1), right):
        model = Told(answer, name="")
        run(chosen, model)
        assert len(model.asked) == DOCUMENTS
    assert run_folders(tmp_path / "state") == []
    run(chosen, Told(fails_on(1)))
    assert len(run_folders(tmp_path / "state")) == 1


def test_seeds_reach_the_generators_that_are_loaded(tmp_path: Path) -> None:
    import numpy as np

    drawn = []
    for _ in range(2):
        run_module._seed(config(tmp_path, seed="7,8,9,10"))
        drawn.append((random.random(), float(np.random.random_sample())))
    assert drawn[0] == drawn[1] == (random.Random(7).random(), float(np.random.RandomState(8).random_sample()))
    state = random.getstate()
    run_module._seed(config(tmp_path, seed="None,None,None,None"))
    assert random.getstate() == state


def test_the_prompt_of_the_first_document_can_be_logged(tmp_path: Path) -> None:
    from loguru import logger

    said: list[str] = []
    sink = logger.add(lambda message: said.append(str(message)), level="INFO")
    told(tmp_path, Told(), write_out=True)
    logger.remove(sink)
    assert any("prompt of document 0" in line and "Question 0" in line for line in said)


def test_answers_checked_alone_stand_in_the_results_and_the_notes(tmp_path: Path) -> None:
    def tiring(request: Request) -> Response:
        return right(request) if len(model.asked) <= DOCUMENTS else Response(request.id, text="tired")

    model = Told(tiring)
    report = told(tmp_path, model, check_batch=2)
    check = report.results["batch_check"]
    assert (check["asked"], check["in_batches"], check["differing"]) == (2, 0, 2)
    assert [row["alone"] for row in check["rows"]] == ["tired"] * 2
    assert report.results["results"][NAME][SCORE] == 1.0 and report.exit_code == 0
    assert "batch check: 2 of 2 answers differ when asked alone" in report.lines
    assert "batch_check" not in told(tmp_path, Told()).results


@for_each(("own", "given", "asked"), [(3, None, 3), (3, 1, 1), (3, 2, 2), (1, None, 1), (1, 2, 2)])
def test_repeats_of_the_command_win_over_those_of_the_task(
    tmp_path: Path, own: int, given: int | None, asked: int
) -> None:
    (file,) = tasks(tmp_path).glob("*.yaml")
    file.write_text(f"{file.read_text()}\nrepeats: {own}\n")
    model = Told()
    told(tmp_path, model, repeats=given)
    assert len(model.asked) == asked * DOCUMENTS


def test_reducers_score_the_recorded_answers_again(tmp_path: Path) -> None:
    def half(request: Request) -> Response:
        return right(request) if (request.doc_id + request.repeat) % 2 else Response(request.id, text="wrong")

    told(tmp_path, Told(half), repeats=4)
    model = Told(half)
    report = told(tmp_path, model, repeats=4, reduce="pass@2,pass^2,maj@3", resume=True)
    assert not model.asked
    found = report.results["results"][NAME]
    assert [found[f"exact_match_{name},none"] for name in ("pass@2", "pass^2", "maj@3")] == pytest.approx(
        [5 / 6, 1 / 6, 0.5]
    )
    assert samples(tmp_path)[0]["exact_match_pass@2"] == pytest.approx(5 / 6)
    with pytest.raises(UsageError, match="give --repeats 5 or more"):
        told(tmp_path, model, repeats=4, reduce="pass@5", resume=True)


def test_the_average_latency_is_the_mean_of_the_requests_own(tmp_path: Path) -> None:
    """Requests that are asked side by side each take as long as they take; one that tells no latency is not counted."""
    latencies = {0: 0.25, 1: 1.75}

    def answer(request: Request) -> Response:
        return replace(right(request), latency=latencies.get(request.doc_id), usage=Usage(1, 2))

    report = run(config(tmp_path, model="told", limit=3), Told(answer))
    assert report.results["throughput"]["avg_latency"] == 1.0
    assert report.results["throughput"]["total_elapsed_time"] < 1.0
    assert "seconds/request" in report.table
    untimed = run(
        config(tmp_path, model="told", limit=1), Told(lambda request: replace(right(request), usage=Usage(1, 2)))
    )
    assert "avg_latency" not in untimed.results["throughput"]


def test_the_speeds_of_streams(tmp_path: Path) -> None:
    """Answers without token counts have no tokens per second; those of an earlier start are not this start's."""
    speeds: dict[int, tuple[float, float | None]] = {0: (0.1, 10.0), 1: (0.2, 20.0), 2: (0.6, None)}

    def answer(request: Request) -> Response:
        ttft, speed = speeds[request.doc_id]
        return replace(right(request), ttft=ttft, tokens_per_second=speed)

    report = run(config(tmp_path, model="told", limit=3), Told(answer))
    assert report.results["streams"] == {
        NAME: {
            "answers": 3,
            "ttft": {"median": 0.2, "p95": 0.6},
            "tokens_per_second": {"median": 15.0, "p95": 20.0},
        }
    }
    assert "TTFT median (s)" in report.table and "TTFT median (s)" in make_table(report.results)
    again = run(config(tmp_path, model="told", limit=3, resume=True), Told(answer))
    assert "streams" not in again.results
    plain = run(config(tmp_path / "plain", model="told", limit=3), Told())
    assert "streams" not in plain.results and "TTFT" not in plain.table


def test_a_task_whose_code_fails_on_every_document_is_not_asked_to_its_end(tmp_path: Path) -> None:
    folder = tasks(tmp_path, 3000)
    (folder / "broken_utils.py").write_text("def process_results(doc, results):\n    return results[0].no_such_name\n")
    text = (folder / f"{NAME}.yaml").read_text() + "process_results: !function broken_utils.process_results\n"
    (folder / f"{NAME}.yaml").write_text(text)
    model = Told()
    report = told(tmp_path, model)
    assert report.exit_code == 3 and DOCUMENTS < len(model.asked) < 2000
    (outcome,) = report.results["outcomes"].values()
    assert outcome["not_asked"] == 3000 - len(model.asked) and outcome["failed"] == len(model.asked)
    (reason,) = (reason for reason in outcome["reasons"] if reason.startswith("not asked"))
    assert "not one of its first 16 documents could be scored" in reason and "no_such_name" in reason


def test_what_has_no_effect_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from loguru import logger

    monkeypatch.setenv("LMMS_CACHE_CHECKPOINT_INTERVAL", "16")
    said: list[str] = []
    sink = logger.add(lambda message: said.append(str(message)), level="WARNING", format="{message}")
    try:
        told(tmp_path, Told(), cache_requests="refresh")
    finally:
        logger.remove(sink)
    assert len([line for line in said if line.startswith("--cache_requests refresh is not needed")]) == 1
    about = [line for line in said if "LMMS_CACHE_CHECKPOINT_INTERVAL" in line]
    assert len(about) == 1 and "every answer is written as it comes" in about[0]

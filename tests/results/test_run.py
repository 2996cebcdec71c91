from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from lmms_eval.api.request import Response, ResponseError, Thoughts, Usage
from lmms_eval.api.task import PipelineScore
from lmms_eval.engine.headline import RandomOrder
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import response_record
from lmms_eval.errors import DataError, UsageError
from lmms_eval.results import load
from lmms_eval.results.breakdown import breakdown
from lmms_eval.results.run import Choice, command_of
from lmms_eval.storage.lines import JournalWriter, sealed
from lmms_eval.utils.document_ids import parse_ids
from lmms_eval.utils.where import WhereError, parse_where
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import failed, scored
from tests.results.runs import FAILED, KEY, STAMP, document, sample, write_record, write_run

QUIZ = FakeTask(10, "quiz")


def finished(doc_id: int) -> dict:
    return scored(QUIZ, doc_id, PipelineScore("none", f"said {doc_id}", {"acc": float(doc_id % 2)}))


def test_a_folder_is_read_as_a_typed_run(tmp_path: Path) -> None:
    path = write_run(tmp_path / "org__model")
    run = load(tmp_path)
    assert (run.name, run.source, run.state, run.date) == ("org/model", path, "complete", "2024-01-01T00:00:00")
    assert run.command == "lmms-eval --model openai --tasks quiz --limit 4"
    assert (list(run.tasks), run.notes, run.groups) == (["quiz"], (), {})
    assert "quiz" in run.table
    assert "acc" in run.table
    task = run.task("quiz")
    assert len(task) == 4
    assert [task.index.status(number) for number in range(4)] == ["scored", "scored", "scored", "failed"]
    with pytest.raises(UsageError, match="no samples of a task 'other'; there are: quiz"):
        run.task("other")


def test_a_sample_has_typed_values(tmp_path: Path) -> None:
    task = load(write_run(tmp_path)).task("quiz")
    found = task.sample(1)
    assert (found.doc_id, found.filter, found.status, found.outcome) == ("1", "none", "scored", "scored")
    assert (found.prediction, found.raw, found.target) == ("said 1", "<think></think>said 1", "right")
    assert (found.prompt, found.score, found.elapsed, found.finish_reason) == ("question 1", 1.0, 0.5, "stop")
    assert (found.tokens.input, found.tokens.output, found.tokens.reasoning) == (11, 2, None)
    assert found.metrics == {"acc": 1.0, "graded": {"score": 0.25, "kind": "y"}}
    assert (found.number("graded"), found.media) == (0.25, ("/media/1.png",))
    assert found.fields == {"topic": "a", "year": 2001, "tags": ["t", "1"], "kind": "y"}
    assert task.sample(2).outcome == "truncated"
    lost = task.sample("3")
    assert (lost.status, lost.outcome, lost.reason, lost.score, lost.prediction) == (
        "failed",
        "failed",
        "timeout",
        None,
        "",
    )
    with pytest.raises(UsageError, match="no document 9"):
        task.sample(9)


@for_each(
    ("more", "outcome"),
    [
        ({"resps": " ", "filtered_resps": ""}, "blank"),
        ({"resps": "<think>hm", "filtered_resps": "", "blank": "unclosed thought"}, "blank"),
        ({"resps": "a", "blank": [None, "blank"]}, "scored"),
        ({"finish_reason": "content_filter"}, "filtered"),
        ({"finish_reason": ["stop", "length"]}, "truncated"),
        ({"status": "unscored", "reason": "no judge"}, "unscored"),
        ({"resps": "", "parts": [{"type": "image", "path": "x"}]}, "scored"),
    ],
)
def test_outcomes(tmp_path: Path, more: dict, outcome: str) -> None:
    assert load(write_run(tmp_path, [sample(0, **more)])).task("quiz").at(0).outcome == outcome


def test_an_unfinished_run_is_read_from_its_journals(tmp_path: Path) -> None:
    record = write_record(tmp_path / "m" / ".runs" / KEY, finished(4), finished(1), failed(QUIZ, 2, "timeout"))
    writer = JournalWriter(record / "responses-0.jsonl")
    for doc_id in (1, 7):
        answer = Response(
            f"quiz/{doc_id}/0/0/0",
            text="waits",
            usage=Usage(3, 2, None),
            finish_reason="stop",
            latency=0.25,
            thoughts=Thoughts("hm", "<think>", "</think>"),
        )
        writer.append(response_record(answer, "prompt"))
    writer.append(response_record(Response("quiz/8/0/0/0", error=ResponseError("timeout", "late", 1)), ""))
    writer.close()
    with open(record / "scores-0.jsonl", "ab") as file:
        file.write(sealed(b'{"task":"quiz"}')[:-9])
    run = load(tmp_path)
    assert (run.name, run.state, run.record) == ("org/model", "interrupted", record)
    assert run.command == "lmms-eval --model openai --tasks quiz --model_args model=org/model --limit 4"
    assert run.notes == (f"{record}: 1 torn or damaged lines of the journal are skipped",)
    found = {one.doc_id: one for one in run.samples()}
    assert list(found) == ["1", "2", "4", "7"]
    assert [one.status for one in found.values()] == ["scored", "failed", "scored", "unscored"]
    assert (found["4"].prediction, found["4"].score, found["4"].fields) == ("said 4", 0.0, {"question": "question 4"})
    waits = found["7"]
    assert (waits.answer, waits.thoughts, waits.blank) == ("waits", "hm", "")
    assert (waits.raw, waits.reason, waits.tokens.output, waits.elapsed) == (
        "<think>hm</think>waits",
        "answered, not scored yet",
        2,
        0.25,
    )
    assert run.task("quiz").sample(7).answer == "waits"
    assert run.table == ""


@for_each("has_results", [True, False])
def test_documents_beyond_an_early_end_do_not_count(tmp_path: Path, has_results: bool) -> None:
    order = RandomOrder(3)
    plan = TaskPlan(QUIZ, tuple(range(10)), original=10)
    asked = order.of(plan)
    stop = {"quiz": {"rule": "halfwidth<=0.01", "order": order.name(plan), "asked": 4, "of": 10}}
    facts = {"tasks": {"quiz": {"metric_list": [{"metric": "acc"}]}}, "early_stops": stop}
    record = write_record(tmp_path / ".runs" / KEY, *map(finished, asked[:6]), state="complete", **facts)
    writer = JournalWriter(record / "responses-0.jsonl")
    writer.append(response_record(Response(f"quiz/{asked[7]}/0/0/0", text="waits"), "prompt"))
    writer.close()
    if has_results:
        write_run(tmp_path, [], document(early_stop=stop))
        (tmp_path / f"{STAMP}_samples_quiz.jsonl").unlink()
    run = load(tmp_path)
    assert bool(run.document) == has_results
    assert [one.doc_id for one in run.samples()] == [str(doc_id) for doc_id in sorted(asked[:4])]
    assert breakdown(run, run.task("quiz")).cells[0].n == 4


def test_a_run_without_samples_is_read_from_its_journal(tmp_path: Path) -> None:
    path = write_run(tmp_path, [])
    (tmp_path / f"{STAMP}_samples_quiz.jsonl").unlink()
    assert load(path).notes == ("without samples (--log_samples) or journal: quiz",)
    write_record(tmp_path / ".runs" / KEY, finished(0), finished(1), state="complete", command="again")
    run = load(path)
    assert ([one.score for one in run.samples()], run.command, run.state) == ([0.0, 1.0], "again", "complete")
    assert load(tmp_path / ".runs" / KEY).source == path


def test_a_running_run_without_its_process_was_interrupted(tmp_path: Path) -> None:
    write_record(tmp_path / ".runs" / KEY, finished(0), state="running")
    assert load(tmp_path).state == "interrupted"


def test_what_was_printed_is_shown_again(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    record = write_record(tmp_path / ".runs" / KEY, finished(0), state="complete")
    shown = {"table": "as printed", "results": {"date": document()["date"]}}
    (record / "shown.json").write_bytes(sealed(json.dumps(shown).encode()))
    assert load(path).table == "as printed"
    shown["results"] = {"date": "of another run"}
    (record / "shown.json").write_bytes(sealed(json.dumps(shown).encode()))
    assert load(path).table != "as printed"


def test_damaged_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    with open(tmp_path / f"{STAMP}_samples_quiz.jsonl", "a") as file:
        file.write('{"torn": \n[1]\n{"no": "id"}\n')
    task = load(path).task("quiz")
    assert (len(task), task.index.damaged, len(list(task.samples()))) == (4, 3, 4)


def test_one_samples_file_is_a_run_of_one_task(tmp_path: Path) -> None:
    write_run(tmp_path)
    file = tmp_path / f"{STAMP}_samples_quiz.jsonl"
    run = load(str(file))
    assert (run.name, run.source, list(run.tasks), run.task("quiz").keys.metrics) == (
        "org/model", file, ["quiz"], ("acc", "graded"),
    )  # fmt: skip
    alone = tmp_path / "mine.jsonl"
    alone.write_text(json.dumps(sample(1)) + "\n")
    assert [one.score for one in load(alone).samples()] == [1.0]


@for_each(
    ("name", "content", "said"),
    [
        ("x.json", "{}", "not a results file"),
        ("x.jsonl", '{"index": 1}', "not samples of lmms-eval"),
        ("x.jsonl", "", "not samples of lmms-eval"),
        ("20240101_000000_results.json", "{", "no complete JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=said):
        load(tmp_path / name)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "absent")
    with pytest.raises(DataError, match="no run in this folder"):
        load(tmp_path)
    for name in "ab":
        write_run(tmp_path / name)
    with pytest.raises(DataError, match="holds 2 runs: name one of them"):
        load(tmp_path)


@for_each(
    ("where", "ids", "chosen"),
    [
        ("topic == 'a' and score < 1", None, ["0"]),
        ("kind == 'y' or outcome == 'truncated'", None, ["1", "2"]),
        ("graded > 0.1 and graded.kind == 'x' and doc.year >= 2002", None, ["2"]),
        ("status == 'failed'", "1,3", ["3"]),
        ("tokens == 13 and tags contains '1'", None, ["1"]),
        (None, "quiz:0-1", ["0", "1"]),
        (None, "other:0-1", []),
    ],
)
def test_samples_are_chosen(tmp_path: Path, where: str | None, ids: str | None, chosen: list[str]) -> None:
    run = load(write_run(tmp_path))
    choice = Choice(parse_ids(ids) if ids else None, parse_where(where) if where else None)
    assert [one.doc_id for one in run.samples(choice)] == chosen


def test_samples_are_chosen_by_how_they_were_read(tmp_path: Path) -> None:
    read = ("A", "", ["A", "B"])
    rows = [sample(number, acc={"score": 0.0, "parsed_pred": said}) for number, said in enumerate(read)]
    rows += [sample(5, acc=0.0, acc_fixed=1.0, drew=True), FAILED]
    names = {"higher_is_better": {"quiz": {"acc": True, "acc_fixed": True}}}
    run = load(write_run(tmp_path, rows, document(**names)))

    def chosen(text: str) -> list[str]:
        where = parse_where(text)
        run.check(where)
        return [one.doc_id for one in run.samples(Choice(where=where))]

    kinds = ("read", "unparsed", "ambiguous", "not told")
    assert [chosen(f"audit.reading == '{kind}'") for kind in kinds] == [["0"], ["1"], ["2"], ["5"]]
    assert chosen("audit.by.acc_fixed == 'higher' and audit.drawn is not missing") == ["5"]
    assert chosen("audit.answer == 'truncated'") == ["2"]


def test_columns_that_no_sample_has_are_refused(tmp_path: Path) -> None:
    run = load(write_run(tmp_path))
    run.check(parse_where("topic == 'a' and graded.kind is missing"))
    with pytest.raises(WhereError, match=r"character 1 .*nearest: topic"):
        run.check(parse_where("topik == 'a'"))


def test_commands_of_recorded_options() -> None:
    given = {
        "model": "hf",
        "tasks": "a b",
        "log_samples": True,
        "resume": True,
        "seed": [1, 2, 3, 4],
        "gen_kwargs": {"x": 1},
    }
    assert command_of(given) == "lmms-eval --tasks 'a b' --log_samples --gen_kwargs x=1 --seed 1,2,3,4 --resume"
    assert command_of({}) == ""


def test_a_hundred_thousand_samples_are_indexed_quickly(tmp_path: Path) -> None:
    text = json.dumps(sample(0, input="question " * 20))
    head, tail = text.split('"doc_id": 0', 1)
    rows = (f'{head}"doc_id": {number}{tail}\n' for number in range(100_000))
    path = write_run(tmp_path, [])
    (tmp_path / f"{STAMP}_samples_quiz.jsonl").write_text("".join(rows))
    task = load(path).task("quiz")
    begin = time.process_time()
    assert len(task) == 100_000
    took = time.process_time() - begin
    begin = time.process_time()
    for number in range(0, 100_000, 1000):
        assert task.sample(number).doc_id == str(number)
    each = (time.process_time() - begin) / 100
    assert took < 4
    assert each < 0.002


def test_memory_holds_places_alone(tmp_path: Path) -> None:
    path = write_run(tmp_path, [sample(number, input="question " * 20) for number in range(5_000)])
    tracemalloc.start()
    try:
        assert len(load(path).task("quiz")) == 5_000
        assert tracemalloc.get_traced_memory()[1] < 5_000 * 1_000  # 100 MB of 100,000
    finally:
        tracemalloc.stop()


def test_loading_is_lazy() -> None:
    program = "import sys, lmms_eval.results; assert not {'pandas', 'pyarrow', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_failed_lines_have_no_numbers(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, [FAILED]))
    assert [(one.metrics, one.tokens.input, one.media) for one in run.samples()] == [({}, None, ())]


@for_each("part", [3, {"quiz": 4}])
def test_results_of_another_form_are_no_results(tmp_path: Path, part: object) -> None:
    path = write_run(tmp_path, [], document() | {"results": part})
    with pytest.raises(DataError, match="not a results file"):
        load(path)

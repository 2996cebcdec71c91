"""Every consumer of a run's record counts the same documents with the same scores, whatever the state of the run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from lmms_eval.api.judging import Verdict
from lmms_eval.api.request import Response
from lmms_eval.api.task import PipelineScore
from lmms_eval.cli.main import main
from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.runs import RunRows
from lmms_eval.config.rules import control_name
from lmms_eval.engine.headline import HeadlinePart, RandomOrder
from lmms_eval.engine.live import outline_of, write_outline
from lmms_eval.engine.looks import Sampling
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import response_record
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError
from lmms_eval.results import load
from lmms_eval.results.follow import FollowedRun
from lmms_eval.results.samples_file import record_rows
from lmms_eval.server.events import JobProgress
from lmms_eval.storage.lines import JournalWriter
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.runs import read_report_runs
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import KEY as SCORING_KEY
from tests.engine.journaled import failed, scored
from tests.results.runs import KEY, STAMP, document, write_record

OF = 10
Documents = dict[tuple[str, str], tuple[str, float | None]]
"""Status and score by task and document."""
Counts = dict[str, tuple[dict[str, int], float | None]]
"""By task: the number of finished documents by status, and the mean of the scores."""
Records = list[dict[str, Any]]


class StratifiedTask(FakeTask):
    def strata(self, doc_ids: Iterable[int]) -> list[str]:
        return ["even" if doc_id % 2 == 0 else "odd" for doc_id in doc_ids]


QUIZ = FakeTask(OF, "quiz")
CONTROL = FakeTask(OF, control_name("quiz", "no_media"))
WAITING = "7"
"""The document that is answered, but not scored."""


class Made(Struct, frozen=True):
    """A run in some state."""

    record: Path
    documents: Documents

    @property
    def counts(self) -> Counts:
        """The counts of the finished documents."""
        found: Counts = {}
        for task in dict.fromkeys(task for task, _ in self.documents):
            own = [one for (name, doc), one in self.documents.items() if name == task and doc != self._waiting]
            scores = [score for _, score in own if score is not None]
            found[task] = (dict(Counter(status for status, _ in own)), sum(scores) / len(scores) if scores else None)
        return found

    @property
    def _waiting(self) -> str:
        return WAITING if self.documents.get(("quiz", WAITING)) == ("unscored", None) else ""


def finished(doc_id: int, task: FakeTask = QUIZ) -> dict[str, Any]:
    return scored(task, doc_id, PipelineScore("none", f"answer {doc_id}", {"acc": float(doc_id % 2)}))


def lost(doc_id: int) -> dict[str, Any]:
    return failed(QUIZ, doc_id, "timeout")


def unread(doc_id: int) -> dict[str, Any]:
    return scored(QUIZ, doc_id, PipelineScore("none", "", {}, status="unscored", reason="no reply of the judge"))


def outcome(record: Mapping[str, Any]) -> tuple[str, float | None]:
    if "failed" in record:
        return "failed", None
    status = record["scores"][0].get("status", "scored")
    return status, float(record["doc_id"] % 2) if status == "scored" else None


def expected(records: Iterable[Mapping[str, Any]]) -> Documents:
    return {(one["task"], str(one["doc_id"])): outcome(one) for one in records}


def write(
    folder: Path, records: Records, state: str, stop: Mapping[str, Any] | None = None, counted: int = 2 * OF
) -> Made:
    """Write a record, and results with samples if the run has ended; ``counted``: so many records count."""
    names = dict.fromkeys(one["task"] for one in records)
    facts = {"metric_list": [{"metric": "acc", "aggregation": "mean"}], "higher_is_better": {"acc": True}}
    stops = {} if stop is None else {"quiz": dict(stop)}
    tasks = dict.fromkeys(names, facts)
    record = write_record(folder / ".runs" / KEY, *records[::-1], state=state, tasks=tasks, early_stops=stops)
    made = Made(record, expected(records[:counted]))
    if state != "running":
        write_results(
            folder, records[:counted], made.counts, {"state": state} | ({"early_stop": stops} if stops else {})
        )
    return made


def write_results(folder: Path, records: Records, counts: Counts, parts: Mapping[str, Any]) -> None:
    base = document()
    content = document(
        configs=dict.fromkeys(counts, base["configs"]["quiz"]),
        higher_is_better={task: {"acc": True} for task in counts},
        results={task: {"alias": task, "acc,none": mean} for task, (_, mean) in counts.items()},
        outcomes={
            task: {"requested": OF, "scored": 0, "unscored": 0, "failed": 0, **of, "n": {"acc,none": of["scored"]}}
            for task, (of, _) in counts.items()
        },
        **parts,
    )
    (folder / f"{STAMP}_results.json").write_text(json.dumps(content))
    for task in counts:
        rows = [row for one in records if one["task"] == task for row in record_rows(json.loads(json.dumps(one)))]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{STAMP}_samples_{task}.jsonl").write_text(lines)


def complete(folder: Path) -> Made:
    return write(folder, [finished(doc_id) for doc_id in range(OF)], "complete")


def withheld(folder: Path) -> Made:
    records = [finished(doc_id) for doc_id in range(OF - 2)] + [lost(OF - 2), lost(OF - 1)]
    return write(folder, records, "withheld")


def interrupted(folder: Path) -> Made:
    return write(folder, [finished(doc_id) for doc_id in range(5)] + [lost(5)], "interrupted")


def killed(folder: Path) -> Made:
    """A run without results, in which a document is answered but not scored."""
    made = write(folder, [finished(doc_id) for doc_id in range(5)] + [lost(5)], "running")
    writer = JournalWriter(made.record / "responses-0.jsonl")
    writer.append(response_record(Response(f"quiz/{WAITING}/0/0/0", text="waits"), "prompt"))
    writer.close()
    return Made(made.record, made.documents | {("quiz", WAITING): ("unscored", None)})


def cut(share: float) -> Callable[[Path], Made]:
    """Return a run whose process was killed when the journal held this share of its bytes."""

    def make(folder: Path) -> Made:
        made = write(folder, [finished(doc_id) for doc_id in range(OF)], "running")
        journal = made.record / "scores-0.jsonl"
        content = journal.read_bytes()
        left = content[: int(len(content) * share)]
        journal.write_bytes(left)
        names = [("quiz", str(OF - 1 - number)) for number in range(left.count(b"\n"))]  # written backwards
        return Made(made.record, {name: made.documents[name] for name in names})

    make.__name__ = f"cut_at_{share}"
    return make


def stopped(folder: Path, task: FakeTask = QUIZ) -> Made:
    """A run that stopped after four documents, with two more finished."""
    plan, order = TaskPlan(task, tuple(range(OF)), original=OF), RandomOrder(3)
    records = [finished(doc_id) for doc_id in order.of(plan)[:6]]
    records[1] = lost(records[1]["doc_id"])
    stop = {"rule": "halfwidth<=0.25", "order": order.name(plan), "asked": 4, "of": OF}
    made = write(folder, records, "stopped early", stop, counted=4)
    part = HeadlinePart("quiz", "acc", "none", ScoreRange(0, 1))
    write_outline(made.record, outline_of([plan], Sampling(order, shown=(part,)), {"quiz": part}))
    return made


def stopped_over_strata(folder: Path) -> Made:
    return stopped(folder, StratifiedTask(OF, "quiz"))


def judged(folder: Path) -> Made:
    """A judged run: the judge gave no readable reply about one document."""
    records = [finished(doc_id) for doc_id in range(OF - 1)] + [unread(OF - 1)]
    for record in records:
        is_read = record["doc_id"] != OF - 1
        record["judge"] = [Verdict("answer", "yes" if is_read else None, is_read, "judge").as_record()]
    return write(folder, records, "complete")


def with_control(folder: Path) -> Made:
    records = [finished(doc_id, task) for task in (QUIZ, CONTROL) for doc_id in range(OF)]
    return write(folder, [*records[: OF - 1], lost(OF - 1), *records[OF:-3]], "withheld")


def several_processes(folder: Path) -> Made:
    """Two processes, one of which failed where the other scored, after a start with other settings."""
    made = write(folder, [finished(doc_id) for doc_id in range(OF)], "complete")
    for journal in made.record.glob("scores-*"):
        journal.unlink()
    append(made.record, [lost(doc_id) for doc_id in range(OF)], 0, "other settings")
    append(made.record, [lost(0), lost(5), *(finished(doc_id) for doc_id in range(4))], 0)
    append(made.record, [lost(1), *(finished(doc_id) for doc_id in range(4, OF)), lost(7)], 1)
    return made


def append(record: Path, records: Records, rank: int = 0, key: str = SCORING_KEY) -> None:
    store = RunStore(record, key, rank)
    for one in records:
        store.add_score(dict(one))
    store.close()


STATES = (
    *(complete, withheld, interrupted, killed, stopped, stopped_over_strata, judged, with_control, several_processes),
    *(cut(share) for share in (0.15, 0.5, 0.73, 0.999)),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Made]:
    """The runs, by the name of their state and whether their results exist."""
    base = tmp_path_factory.mktemp("matrix")
    found = {}
    for state in STATES:
        for has_results in (True, False):
            folder = base / f"{state.__name__}-{has_results}" / "model"
            found[state.__name__, has_results] = state(folder)
            if not has_results:
                for path in folder.glob("2*"):
                    path.unlink()
    return found


def show(path: Path) -> Documents:
    return {(one.task, one.doc_id): (one.status, one.score) for one in load(path).samples()}


def of_rows(run: RunRows) -> Documents:
    found: Documents = {}
    for name, task in run.tasks.items():
        scores: Sequence[float] = task.columns["acc,none"].scores.tolist()
        for doc_id, status, score in zip(task.ids, task.statuses, scores, strict=True):
            found[name, doc_id] = (status, None if math.isnan(score) else score)
    return found


def compare(path: Path) -> Documents:
    return of_rows(read_runs([str(path)])[0])


def report(path: Path) -> Documents:
    return of_rows(read_report_runs([str(path)])[0].rows)


def export(path: Path) -> Documents:
    file = path.parent.parent / "exported.jsonl"
    try:
        assert main(["export", str(path), "--to", "jsonl", "--out", str(file)]) == 0
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    finally:
        file.unlink(missing_ok=True)
    return {(row["task"], row["doc_id"]): (row["status"], row.get("score")) for row in rows}


def viewed(watch: Watch) -> Counts:
    """The counts on the page of the live view."""
    (run,) = json.loads(watch.piece("runs"))["runs"]
    means = {row["task"]: row["value"] for row in run["rows"]}
    return {task["name"]: (non_zero(task["outcomes"]), means[task["name"]]) for task in run["tasks"]}


def non_zero(found: Mapping[str, Any]) -> dict[str, int]:
    return {name: found[name] for name in ("scored", "unscored", "failed") if found[name]}


@pytest.mark.parametrize("consumer", [show, compare, report, export])
@pytest.mark.parametrize("has_results", [True, False])
@pytest.mark.parametrize("state", [state.__name__ for state in STATES])
def test_consumers_agree(
    made: Mapping[tuple[str, bool], Made], state: str, has_results: bool, consumer: Callable[[Path], Documents]
) -> None:
    run = made[state, has_results]
    assert consumer(run.record) == run.documents


@pytest.mark.parametrize("consumer", [show, compare, report])
@pytest.mark.parametrize("state", [state.__name__ for state in STATES])
def test_consumers_agree_on_the_output_folder(
    made: Mapping[tuple[str, bool], Made], state: str, consumer: Callable[[Path], Documents]
) -> None:
    run = made[state, True]
    assert consumer(run.record.parent.parent.parent) == run.documents


@pytest.mark.parametrize("has_results", [True, False])
@pytest.mark.parametrize("state", [state.__name__ for state in STATES])
def test_the_live_view_and_the_server_count_the_same(
    made: Mapping[tuple[str, bool], Made], state: str, has_results: bool
) -> None:
    run = made[state, has_results]
    with Watch(run.record.parent.parent, ReportOptions()) as watch:
        assert viewed(watch) == run.counts
    snapshot = JobProgress().look([run.record]).snapshot
    assert snapshot is not None
    total = sum((Counter(of) for of, _ in run.counts.values()), Counter())
    assert non_zero({name: getattr(snapshot, name) for name in ("scored", "unscored", "failed")}) == dict(total)
    assert {task.name: task.done for task in snapshot.tasks} == {
        task: sum(of.values()) for task, (of, _) in run.counts.items()
    }
    if state.startswith("stopped"):
        (task,) = snapshot.tasks
        assert task.score is not None
        assert (task.score.value, task.score.n) == (run.counts["quiz"][1], 4)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """The record of a run whose process is alive."""
    made = write(tmp_path / "model", [finished(0)], "running")
    folder = RunFolder(made.record)
    folder.acquire()
    yield made.record
    folder.release()


def test_consumers_agree_while_journals_grow(running: Path) -> None:
    steps = [[lost(1), finished(2)], [], [finished(1), lost(2), finished(9)], [lost(3)]]
    documents = expected([finished(0)])
    followed = FollowedRun(running)
    with Watch(running.parent.parent, ReportOptions()) as watch:
        for number, step in enumerate(steps):
            append(running, step, rank=number % 2)
            documents |= expected(
                one for one in step if documents.get(("quiz", str(one["doc_id"])), "-")[0] != "scored"
            )
            for consumer in (show, compare, report, export):
                assert consumer(running) == documents
            followed.look()
            assert (load(running).state, followed.run.state, followed.snapshot().state) == ("running",) * 3
            assert {(one.task, one.doc_id): (one.status, one.score) for one in followed.run.samples()} == documents
            watch.look()
            assert viewed(watch) == Made(running, documents).counts


def test_a_finished_run_is_a_followed_one_without_news(made: Mapping[tuple[str, bool], Made]) -> None:
    for (state, has_results), run in made.items():
        followed = FollowedRun(run.record)
        followed.look()
        assert not followed.look()
        found = {(one.task, one.doc_id): (one.status, one.score) for one in followed.run.samples()}
        assert found == {name: one for name, one in run.documents.items() if state != "killed" or name[1] != WAITING}
        if not has_results:
            read = load(run.record)
            assert (read.name, read.state, read.notes) == (followed.run.name, followed.run.state, followed.run.notes)


@for_each("state", [stopped, stopped_over_strata])
def test_a_run_that_stopped_early_is_compared_with_itself(
    tmp_path: Path, state: Callable[[Path], Made], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = state(tmp_path / "one").record, state(tmp_path / "two").record
    assert main(["compare", str(first), str(second)]) == 0
    assert "no random order" not in capsys.readouterr().err


def test_older_results_of_a_resumed_run_do_not_take_its_newer_documents(tmp_path: Path) -> None:
    record = complete(tmp_path).record
    for path in tmp_path.glob("*_samples_*"):
        path.unlink()
    (results,) = tmp_path.glob("*_results.json")
    assert show(results) == compare(results) == report(results) == show(record)
    older = results.rename(tmp_path / "20230101_000000_results.json")
    assert load(older).tasks == {}
    (run,) = read_report_runs([str(older)])
    assert run.rows.tasks == {}
    with pytest.raises(DataError, match="found neither samples of this run"):
        read_runs([str(older)])
